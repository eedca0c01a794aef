//! Every format is read as its writer meant it, and what is odd about a trace is said. What is damaged, endless or
//! hostile brings no reader down, is said, and takes no more memory than a good trace.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Cursor, Read};

use dbdyno_blk::queue::Direction;
use dbdyno_blk::source::{Pace, Replay, Source, Step};
use dbdyno_blk::trace::{Begin, Contents, Findings, Format, ReadOptions, Record, Trace, TraceError};
use proptest::prelude::*;

fn boxed(bytes: impl Into<Vec<u8>>) -> Box<dyn BufRead> {
    Box::new(Cursor::new(bytes.into()))
}

fn read_all(files: Vec<Box<dyn BufRead>>, ask: ReadOptions) -> (Vec<Record>, Findings) {
    let mut trace = Trace::open(files, ask).expect("a known format");
    let records = trace.by_ref().map(|record| record.expect("memory can be read")).collect();
    (records, trace.findings().clone())
}

fn read(text: &str) -> (Vec<Record>, Findings) {
    read_all(vec![boxed(text)], ReadOptions::default())
}

/// What is asked of the drive, and how long it took.
fn moves(records: &[Record]) -> Vec<(u64, char, u64, u32, Option<u64>)> {
    let letter = |record: &Record| {
        if record.flush {
            'F'
        } else if record.direction == Direction::Read {
            'R'
        } else {
            'W'
        }
    };
    records
        .iter()
        .map(|record| (record.at_ns, letter(record), record.start_sector, record.sectors, record.response_ns))
        .collect()
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
    let mut buffer = Vec::new();
    let mut put = |number: u64, size: usize| {
        if big {
            buffer.extend(&number.to_be_bytes()[8 - size..]);
        } else {
            buffer.extend(&number.to_le_bytes()[..size]);
        }
    };
    let action = u64::from(action | category << 16);
    let fields = [(0x6561_7407, 4), (1, 4), (at_ns, 8), (sector, 8), (bytes.into(), 4), (action, 4), (77, 4)];
    for (number, size) in fields.into_iter().chain([(8 << 20 | 1, 4), (0, 4), (0, 2), (pdu.len() as u64, 2)]) {
        put(number, size);
    }
    buffer.extend(pdu);
    buffer
}

