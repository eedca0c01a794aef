//! What is damaged, endless or hostile brings no reader down, is said, and takes no more memory than a good trace.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Cursor, Read};

use dbdyno_blk::queue::Direction;
use dbdyno_blk::source::{Pace, Replay, Source, Step};
use dbdyno_blk::trace::{Contents, Findings, Format, ReadOptions, Record, Trace};

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

fn read(bytes: impl Read + 'static, format: Option<Format>) -> Option<(Vec<Record>, Findings)> {
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
        let (records, findings) = read(Cursor::new(good(format)), None).expect("it is known");
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
            let Some((records, findings)) = read(Cursor::new(bytes), Some(format)) else { continue };
            assert_eq!(findings.requests, records.len() as u64, "{name}");
            assert!(findings.first_damaged.len() as u64 <= findings.damaged, "{name}");
            for record in &records {
                assert!(record.start_sector <= 1 << 54 && record.sectors <= 1 << 21, "{name}: {record:?}");
            }
            odd += u64::from(findings.damaged > 0);
            let asked = records.len() as u64;
            assert!(replayed(records.clone(), Pace::Closed) >= asked, "{name}");
            assert!(replayed(records, Pace::Open { speed: 2.0 }) >= asked, "{name}");
        }
        assert!(odd > 50, "{name}: {odd} of 500 were seen to be damaged");
    }
}

#[test]
fn ends_of_lines_are_those_of_any_system() {
    for (name, format) in Format::ALL {
        if !matches!(format, Format::Blktrace | Format::Disk) {
            let text = String::from_utf8(good(format)).expect("text").replace('\n', "\r\n");
            let (records, findings) = read(Cursor::new(text), None).expect("it is known");
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
    assert!(read(Cursor::new(bytes), None).is_none());
}

#[test]
fn what_no_device_and_no_process_does_is_damage() {
    let text = "time_s,op,offset,size\n0,r,0,512\n1,r,0,1073742336\n3200000000,r,0,512\n18446744073709551616,r,0,512\n\
                1,r,18446744073709551615,512\n2,w,0,512\n";
    let (records, findings) = read(Cursor::new(text), None).expect("it is known");
    assert_eq!(records.iter().map(|one| one.at_ns).collect::<Vec<_>>(), [0, 2_000_000_000]);
    let why: Vec<_> = findings.first_damaged.iter().map(|one| (one.line, one.why.as_str())).collect();
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
    let (records, findings) = read(Cursor::new(text), None).expect("it is known");
    assert_eq!((records.len(), findings.damaged, findings.first_damaged[0].line), (2, 1, 2));
}

#[test]
fn what_a_recording_says_of_itself_is_kept() {
    let lines = "8,0 0 1 0.0 7 Q R 8 + 8 [my (sql)]\n8,0 0 2 0.1 0 C R 8 + 8 [0]\n";
    let (records, findings) = read(Cursor::new(format!("# a\n# lost_events: 12   \n{lines}")), None).expect("known");
    assert_eq!((records.len(), findings.lost_events, findings.cut_off), (1, 12, false));
    assert_eq!(findings.processes.get(&7).map(String::as_str), Some("my (sql)"));
    assert!(findings.passed_over.is_empty(), "{findings:?}");
    let (_, findings) = read(Cursor::new(format!("# lost_events: unknown\n{lines}")), None).expect("known");
    assert!(findings.cut_off);
    let (_, findings) =
        read(Cursor::new("# tracer: nop\nCPU:1 [LOST 34 EVENTS]\n"), Some(Format::Tracefs)).expect("known");
    assert_eq!(findings.lost_events, 34);
}

#[test]
fn contents_are_sums_over_a_trace() {
    let text = "time_s,op,offset,size,response_ms,pid,device\n0,w,0,4096,1,7,a\n1,w,4096,4096,3,7,a\n2,r,0,8192,2,9,b\n4,f,0,0,2,9,b\n";
    let trace = Trace::open(vec![Box::new(Cursor::new(text))], ReadOptions::default()).expect("known");
    let found = Contents::of(trace, &mut || true).expect("memory can be read");
    assert_eq!((found.format, found.span_s, found.end_sector, found.flushes), ("csv", 4.0, 16, 1));
    assert_eq!(
        (found.writes.requests, found.writes.bytes, found.writes.sequential, found.writes.sync),
        (2, 8192, 1, 0)
    );
    assert_eq!((found.reads.sizes.as_slice(), found.reads.sync), (&[(8192, 1)][..], 1));
    assert_eq!((found.response_ms_mean, found.outstanding_mean), (Some(2.0), Some(0.002)));
    assert_eq!(found.devices, [("a".to_owned(), 2), ("b".to_owned(), 2)]);
    assert_eq!(found.processes.iter().map(|one| (one.process, one.requests)).collect::<Vec<_>>(), [(7, 2), (9, 2)]);
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
    let found = Contents::of(trace, &mut || true).expect("it can be read");
    assert_eq!((found.writes.requests, found.findings.damaged, found.processes_count), (requests, 0, 64));
    let trace = Trace::open(vec![Box::new(BufReader::new(endless()))], ReadOptions::default()).expect("known");
    let mut replay = Replay::new(trace.map(|record| record.expect("it can be read")), Pace::Closed);
    let (mut now_ns, mut asked) = (0, 0);
    while let Some(due_ns) = replay.next_due() {
        now_ns = due_ns.max(now_ns);
        while let Some(step) = replay.step(now_ns) {
            if let Step::Submit(bio) = step {
                assert_eq!(bio.direction, Direction::Write);
                asked += 1;
                replay.finished(now_ns, &bio);
            }
        }
    }
    assert_eq!(asked, requests);
    let memory = memory_bytes_max();
    println!("peak memory {} MB", memory / 1_000_000);
    assert!(memory < 100_000_000, "{memory} bytes");
}
