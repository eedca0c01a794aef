//! Every format is read as its writer meant it, and what is odd about a trace is said.

use std::fmt::Write;
use std::io::{BufRead, BufReader, Cursor, Read};

use dbdyno_blk::queue::Direction;
use dbdyno_blk::trace::{Begin, Findings, Format, ReadOptions, Record, Trace, TraceError};
use proptest::prelude::*;

fn boxed(bytes: impl Into<Vec<u8>>) -> Box<dyn BufRead> {
    Box::new(Cursor::new(bytes.into()))
}

fn read_all(files: Vec<Box<dyn BufRead>>, ask: ReadOptions) -> (Vec<Record>, Findings) {
    let mut trace = Trace::open(files, ask).expect("a known format");
    let found = trace.by_ref().map(|record| record.expect("memory can be read")).collect();
    (found, trace.findings().clone())
}

fn read(text: &str) -> (Vec<Record>, Findings) {
    read_all(vec![boxed(text)], ReadOptions::default())
}

/// What is asked of the drive, and how long it took.
fn moves(records: &[Record]) -> Vec<(u64, char, u64, u32, Option<u64>)> {
    let letter = |one: &Record| {
        if one.flush {
            'F'
        } else if one.direction == Direction::Read {
            'R'
        } else {
            'W'
        }
    };
    records.iter().map(|one| (one.at_ns, letter(one), one.start_sector, one.sectors, one.response_ns)).collect()
}

#[test]
fn formats_of_a_line_a_request() {
    let cases = [
        (
            Format::Msr,
            "128166372003061629,web,0,Read,7014609920,24576,41286\n",
            (128_166_372_003_061_629 * 100, 'R', 13_700_410, 48, Some(4_128_600)),
        ),
        (
            Format::Alibaba,
            "419,W,8792731648,16384,1577808144360767\n",
            (1_577_808_144_360_767_000, 'W', 17_173_304, 32, None),
        ),
        (Format::Tencent, "1538323200,12910952,128,0,1063\n", (1_538_323_200_000_000_000, 'R', 12_910_952, 128, None)),
        (Format::Spc, "0,20941264,8192,W,0.551706\n", (551_706_000, 'W', 20_941_264, 16, None)),
        (Format::Disksim, "12.345678 0 1024 8 1\n", (12_345_678, 'R', 1024, 8, None)),
        (Format::Fio3, "fio version 3 iolog\n23 /f add\n137 /f read 4096 8192\n", (137_000, 'R', 8, 16, None)),
        (
            Format::Fio2,
            "fio version 2 iolog\n/f add\n/f open\n/f wait 12\n/f write 0 512\n",
            (12_000_000, 'W', 0, 1, None),
        ),
        (
            Format::Named,
            "time_ms,op,offset_bytes,size_bytes,response_us\n1.5,write,4096,4096,250\n",
            (1_500_000, 'W', 8, 8, Some(250_000)),
        ),
        (
            Format::Named,
            "arrival_ns,dispatch_ns,due_ns,completion_ns,lba,size_bytes,queue_depth,kind,error\n5,6,9,12,16,4096,1,read,0\n",
            (5, 'R', 16, 8, Some(7)),
        ),
    ];
    for (format, text, expected) in cases {
        assert_eq!(Format::of(text.as_bytes()), Some(format), "{text}");
        let (records, findings) = read(text);
        assert_eq!(moves(&records), [expected], "{text}");
        assert_eq!((findings.damaged, findings.requests), (0, 1), "{findings:?}");
    }
}

/// As Linux 6.18 wrote it while `dd oflag=direct,sync` wrote to a loop device with a write cache.
const TRACEFS: &str = "\
# tracer: nop
#
              dd-15288   [001] ..... 40822.612565: block_bio_queue: 7,0 WFS 0 + 128 [dd]
              dd-15288   [001] ..... 40822.612570: block_rq_issue: 7,0 WS 65536 () 0 + 128 be,0,4 [dd]
     ksoftirqd/0-14      [000] ..s.. 40822.612683: block_rq_complete: 7,0 WS () 0 + 128 be,0,4 [0]
    kworker/0:1H-44      [000] ..... 40822.612700: block_rq_issue: 7,0 FF 0 () 0 + 0 none,0,0 [kworker/0:1H]
     ksoftirqd/0-14      [000] ..s.. 40822.613125: block_rq_complete: 7,0 FF () 18446744073709551615 + 0 none,0,0 [0]
     ksoftirqd/0-14      [000] d.s1. 40822.613126: block_rq_complete: 7,0 WS () 0 + 0 be,0,4 [0]
              dd-15288   [001] ..... 40822.613160: block_bio_queue: 7,0 FWS 0 + 0 [dd]
    kworker/1:1H-9370    [001] ..... 40822.613172: block_rq_issue: 7,0 FF 0 () 0 + 0 none,0,0 [kworker/1:1H]
     ksoftirqd/0-14      [000] ..s.. 40822.614724: block_rq_complete: 7,0 FF () 18446744073709551615 + 0 none,0,0 [0]
     ksoftirqd/0-14      [000] d.s1. 40822.614727: block_rq_complete: 7,0 WS () 0 + 0 be,0,4 [0]
