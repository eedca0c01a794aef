//! The emulated disk's own compact format, of `dbdyno disk trace --format binary` (see docs/disk.md).

use std::io::{self, BufRead};

use super::record::{Findings, Record, read_whole};
use super::units::sectors_of;
use crate::queue::Direction;

const MAGIC: &[u8; 16] = b"dbdyno-trace-1\n\0";
const RECORD_BYTES: usize = 48;

/// Whether a file begins as these do.
pub fn begins(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// Reads past the magic.
pub fn past_magic(from: &mut dyn BufRead) -> io::Result<()> {
    io::copy(&mut io::Read::take(from, MAGIC.len() as u64), &mut io::sink()).map(drop)
}

/// The next read, write or flush.
pub fn next(from: &mut dyn BufRead, findings: &mut Findings) -> io::Result<Option<Record>> {
    loop {
        let mut record = [0; RECORD_BYTES];
        let read = read_whole(from, &mut record)?;
        if read == 0 {
            return Ok(None);
        }
        findings.lines += 1;
        if read < RECORD_BYTES {
            findings.damage("ends within a record");
            return Ok(None);
        }
        if let Some(request) = as_record(&record, findings) {
            return Ok(Some(request));
        }
    }
}

fn as_record(record: &[u8; RECORD_BYTES], findings: &mut Findings) -> Option<Record> {
    let long = |at: usize| record[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let size_bytes = record[40..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    let (direction, flush) = match record[46] {
        0 => (Direction::Read, false),
        1 => (Direction::Write, false),
        2 => (Direction::Write, true),
        other => {
            findings.pass_over(&format!("kind {other}"));
            return None;
        }
    };
    let place =
        long(32).checked_mul(512).and_then(|start| sectors_of(start, if flush { 0 } else { size_bytes.into() }));
    let Some((start_sector, sectors)) = place else {
        findings.damage("is beyond every device");
        return None;
    };
    let record = Record::new(long(0), direction, start_sector, sectors);
    Some(Record { response_ns: Some(long(24).saturating_sub(long(0))), flush, sync: record.sync || flush, ..record })
}
