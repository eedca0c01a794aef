//! The figures of an emulated disk's own trace, as `dbdyno disk trace` writes it: CSV, or 48 bytes a request.
//!
//! The disk knows nothing of the block layer's queue, so there are no times in the queue. A request counts as issued
//! when it reached the disk's process.

use dbdyno_common::results::BlockTrace;
use serde_json::json;

use crate::cli::DiskArgs;
use crate::error::ProbeError;
use crate::figures::Figures;
use crate::requests::{Completed, Issued};
use crate::tracefs::event::Kind;

const MAGIC: &[u8] = b"dbdyno-trace-1\n\0";
const RECORD_BYTES: usize = 48;
const COLUMNS: &str = "arrival_ns,dispatch_ns,due_ns,completion_ns,lba,size_bytes,queue_depth,kind,error";

/// `dbdyno-probe disk`.
pub fn summarise(args: &DiskArgs) -> Result<(), ProbeError> {
    let bytes = std::fs::read(&args.file).map_err(ProbeError::at(&args.file))?;
    let requests =
        parse(&bytes).map_err(|(line, reason)| ProbeError::Trace { path: args.file.clone(), line, reason })?;
    let figures = figures(requests);
    let trace = BlockTrace { source: Some("emulated disk".into()), ..figures.figures(args.window_ns, 0) };
    args.outputs.write(&json!(trace), &figures)
}

/// Requests in the order of their completion, as figures.
fn figures(mut requests: Vec<Completed>) -> Figures {
    let mut figures = Figures::default();
    let mut done = requests.clone();
    requests.sort_by_key(|request| request.issued.at_ns);
    done.sort_by_key(|request| request.at_ns);
    let mut done = done.into_iter().peekable();
    for request in requests {
        while let Some(earlier) = done.next_if(|completion| completion.at_ns < request.issued.at_ns) {
            figures.completed(&earlier);
        }
        figures.issued(&request.issued);
    }
    done.for_each(|request| figures.completed(&request));
    figures
}

type Wrong = (usize, String);

/// Every request of a trace; an error has the line, or the record, counted from 1.
fn parse(bytes: &[u8]) -> Result<Vec<Completed>, Wrong> {
    if let Some(records) = bytes.strip_prefix(MAGIC) {
        // A record that is cut off at the end was being written when the disk ended.
        let numbered = records.chunks_exact(RECORD_BYTES).zip(1..);
        return numbered
            .map(|(record, number)| from_record(record).ok_or_else(|| (number, "this record has no such kind".into())))
            .collect();
    }
    let text = std::str::from_utf8(bytes).map_err(|_| (1, "this is not a trace of a disk".to_owned()))?;
    let mut lines = text.split_inclusive('\n').zip(1..);
    if lines.next().is_none_or(|(first, _)| first.trim_end() != COLUMNS) {
        return Err((1, format!("this is not a trace of a disk: its first line should be {COLUMNS}")));
    }
    lines
        .filter(|(line, _)| line.ends_with('\n'))
        .map(|(line, number)| {
            from_line(line.trim_end()).ok_or_else(|| (number, format!("{:?} is not a request", line.trim_end())))
        })
        .collect()
}

fn from_line(line: &str) -> Option<Completed> {
    let cells: Vec<_> = line.split(',').collect();
    let [arrival, _, _, completion, lba, size, depth, kind, error] = cells[..] else { return None };
    let kind = Kind::ALL.iter().find(|(_, word)| *word == kind)?.0;
    let number = |text: &str| text.parse::<u64>().ok();
    let [arrival, completion, lba, size] = [number(arrival)?, number(completion)?, number(lba)?, number(size)?];
    Some(request([arrival, completion, lba, size], depth.parse().ok()?, kind, error != "0"))
}

fn from_record(record: &[u8]) -> Option<Completed> {
    let long = |at: usize| Some(u64::from_le_bytes(record.get(at..at + 8)?.try_into().ok()?));
    let size = u32::from_le_bytes(record.get(40..44)?.try_into().ok()?);
    let depth = u16::from_le_bytes(record.get(44..46)?.try_into().ok()?);
    let kind = [Kind::Read, Kind::Write, Kind::Flush, Kind::Discard].get(usize::from(*record.get(46)?)).copied()?;
    Some(request([long(0)?, long(24)?, long(32)?, size.into()], depth.into(), kind, *record.get(47)? != 0))
}

fn request([arrival, completion, lba, size]: [u64; 4], depth: u32, kind: Kind, failed: bool) -> Completed {
    let (at_ns, sector, bytes) = (arrival, lba.min(u64::MAX / 512), size);
    let issued = Issued { at_ns, kind, sector, bytes, queued_ns: None, bios: 0, depth, waiting: 0 };
    Completed { at_ns: completion, issued, failed }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINES: &str = "5,6,7,30,8,4096,1,write,0\n10,11,12,20,0,8192,2,read,1\n40,41,42,43,0,0,1,flush,0\n";

    fn binary() -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for (times, lba, size, depth, kind, error) in [
            ([5u64, 6, 7, 30], 8u64, 4096u32, 1u16, 1u8, 0u8),
            ([10, 11, 12, 20], 0, 8192, 2, 0, 1),
            ([40, 41, 42, 43], 0, 0, 1, 2, 0),
        ] {
            bytes.extend(times.iter().flat_map(|time| time.to_le_bytes()));
            bytes.extend(lba.to_le_bytes());
            bytes.extend(size.to_le_bytes());
            bytes.extend(depth.to_le_bytes());
            bytes.extend([kind, error]);
        }
        bytes
    }

    #[test]
    fn both_formats_tell_the_same() {
        let csv = parse(format!("{COLUMNS}\n{LINES}").as_bytes()).unwrap();
        assert_eq!(csv, parse(&binary()).unwrap());
        let summary = json!(figures(csv).figures(None, 0));
        assert_eq!(summary["requests"]["flush"], 1);
        assert_eq!(summary["device_ms"]["write"]["mean"], 25e-6);
        assert_eq!(summary["device_ms"]["read"]["mean"], 10e-6);
        // From the end of the write at 8192 back to 0; flushes have no address.
        assert_eq!((&summary["seek_bytes_mean"], &summary["sorted_runs"]), (&json!(8192.0), &json!(2)));
        assert_eq!((&summary["errors"], &summary["queue_ms"]["all"]["mean"]), (&json!(1), &json!(null)));
    }

    #[test]
    fn what_is_cut_off_at_the_end_is_left_out() {
        let csv = format!("{COLUMNS}\n{LINES}99,1");
        assert_eq!(parse(csv.as_bytes()).unwrap().len(), 3);
        assert_eq!(parse(&binary()[..16 + 100]).unwrap().len(), 2);
    }

    #[test]
    fn a_mistake_is_named_by_its_line() {
        let csv = format!("{COLUMNS}\n{LINES}1,2,3\n");
        assert_eq!(parse(csv.as_bytes()).unwrap_err(), (5, "\"1,2,3\" is not a request".into()));
        assert_eq!(parse(b"a,b\n").unwrap_err().0, 1);
        let mut bytes = binary();
        bytes[16 + 46] = 9;
        assert_eq!(parse(&bytes).unwrap_err().0, 1);
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300), text in ".{0,200}") {
            let _ = parse(&bytes);
            if let Ok(requests) = parse(&[MAGIC, &bytes[..]].concat()) {
                prop_assert!(requests.len() <= 300 / RECORD_BYTES);
            }
            let _ = parse(format!("{COLUMNS}\n{text}\n").as_bytes());
        }
    }
}