";

#[test]
fn what_processes_asked_for_and_what_the_drive_got_are_two_traces_of_one() {
    let start = 40_822_612_565_000;
    let (queued, findings) = read(TRACEFS);
    assert_eq!(moves(&queued), [(start, 'W', 0, 128, Some(118_000)), (start + 595_000, 'F', 0, 0, Some(1_564_000))]);
    assert_eq!((queued[0].process, queued[0].fua, queued[0].sync), (15_288, true, true));
    assert_eq!((findings.damaged, findings.without_end), (0, 0));
    let (issued, _) = read_all(vec![boxed(TRACEFS)], ReadOptions { begin: Begin::Issued, ..ReadOptions::default() });
    assert_eq!(
        moves(&issued),
        [
            (start + 5000, 'W', 0, 128, Some(113_000)),
            (start + 135_000, 'F', 0, 0, Some(425_000)),
            (start + 607_000, 'F', 0, 0, Some(1_552_000)),
        ]
    );
}

#[test]
fn merged_bios_end_with_their_request() {
    let text = "\
  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]
  8,0    3        2     0.000001829   697  G   W 223490 + 8 [kjournald]
  8,0    3        3     0.000010000   697  Q   W 223498 + 8 [kjournald]
  8,0    3        4     0.000010500   697  M   W 223498 + 8 [kjournald]
  8,0    3        5     0.000020000   697  Q  RS 4000 + 8 [mariadbd]
  8,0    3        6     0.000030000   697  D   W 223490 + 16 [kjournald]
  8,0    3        7     0.000530000     0  C   W 223490 + 16 [0]
CPU3 (sda):
 Reads Queued:           1,        4KiB  Writes Queued:           2,        8KiB
";
    let (records, findings) = read(text);
    let expected =
        [(0, 'W', 223_490, 8, Some(530_000)), (10_000, 'W', 223_498, 8, Some(520_000)), (20_000, 'R', 4000, 8, None)];
    assert_eq!(moves(&records), expected);
    assert_eq!(findings.without_end, 1);
    assert_eq!(findings.passed_over.get("M"), Some(&1));
    assert_eq!(findings.devices, ["8,0"]);
}

/// A record of blktrace, in the order of bytes that `big` says.
fn blktrace(at_ns: u64, action: u32, category: u32, sector: u64, bytes: u32, pdu: &[u8], big: bool) -> Vec<u8> {
    let mut found = Vec::new();
    let mut put = |number: u64, size: usize| {
        if big {
            found.extend(&number.to_be_bytes()[8 - size..]);
        } else {
            found.extend(&number.to_le_bytes()[..size]);
        }
    };
    let action = u64::from(action | category << 16);
    let fields = [(0x6561_7407, 4), (1, 4), (at_ns, 8), (sector, 8), (bytes.into(), 4), (action, 4), (77, 4)];
    for (number, size) in fields.into_iter().chain([(8 << 20 | 1, 4), (0, 4), (0, 2), (pdu.len() as u64, 2)]) {
        put(number, size);
    }
    found.extend(pdu);
    found
}

#[test]
fn files_of_several_processors_are_merged_by_time() {
    for big in [false, true] {
        let one = [
            blktrace(10, 1, 2 | 8, 100, 4096, &[], big),
            blktrace(15, 1, 1 << 10, 0, 0, b"mariadbd\0", big),
            blktrace(40, 8, 2 | 8, 100, 4096, &[], big),
        ];
        let other = [blktrace(20, 1, 1, 5000, 8192, &[], big), blktrace(70, 8, 1, 5000, 8192, &[], big)];
        let (records, findings) = read_all(vec![boxed(one.concat()), boxed(other.concat())], ReadOptions::default());
        assert_eq!(moves(&records), [(10, 'W', 100, 8, Some(30)), (20, 'R', 5000, 16, Some(50))]);
        assert!(records[0].sync && records[0].process == 77);
        assert_eq!((findings.damaged, &findings.devices[..]), (0, &["8,1".to_owned()][..]));
    }
}