#[test]
fn files_of_several_processors_are_merged_by_time() {
    for big in [false, true] {
        let first = [
            blktrace(10, 1, 2 | 8, 100, 4096, &[], big),
            blktrace(15, 1, 1 << 10, 0, 0, b"mariadbd\0", big),
            blktrace(40, 8, 2 | 8, 100, 4096, &[], big),
        ];
        let second = [blktrace(20, 1, 1, 5000, 8192, &[], big), blktrace(70, 8, 1, 5000, 8192, &[], big)];
        let (records, findings) = read_all(vec![boxed(first.concat()), boxed(second.concat())], ReadOptions::default());
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
    assert_eq!(moves(&records).iter().map(|row| row.0 / 1_000_000).collect::<Vec<_>>(), [5, 3, 8]);
    assert_eq!((findings.lines, findings.requests, findings.damaged), (6, 3, 2));
    assert_eq!(findings.first_damaged.iter().map(|damage| damage.line).collect::<Vec<_>>(), [2, 5]);
    assert_eq!((findings.backwards, findings.backwards_ns_max, findings.beyond_device), (1, 2_000_000, 1));
    assert_eq!(findings.devices, ["0", "1"]);
}

#[test]
fn a_trace_of_nothing_and_one_like_no_format() {
    assert_eq!(read(""), (Vec::new(), Findings::default()));
    let refused =
        |text: &str| Trace::open(vec![boxed(text)], ReadOptions::default()).err().map(|error| error.to_string());
    assert!(refused("Lorem ipsum\n").is_some_and(|message| message.contains("one of: blktrace, blkparse")));
    let csv = ReadOptions { format: Some(Format::Named), ..ReadOptions::default() };
    let lacking = Trace::open(vec![boxed("time_s,offset,op\n")], csv).err().map(|error| error.to_string());
    assert!(lacking.is_some_and(|message| {
        message.starts_with("line 1 names no column for the size; known names are time or timestamp")
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

const REQUESTS: u64 = 60;

/// A good trace of a format, of [`REQUESTS`] requests.
fn good(format: Format) -> Vec<u8> {
    if matches!(format, Format::Blktrace | Format::Disk) {
        return binary(format);
    }
    let mut text = match format {
        Format::Fio2 => "fio version 2 iolog\n/f add\n/f open\n",
        Format::Fio3 => "fio version 3 iolog\n0 /f add\n",
        Format::Named => "time_us,op,offset_bytes,size_bytes,response_us,process\n",
        Format::Tracefs => "# tracer: nop\n",
        _ => "",
    }
    .to_owned();
    for n in 0..REQUESTS {
        // Writing to a string can't fail.
        let _ = match format {
            Format::Blkparse => {
                writeln!(text, "8,0 1 {n} 0.{n:09} 5 Q WS {} + 8 [x]\n8,0 1 {n} 1.0 0 C WS {} + 8 [0]", n * 8, n * 8)
            }
            Format::Tracefs => writeln!(text, "  x-5 [001] ..... 1.{n:06}: block_bio_queue: 7,0 R {} + 8 [x]", n * 8),
            Format::Fio2 => writeln!(text, "/f wait {n}\n/f write {} 4096", n * 4096),
            Format::Fio3 => writeln!(text, "{n} /f read {} 4096", n * 4096),
            Format::Disksim => writeln!(text, "{n}.5 0 {} 8 1", n * 8),
            Format::Msr => writeln!(text, "{},h,0,Read,{},4096,10", 128_166_372_003_061_629 + n, n * 4096),
            Format::Alibaba => writeln!(text, "419,W,{},4096,{n}", n * 4096),
            Format::Tencent => writeln!(text, "{n},{},8,0,1063", n * 8),
            Format::Systor17 => writeln!(text, "{n}.25,0.0005,R,4,{},4096", n * 4096),
            Format::Fiu => writeln!(text, "{} 7 gzip {} 8 R 6 0 56f1", 89_968_195_792_462 + n, n * 8),
            Format::Biosnoop => writeln!(text, "{n}.25 x y 7 sda W {} 4096 0.5", n * 8),
            Format::Own => writeln!(text, "{n}.000000001 D W {} + 8", n * 8),
            Format::Spc => writeln!(text, "0,{},4096,W,{n}.5", n * 8),
            _ => writeln!(text, "{n},write,{},4096,10,7", n * 4096),
        };
    }
    text.into_bytes()
}

fn binary(format: Format) -> Vec<u8> {
    let mut bytes = if format == Format::Disk { b"dbdyno-trace-1\n\0".to_vec() } else { Vec::new() };
    for n in 0..REQUESTS {
        if format == Format::Disk {
            for number in [n, n, n, n + 5, n * 8] {
                bytes.extend(number.to_le_bytes());
            }
            bytes.extend([0, 16, 0, 0, 1, 0, (n % 3) as u8, 0]);
        } else {
            let action: u32 = 1 | 2 << 16;
            bytes.extend(0x6561_7407_u32.to_le_bytes());
            bytes.extend(1_u32.to_le_bytes());
            bytes.extend(n.to_le_bytes());
            bytes.extend((n * 8).to_le_bytes());
            for number in [4096, action, 5, 8 << 20, 0, 0] {
                bytes.extend(number.to_le_bytes());
            }
        }
    }
    bytes
}

fn read_as(bytes: impl Read + 'static, format: Option<Format>) -> Option<(Vec<Record>, Findings)> {
    let ask = ReadOptions { format, ..ReadOptions::default() };
    let mut trace = Trace::open(vec![Box::new(BufReader::new(bytes))], ask).ok()?;
    let records = trace.by_ref().map(|record| record.expect("memory can be read")).collect();
    Some((records, trace.findings().clone()))
}

/// Takes every step of a closed replay, each request being served at once; returns how many there were.
fn replayed(records: Vec<Record>, pace: Pace) -> u64 {
    let mut replay = Replay::new(records.into_iter(), pace);
    let (mut now_ns, mut bios) = (0, 0);
    while let Some(due_ns) = replay.next_due() {
        now_ns = due_ns.max(now_ns);
        while let Some(step) = replay.step(now_ns) {
            if let Step::Submit(bio) = step {
                bios += 1;
                replay.finished(now_ns, &bio);
            }
        }
    }
    bios
}

struct Chances(u64);

impl Chances {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Pieces that have brought readers down elsewhere.
const PIECES: [&[u8]; 12] = [
    b"\0",
    b"\n",
    b"\r\n",
    b",",
    b" ",
    b"-1",
    b"18446744073709551616",
    b"9999999999999999999999999999999999999999",
    b"1e308",
    b"\xff\xfe",
    b"4294967296",
    b"+",
];

fn damaged(mut bytes: Vec<u8>, chances: &mut Chances) -> Vec<u8> {
    for _ in 0..=chances.below(8) {
        let place = chances.below(bytes.len().max(1)).min(bytes.len());
        match chances.below(6) {
            0 => bytes.truncate(place),
            1 if place < bytes.len() => bytes[place] ^= 1 << chances.below(8),
            2 => {
                bytes.splice(place..place, PIECES[chances.below(PIECES.len())].iter().copied());
            }
            3 => {
                let end = (place + chances.below(40)).min(bytes.len());
                bytes.drain(place..end);
            }
            4 => {
                let end = (place + chances.below(200)).min(bytes.len());
                let part = bytes[place..end].to_vec();
                let to = chances.below(bytes.len() + 1);
                bytes.splice(to..to, part);
            }
            _ => {
                let end = (place + 8).min(bytes.len());
                bytes[place..end].fill([0, 0xff, b'9', b' '][chances.below(4)]);
            }
        }
    }
    bytes
}

#[test]
fn good_traces_are_read_whole() {
    for (name, format) in Format::ALL {
        assert_eq!(Format::of(&good(format)), Some(format), "{name}");
        let (records, findings) = read_as(Cursor::new(good(format)), None).expect("it is known");
        assert_eq!((records.len() as u64, findings.damaged), (REQUESTS, 0), "{name}: {findings:?}");
    }
}

#[test]
fn thousands_of_damaged_traces_of_every_format_bring_no_reader_down() {
    let mut chances = Chances(1);
    for (name, format) in Format::ALL {
        let whole = good(format);
        let mut odd = 0;
        for _ in 0..500 {
            let bytes = damaged(whole.clone(), &mut chances);
            let Some((records, findings)) = read_as(Cursor::new(bytes), Some(format)) else { continue };
            assert_eq!(findings.requests, records.len() as u64, "{name}");
            assert!(findings.first_damaged.len() as u64 <= findings.damaged, "{name}");
            for record in &records {
                assert!(record.start_sector <= 1 << 54 && record.sectors <= 1 << 21, "{name}: {record:?}");
            }
            odd += u64::from(findings.damaged > 0);
            let requests = records.len() as u64;
            assert!(replayed(records.clone(), Pace::Closed) >= requests, "{name}");
            assert!(replayed(records, Pace::Open { speed: 2.0 }) >= requests, "{name}");
        }
        assert!(odd > 50, "{name}: {odd} of 500 were seen to be damaged");
    }
}

#[test]
fn ends_of_lines_are_those_of_any_system() {
    for (name, format) in Format::ALL {
        if !matches!(format, Format::Blktrace | Format::Disk) {
            let text = String::from_utf8(good(format)).expect("text").replace('\n', "\r\n");
            let (records, findings) = read_as(Cursor::new(text), None).expect("it is known");
            assert_eq!((records.len() as u64, findings.damaged), (REQUESTS, 0), "{name}: {findings:?}");
        }
    }
}

#[test]
fn what_is_packed_is_refused_with_the_way_to_unpack_it() {
    for (bytes, program) in [(&b"\x1f\x8b\x08\0"[..], "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ\0", "xz")] {
        let files: Vec<Box<dyn BufRead>> = vec![Box::new(Cursor::new(bytes))];
        let message = Trace::open(files, ReadOptions::default()).err().expect("it is refused").to_string();
        assert_eq!(message, format!("it is compressed by {program}; unpack it first: {program} -dc FILE > trace"));
    }
}

#[test]
fn garbage_is_like_no_format() {
    let bytes: Vec<u8> = (0..4096_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
    assert!(read_as(Cursor::new(bytes), None).is_none());
}

#[test]
fn what_no_device_and_no_process_does_is_damage() {
    let text = "time_s,op,offset,size\n0,r,0,512\n1,r,0,1073742336\n3200000000,r,0,512\n18446744073709551616,r,0,512\n\
                1,r,18446744073709551615,512\n2,w,0,512\n";
    let (records, findings) = read_as(Cursor::new(text), None).expect("it is known");
    assert_eq!(records.iter().map(|record| record.at_ns).collect::<Vec<_>>(), [0, 2_000_000_000]);
    let why: Vec<_> = findings.first_damaged.iter().map(|damage| (damage.line, damage.why.as_str())).collect();
    let expected = [
        (3, "asks for more than 1 GiB at once"),
        (4, "comes 100 years after the first request"),
        (5, "has no number: \"18446744073709551616\""),
        (6, "is beyond every device"),
    ];
    assert_eq!(why, expected);
}

#[test]
fn a_line_of_a_megabyte_is_one_damaged_line() {
    let text = format!("{}{}\n{}", "1.5 0 8 8 1\n", "7".repeat(1 << 20), "2.5 0 16 8 1\n");
    let (records, findings) = read_as(Cursor::new(text), None).expect("it is known");
    assert_eq!((records.len(), findings.damaged, findings.first_damaged[0].line), (2, 1, 2));
}

#[test]
fn what_a_recording_says_of_itself_is_kept() {
    let lines = "8,0 0 1 0.0 7 Q R 8 + 8 [my (sql)]\n8,0 0 2 0.1 0 C R 8 + 8 [0]\n";
    let (records, findings) = read_as(Cursor::new(format!("# a\n# lost_events: 12   \n{lines}")), None).expect("known");
    assert_eq!((records.len(), findings.lost_events, findings.cut_off), (1, 12, false));
    assert_eq!(findings.processes.get(&7).map(String::as_str), Some("my (sql)"));
    assert!(findings.passed_over.is_empty(), "{findings:?}");
    let (_, findings) = read_as(Cursor::new(format!("# lost_events: unknown\n{lines}")), None).expect("known");
    assert!(findings.cut_off);
    let (_, findings) =
        read_as(Cursor::new("# tracer: nop\nCPU:1 [LOST 34 EVENTS]\n"), Some(Format::Tracefs)).expect("known");
    assert_eq!(findings.lost_events, 34);
}

#[test]
fn contents_are_sums_over_a_trace() {
    let text = "time_s,op,offset,size,response_ms,pid,device\n0,w,0,4096,1,7,a\n1,w,4096,4096,3,7,a\n2,r,0,8192,2,9,b\n4,f,0,0,2,9,b\n";
    let trace = Trace::open(vec![Box::new(Cursor::new(text))], ReadOptions::default()).expect("known");
    let contents = Contents::of(trace, &mut || true).expect("memory can be read");
    assert_eq!((contents.format, contents.span_s, contents.end_sector, contents.flushes), ("csv", 4.0, 16, 1));
    assert_eq!(
        (contents.writes.requests, contents.writes.bytes, contents.writes.sequential, contents.writes.sync),
        (2, 8192, 1, 0)
    );
    assert_eq!((contents.reads.sizes.as_slice(), contents.reads.sync), (&[(8192, 1)][..], 1));
    assert_eq!((contents.response_ms_mean, contents.outstanding_mean), (Some(2.0), Some(0.002)));
    assert_eq!(contents.devices, [("a".to_owned(), 2), ("b".to_owned(), 2)]);
    assert_eq!(
        contents.processes.iter().map(|process| (process.process, process.requests)).collect::<Vec<_>>(),
        [(7, 2), (9, 2)]
    );
}

/// Lines of a trace that is made while it is read.
struct Endless {
    line: Vec<u8>,
    at: usize,
    number: u64,
    end: u64,
}

impl Read for Endless {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.line.len() {
            if self.number == self.end {
                return Ok(0);
            }
            let (n, depth) = (self.number, 16);
            let (sector, ended) = (|n: u64| n * 7919 % 100_000_000 * 8, n.saturating_sub(depth));
            self.line.clear();
            let lines = format!(
                "8,0 1 {n} {}.{:09} {} Q WS {} + 8 [mariadbd]\n8,0 1 {n} {}.{:09} 0 C WS {} + 8 [0]\n",
                n / 10_000,
                n % 10_000 * 100_000,
                n % 64,
                sector(n),
                n / 10_000,
                n % 10_000 * 100_000 + 50,
                sector(ended),
            );
            self.line.extend(lines.as_bytes());
            (self.at, self.number) = (0, n + 1);
        }
        let length = into.len().min(self.line.len() - self.at);
        into[..length].copy_from_slice(&self.line[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}

/// The most memory that this process has had, bytes.
fn memory_bytes_max() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = text.lines().find(|line| line.starts_with("VmHWM")).expect("its peak");
    line.split_ascii_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number") * 1024
}

#[test]
#[ignore = "ten million requests, 900 MB of text: some 20 s in a release build"]
fn ten_million_requests_take_the_memory_of_few() {
    let requests = 10_000_000;
    let endless = || Endless { line: Vec::new(), at: 0, number: 0, end: requests };
    let trace = Trace::open(vec![Box::new(BufReader::new(endless()))], ReadOptions::default()).expect("known");
    let contents = Contents::of(trace, &mut || true).expect("it can be read");
    assert_eq!((contents.writes.requests, contents.findings.damaged, contents.processes_count), (requests, 0, 64));
    let trace = Trace::open(vec![Box::new(BufReader::new(endless()))], ReadOptions::default()).expect("known");
    let mut replay = Replay::new(trace.map(|record| record.expect("it can be read")), Pace::Closed);
    let (mut now_ns, mut submissions) = (0, 0);
    while let Some(due_ns) = replay.next_due() {
        now_ns = due_ns.max(now_ns);
        while let Some(step) = replay.step(now_ns) {
            if let Step::Submit(bio) = step {
                assert_eq!(bio.direction, Direction::Write);
                submissions += 1;
                replay.finished(now_ns, &bio);
            }
        }
    }
    assert_eq!(submissions, requests);
    let memory = memory_bytes_max();
    println!("peak memory {} MB", memory / 1_000_000);
    assert!(memory < 100_000_000, "{memory} bytes");
}
