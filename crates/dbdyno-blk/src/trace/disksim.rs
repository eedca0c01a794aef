//! `DiskSim`'s ASCII format: arrival in milliseconds, device, block, length in blocks, flags in hexadecimal (bit 0 is a
//! read). Simulators of SSDs (`MQSim`, `SSDSim`) write the same with nanoseconds, and replayers with bytes.

use super::record::{Findings, Record};
use super::units::{Doubt, Lengths, Times, is_number, scaled, sectors_of};
use crate::queue::Direction;

const MILLISECOND: u64 = 1_000_000;

/// What its numbers count.
#[derive(Debug, Clone, Copy)]
pub struct DiskSim {
    time_scale: u64,
    length_scale: u64,
}

/// Whether a line is of five such numbers.
pub fn begins(line: &str) -> bool {
    let words: Vec<&str> = line.split_ascii_whitespace().take(6).collect();
    let [at, device, block, blocks, flags] = words[..] else { return false };
    scaled(at, 1).is_some()
        && is_number(device)
        && is_number(block)
        && is_number(blocks)
        && hexadecimal(flags).is_some()
}

fn hexadecimal(flags: &str) -> Option<u32> {
    u32::from_str_radix(flags.trim_start_matches("0x"), 16).ok()
}

impl DiskSim {
    /// As asked, or by the lines at its beginning; returns what is to be said of them, too.
    pub fn new(
        sample: &[&str],
        time_scale: Option<u64>,
        length_scale: Option<u64>,
    ) -> Result<(Self, Vec<String>), Doubt> {
        let (mut times, mut lengths, mut notes) = (Times::default(), Lengths::default(), Vec::new());
        for line in sample.iter().filter(|line| begins(line)) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            times.take(words[0]);
            lengths.take(words[2], words[3]);
        }
        let mut settled = |option: Option<u64>, chosen: Result<_, Doubt>| -> Result<u64, Doubt> {
            if let Some(scale) = option {
                return Ok(scale);
            }
            let chosen: super::units::UnitChoice = chosen?;
            notes.extend(chosen.note);
            Ok(chosen.scale)
        };
        let time_scale = settled(time_scale, times.unit(Some(MILLISECOND), 1.0, &[1]))?;
        let length_scale = settled(length_scale, lengths.unit(512))?;
        Ok((Self { time_scale, length_scale }, notes))
    }

    /// The request of a line; the size of a block stands in no trace and is 512 bytes.
    pub fn record(self, line: &str, findings: &mut Findings) -> Option<Record> {
        let mut words = line.split_ascii_whitespace();
        let mut next = || words.next();
        let (Some(at), Some(device), Some(block), Some(blocks), Some(flags), None) =
            (next(), next(), next(), next(), next(), next())
        else {
            findings.damage("does not have five columns");
            return None;
        };
        let place = scaled(block, self.length_scale).zip(scaled(blocks, self.length_scale));
        let place = place.and_then(|(offset, size)| sectors_of(offset, size));
        let (Some(at_ns), Some((start_sector, sectors)), Some(flags)) =
            (scaled(at, self.time_scale), place, hexadecimal(flags))
        else {
            findings.damage("lacks a time, block, length or flags");
            return None;
        };
        let direction = if flags & 1 == 1 { Direction::Read } else { Direction::Write };
        Some(Record { device: findings.device(device), ..Record::new(at_ns, direction, start_sector, sectors) })
    }
}
