//! The flags of `ledger` as one checked value.

use std::path::PathBuf;

use crate::error::Error;
use crate::flags::Flag;
use crate::run_options::CLIENTS_MAX;
use crate::table_options;
use crate::values::Values;

use super::content::{Content, PARTS_MAX};
use super::schema::{Tables, table};

/// Longest payload: a row stays on one page of 16 KiB.
const PAYLOAD_MAX: usize = 7000;

/// A blob is longer than a page, which may be of 16 KiB.
const BLOB_MIN: usize = 16_385;
const BLOB_MAX: usize = 1 << 20;

/// Latest moment of a cut, seconds.
const LATEST_S: f64 = 1e6;

/// The flags.
pub const FLAGS: &[Flag] = &[
    Flag::value("ledger", "record in this file what was sent and when it was acknowledged; verify reads it"),
    Flag::value("accounts", "accounts between which amounts are moved"),
    Flag::value("parts", "accounts that a transaction changes"),
    Flag::value("payload", "bytes of every row"),
    Flag::value("blob-share", "percent of the rows that have a blob"),
    Flag::value("blob-size", "bytes of a blob, more than 16 KiB"),
    Flag::switch("expect-loss", "the server will be killed during the load: its loss ends the run with exit code 0"),
    Flag::value("ddl", "on or off: one more connection creates, alters, renames, truncates and drops tables"),
    Flag::value("cut-socket", "control socket of the emulated disk under the server, which takes the cuts"),
    Flag::value(
        "cut-acks-after",
        "seconds after the first acknowledgement of the measured load, or a list: the first acknowledgement after the N-th of \
         them is followed by a cut named ack-N",
    ),
    Flag::value("cut-ddls-after", "the same for acknowledged DDL statements, and cuts named ddl-N"),
    Flag::value("cut-ns", "verify: time of the power cut, ns of CLOCK_MONOTONIC (after all that was sent)"),
    Flag::value("cut-end-ns", "verify: time at which the cut was complete (--cut-ns)"),
    Flag::value("engine", "storage engine (the server's default)").short('e'),
    Flag::value(table_options::FLAG, table_options::HELP),
    Flag::value("schema", "schema of the tables"),
];

/// All options.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where everything is.
    pub tables: Tables,
    /// What the transactions hold.
    pub content: Content,
    /// Where times go.
    pub ledger: Option<PathBuf>,
    /// Most connections of a run.
    pub clients: usize,
    /// DDL is sent, too.
    pub ddl: bool,
    /// The server is to go away.
    pub expects_loss: bool,
    /// Cuts to be asked for.
    pub cuts: Option<CutOptions>,
}

/// Cuts of the disk that the clients ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutOptions {
    /// Control socket of the disk.
    pub socket: PathBuf,
    /// After the first acknowledgement from each of these times on, in rising order.
    pub acks_after_ns: Vec<u64>,
    /// The same after DDL statements.
    pub ddls_after_ns: Vec<u64>,
}

impl CutOptions {
    fn read(values: &Values<'_>) -> Result<Option<Self>, Error> {
        let moments = |flag| {
            let seconds: Vec<f64> = if values.has(flag) { values.list(flag, 0.0, 0.0, LATEST_S)? } else { Vec::new() };
            let mut after_ns: Vec<u64> = seconds.into_iter().map(|seconds| (seconds * 1e9) as u64).collect();
            after_ns.sort_unstable();
            Ok::<_, Error>(after_ns)
        };
        let (acks_after_ns, ddls_after_ns) = (moments("cut-acks-after")?, moments("cut-ddls-after")?);
        match (values.path("cut-socket"), acks_after_ns.is_empty() && ddls_after_ns.is_empty()) {
            (None, true) => Ok(None),
            (Some(socket), false) if values.has("ledger") => Ok(Some(Self { socket, acks_after_ns, ddls_after_ns })),
            (Some(_), false) => Err(Error::Usage("a cut needs --ledger: only that file shows what is lost".into())),
            _ => Err(Error::Usage("give --cut-socket together with --cut-acks-after or --cut-ddls-after".into())),
        }
    }
}

impl Options {
    /// Reads them.
    ///
    /// # Errors
    /// A value that is none or out of range, or flags that contradict each other.
    pub fn read(values: &Values<'_>) -> Result<Self, Error> {
        let clients = values.list("clients", 1, 1, CLIENTS_MAX)?;
        let content = Content {
            seed: values.number("seed", 1)?,
            payload_bytes: values.within("payload", 200, 1..=PAYLOAD_MAX)?,
            blob_bytes: values.within("blob-size", 20_000, BLOB_MIN..=BLOB_MAX)?,
            blob_percent: values.within("blob-share", 5, 0..=100)?,
            accounts: values.within("accounts", 20_000, 2..=100_000_000)?,
            parts: values.within("parts", 2, 2..=PARTS_MAX)?,
        };
        if content.parts > content.accounts as usize {
            return Err(Error::Usage(format!("--parts={}: more than --accounts={}", content.parts, content.accounts)));
        }
        let options = Self {
            tables: Tables::read(values, table)?,
            content,
            ledger: values.path("ledger"),
            clients: clients.iter().copied().max().unwrap_or(1),
            ddl: values.choice("ddl", &[("off", false), ("on", true)], false)?,
            expects_loss: values.has("expect-loss"),
            cuts: CutOptions::read(values)?,
        };
        if values.has("cut-ddls-after") && !options.ddl {
            return Err(Error::Usage("--cut-ddls-after means nothing without --ddl=on".into()));
        }
        let rates = values.list("rate", 0.0, 0.0, f64::MAX)?;
        if options.ledger.is_some() && clients.len().max(rates.len()) > 1 {
            return Err(Error::Usage("--ledger records one run: give one number of clients and one rate".into()));
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(flags: &[(&'static str, &'static str)]) -> Result<Options, String> {
        Options::read(&Values::of(flags)).map_err(|error| error.to_string())
    }

    #[test]
    fn mistakes_name_their_flag() {
        assert!(read(&[("blob-size", "16384")]).unwrap_err().contains("--blob-size=16384: give 16385 to"));
        assert!(read(&[("parts", "5"), ("accounts", "4")]).unwrap_err().contains("--parts=5: more than --accounts=4"));
        assert!(read(&[("ledger", "x"), ("clients", "1,2")]).unwrap_err().contains("records one run"));
        assert!(read(&[("clients", "1,2")]).is_ok());
        assert!(read(&[("cut-socket", "x")]).unwrap_err().contains("together with --cut-acks-after"));
        assert!(read(&[("cut-socket", "x"), ("cut-acks-after", "5")]).unwrap_err().contains("needs --ledger"));
        let cuts = [("cut-socket", "x"), ("cut-acks-after", "0.9,.25"), ("ledger", "y")];
        assert_eq!(read(&cuts).unwrap().cuts.unwrap().acks_after_ns, [250_000_000, 900_000_000]);
        assert!(read(&[("cut-ddls-after", "5"), cuts[0], cuts[2]]).unwrap_err().contains("without --ddl=on"));
        assert!(read(&[("schema", "mysql")]).unwrap_err().contains("belongs to the server"));
    }
}
