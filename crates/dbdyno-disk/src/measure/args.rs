//! The command line of `measure`.

use std::path::PathBuf;

use dbdyno_common::size;
use lexopt::prelude::{Long, ValueExt};

use crate::error::DiskError;

/// What `measure` was asked.
#[derive(Debug)]
pub struct MeasureArgs {
    pub places: Vec<Place>,
    pub rounds: u64,
    pub seed: u64,
    /// How much of a folder's disk or of a model is used.
    pub region_bytes: u64,
    pub step_ms: u64,
    pub fill_ms: u64,
}

/// What is measured.
#[derive(Debug, PartialEq, Eq)]
pub enum Place {
    /// A folder, in which a file without a name is made; or a block device, which is only read.
    Path(PathBuf),
    /// A drive model, in virtual time.
    Model(String),
}

/// Reads the options; `None` if help is asked for.
pub fn parse(mut parser: lexopt::Parser) -> Result<Option<MeasureArgs>, DiskError> {
    let usage = |error: lexopt::Error| DiskError::Usage(error.to_string());
    let mut args =
        MeasureArgs { places: Vec::new(), rounds: 8, seed: 1, region_bytes: 1 << 30, step_ms: 400, fill_ms: 6000 };
    while let Some(argument) = parser.next().map_err(usage)? {
        match argument {
            Long("on") => args.places.push(Place::Path(parser.value().map_err(usage)?.into())),
            Long("model") => {
                args.places.push(Place::Model(parser.value().and_then(ValueExt::string).map_err(usage)?));
            }
            Long("rounds") => args.rounds = number(&mut parser, "--rounds", 1..=1000)?,
            Long("seed") => args.seed = parser.value().and_then(|value| value.parse()).map_err(usage)?,
            Long("step-ms") => args.step_ms = number(&mut parser, "--step-ms", 1..=60_000)?,
            Long("fill-ms") => args.fill_ms = number(&mut parser, "--fill-ms", 1..=600_000)?,
            Long("region") => {
                let given = parser.value().and_then(ValueExt::string).map_err(usage)?;
                args.region_bytes =
                    size::bytes(&given).filter(|bytes| *bytes >= REGION_BYTES_MIN).ok_or_else(|| {
                        DiskError::Usage(format!("--region {given:?} is not a number of bytes of at least 32M"))
                    })?;
            }
            Long("help") => return Ok(None),
            other => return Err(usage(other.unexpected())),
        }
    }
    if args.places.is_empty() {
        return Err(DiskError::Usage("measure needs --on DIR, --on DEVICE or --model NAME".into()));
    }
    Ok(Some(args))
}

/// The 32 connections of the deepest step write a log of 1 MiB each.
pub const REGION_BYTES_MIN: u64 = 32 << 20;

fn number(parser: &mut lexopt::Parser, option: &str, range: std::ops::RangeInclusive<u64>) -> Result<u64, DiskError> {
    let given = parser.value().and_then(ValueExt::string).map_err(|error| DiskError::Usage(error.to_string()))?;
    given.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| {
        DiskError::Usage(format!("{option} {given:?} is not a number from {} to {}", range.start(), range.end()))
    })
}
