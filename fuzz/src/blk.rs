//! What is checked of the reader of block traces.

use std::io::Cursor;

use dbdyno_blk::source::{Pace, Replay, Source, Step};
use dbdyno_blk::trace::{Format, ReadOptions, Trace};

/// Traces of block I/O: the first byte chooses the format, or leaves it to how the rest begins. What is read is
/// replayed.
///
/// # Panics
/// The number of requests is not that of the records.
pub fn trace(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let ask = ReadOptions {
        format: Format::ALL.get(usize::from(*first)).map(|(_, format)| *format),
        ..ReadOptions::default()
    };
    let Ok(mut trace) = Trace::open(vec![Box::new(Cursor::new(rest.to_vec()))], ask) else { return };
    let records: Vec<_> = trace.by_ref().map(|record| record.expect("memory can be read")).collect();
    assert_eq!(trace.findings().requests, records.len() as u64);
    let mut replay = Replay::new(records.into_iter(), Pace::Closed);
    let mut now_ns = 0;
    while let Some(due_ns) = replay.next_due() {
        now_ns = due_ns.max(now_ns);
        while let Some(step) = replay.step(now_ns) {
            if let Step::Submit(bio) = step {
                replay.finished(now_ns, &bio);
            }
        }
    }
}
