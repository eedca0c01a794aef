//! `DiskSim`'s ASCII format: arrival in milliseconds, device, block, length in blocks, flags in hexadecimal (bit 0 is a read).

use super::findings::Findings;
use super::number::{scaled, sectors_of};
use super::record::Record;
use crate::queue::Direction;

/// The request of a line; the size of a block stands in no trace and is 512 bytes.
pub fn record(line: &str, findings: &mut Findings) -> Option<Record> {
    let words: Vec<&str> = line.split_ascii_whitespace().take(6).collect();
    let [at, device, block, blocks, flags] = words[..] else {
        findings.damage("has not five columns");
        return None;
    };
    let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).ok();
    let place = scaled(block, 512).zip(scaled(blocks, 512)).and_then(|(offset, size)| sectors_of(offset, size));
    let (Some(at_ns), Some((start_sector, sectors)), Some(flags)) = (scaled(at, 1_000_000), place, flags) else {
        findings.damage("holds no time, block, length and flags");
        return None;
    };
    let direction = if flags & 1 == 1 { Direction::Read } else { Direction::Write };
    Some(Record { device: findings.device(device), ..Record::new(at_ns, direction, start_sector, sectors) })
}
