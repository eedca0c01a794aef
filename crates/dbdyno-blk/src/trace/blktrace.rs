//! blktrace's binary files, one a CPU, merged by time. Layout of a record: `struct blk_io_trace` of the kernel's
//! `include/uapi/linux/blktrace_api.h`, 48 bytes in the order of bytes of the host that wrote it, then `pdu_len` more.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, BufRead, Read};

use super::record::{Action, BlockEvent, Findings, Record, read_whole};
use super::units::sectors_of;
use crate::queue::Direction;

/// `BLK_IO_TRACE_MAGIC` and version 7.
const MAGIC: u32 = 0x6561_7407;
const RECORD_BYTES: usize = 48;

/// Categories, above the low 16 bits of an action.
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const SYNC: u32 = 1 << 3;
const PC: u32 = 1 << 9;
const NOTIFY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;
const FUA: u32 = 1 << 15;

/// Whether a file begins as blktrace's do.
pub fn begins(head: &[u8]) -> bool {
    head.first_chunk::<4>().is_some_and(|four| [u32::from_le_bytes(*four), u32::from_be_bytes(*four)].contains(&MAGIC))
}

/// The files of a trace.
pub struct Files {
    inputs: Vec<Box<dyn BufRead>>,
    next: BinaryHeap<Reverse<(u64, usize, [u8; RECORD_BYTES])>>,
    begun: bool,
}

impl Files {
    pub fn new(files: Vec<Box<dyn BufRead>>) -> Self {
        Self { inputs: files, next: BinaryHeap::new(), begun: false }
    }

    /// The next event of a request of all files by time.
    pub fn next(&mut self, findings: &mut Findings) -> io::Result<Option<BlockEvent>> {
        if !self.begun {
            self.begun = true;
            for file in 0..self.inputs.len() {
                self.fetch(file, findings)?;
            }
        }
        while let Some(Reverse((_, file, record))) = self.next.pop() {
            findings.lines += 1;
            let block_event = event(&record, findings);
            self.fetch(file, findings)?;
            if block_event.is_some() {
                return Ok(block_event);
            }
        }
        Ok(None)
    }

    fn fetch(&mut self, file: usize, findings: &mut Findings) -> io::Result<()> {
        let from = &mut self.inputs[file];
        let mut record = [0; RECORD_BYTES];
        let read = read_whole(from, &mut record)?;
        if read == 0 {
            return Ok(());
        }
        if read < RECORD_BYTES || !begins(&record) {
            // Where the next one begins can't be known.
            findings.damage(if read < RECORD_BYTES {
                "ends within a record"
            } else {
                "is not a record; the rest of the file is left out"
            });
            return Ok(());
        }
        let field = Fields(&record);
        let pdu = u64::from(field.u16(46));
        io::copy(&mut from.by_ref().take(pdu), &mut io::sink())?;
        self.next.push(Reverse((field.u64(8), file, record)));
        Ok(())
    }
}

/// A record's numbers, in whichever order of bytes its magic has.
struct Fields<'a>(&'a [u8; RECORD_BYTES]);

impl Fields<'_> {
    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut fields = [0; N];
        fields.copy_from_slice(&self.0[at..at + N]);
        if self.0[0] == (MAGIC >> 24) as u8 {
            fields.reverse();
        }
        fields
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.bytes(at))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes(at))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes(at))
    }
}

fn event(record: &[u8; RECORD_BYTES], findings: &mut Findings) -> Option<BlockEvent> {
    let field = Fields(record);
    let (action, bytes) = (field.u32(28), field.u32(24));
    let category = action >> 16;
    if category & (NOTIFY | PC | DISCARD) != 0 {
        findings.pass_over(if category & DISCARD != 0 { "discard" } else { "neither read nor write" });
        return None;
    }
    let action = match action & 0xffff {
        1 => Action::Queued,
        6 => Action::Requeued,
        7 => Action::Issued,
        8 => Action::Completed,
        other => {
            findings.pass_over(&format!("action {other}"));
            return None;
        }
    };
    let flush = category & FLUSH != 0;
    if bytes == 0 && !flush {
        findings.pass_over("without data");
        return None;
    }
    let start = if bytes == 0 { Some(0) } else { field.u64(16).checked_mul(512) };
    let Some((start_sector, sectors)) = start.and_then(|start| sectors_of(start, bytes.into())) else {
        findings.damage("is beyond every device");
        return None;
    };
    let direction = if category & WRITE != 0 || bytes == 0 { Direction::Write } else { Direction::Read };
    let device = field.u32(36);
    let parsed = Record::new(field.u64(8), direction, start_sector, sectors);
    let what = Record {
        process: field.u32(32),
        device: findings.device(&format!("{},{}", device >> 20, device & 0xf_ffff)),
        sync: parsed.sync || flush || category & SYNC != 0,
        flush,
        fua: category & FUA != 0,
        ..parsed
    };
    Some(BlockEvent { action, what })
}