#[test]
fn what_is_odd_is_said_and_nothing_is_guessed() {
    let text = "5.0 0 1024 8 1\nx 0 1 8 1\n3.0 0 2048 8 0\n6.0 0 99999999 8 0\n7.0 1 0 8\n8.0 1 0 8 0\n";
    let (records, findings) =
        read_all(vec![boxed(text)], ReadOptions { device_sectors: Some(4096), ..ReadOptions::default() });
    assert_eq!(moves(&records).iter().map(|one| one.0 / 1_000_000).collect::<Vec<_>>(), [5, 3, 8]);
    assert_eq!((findings.lines, findings.requests, findings.damaged), (6, 3, 2));
    assert_eq!(findings.first_damaged.iter().map(|one| one.line).collect::<Vec<_>>(), [2, 5]);
    assert_eq!((findings.backwards, findings.backwards_ns_max, findings.beyond_device), (1, 2_000_000, 1));
    assert_eq!(findings.devices, ["0", "1"]);
}

#[test]
fn a_trace_of_nothing_and_one_like_no_format() {
    assert_eq!(read(""), (Vec::new(), Findings::default()));
    let refused =
        |text: &str| Trace::open(vec![boxed(text)], ReadOptions::default()).err().map(|error| error.to_string());
    assert!(refused("Lorem ipsum\n").is_some_and(|said| said.contains("one of: blktrace, blkparse")));
    let csv = ReadOptions { format: Some(Format::Named), ..ReadOptions::default() };
    let lacking = Trace::open(vec![boxed("time_s,offset,op\n")], csv).err().map(|error| error.to_string());
    assert!(lacking.is_some_and(|said| {
        said.starts_with("line 1 names no column for the size; known names are time or timestamp")
    }));
    assert!(matches!(
        Trace::open(vec![boxed("1 0 1 8 1\n"), boxed("")], ReadOptions::default()),
        Err(TraceError::Several)
    ));
}

#[test]
fn a_line_without_end_and_requests_without_ends_take_little_memory() {
    let lines = 200_000_u64; // what is kept is bounded by the requests in flight, not by lines
    let mut text = String::new();
    for n in 0..lines {
        let _ = writeln!(text, "8,0 0 {n} {}.{:09} 5 Q R {} + 8 [x]", n / 1000, n % 1000, n * 8);
    }
    let endless = Box::new(BufReader::new(Cursor::new(text).chain(std::io::repeat(b'9').take(1 << 20))));
    let (records, findings) = read_all(vec![endless], ReadOptions::default());
    assert_eq!((records.len() as u64, findings.without_end, findings.damaged), (lines, lines, 1));
}

fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::sample::select(vec![
        "8,0",
        "Q",
        "C",
        "D",
        "R",
        "FWFS",
        "W",
        "RS",
        "+",
        "8",
        "0",
        "18446744073709551615",
        "0.000000001",
        ",",
        "\n",
        " ",
        "read",
        "fio version 3 iolog\n",
        "fio version 2 iolog\n",
        "/f",
        "wait",
        "add",
        "sync",
        ": block_rq_issue: ",
        "-1",
        "1e9",
        "x[0]",
        "time_s,op,offset,size\n",
        "dbdyno-trace-1\n\0",
        "\u{7}tae",
        "0x1",
        "9999999999999999999999",
    ]);
    prop::collection::vec(prop_oneof![4 => words.prop_map(|word| word.as_bytes().to_vec()), 1 => prop::collection::vec(any::<u8>(), 0..60)], 0..60)
        .prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn no_text_brings_a_reader_down(bytes in pieces(), place in 0..=Format::ALL.len()) {
        let ask = ReadOptions { format: Format::ALL.get(place).map(|(_, format)| *format), ..ReadOptions::default() };
        if let Ok(mut trace) = Trace::open(vec![boxed(bytes)], ask) {
            let mut requests = 0;
            for record in trace.by_ref() {
                let record = record.expect("memory can be read");
                requests += 1;
                prop_assert!(record.start_sector <= 1 << 54 && (record.sectors > 0 || record.flush));
            }
            let findings = trace.findings();
            prop_assert_eq!(findings.requests, requests);
            prop_assert!(findings.requests + findings.damaged <= findings.lines + 1);
        }
    }
}
