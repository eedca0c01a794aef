//! Forms in which people have their traces: as programs print them on a terminal, as others published them, and in
//! units that nothing names.

use std::io::{BufRead, Cursor};

use dbdyno_blk::queue::Direction;
use dbdyno_blk::trace::{Begin, Findings, Format, ReadOptions, Record, Trace};

fn open(text: &str, ask: ReadOptions) -> Result<Trace, String> {
    let file: Box<dyn BufRead> = Box::new(Cursor::new(text.as_bytes().to_vec()));
    Trace::open(vec![file], ask).map_err(|error| error.to_string())
}

fn read_as(text: &str, ask: ReadOptions) -> (&'static str, Vec<Record>, Findings) {
    let mut trace = open(text, ask).unwrap_or_else(|message| panic!("{message}\n{text}"));
    let records = trace.by_ref().map(|record| record.expect("memory can be read")).collect();
    (trace.format().map_or("", Format::name), records, trace.findings().clone())
}

fn read(text: &str) -> (&'static str, Vec<Record>, Findings) {
    read_as(text, ReadOptions::default())
}

/// A request: microseconds since the first one, letter, sector, length, microseconds that it took.
type Move = (u64, char, u64, u32, Option<u64>);

fn moves(records: &[Record]) -> Vec<Move> {
    let first_ns = records.iter().map(|record| record.at_ns).min().unwrap_or(0);
    let letter = |record: &Record| match (record.flush, record.direction) {
        (true, _) => 'F',
        (_, Direction::Read) => 'R',
        _ => 'W',
    };
    let of = |record: &Record| {
        let took_us = record.response_ns.map(|response_ns| response_ns / 1000);
        ((record.at_ns - first_ns) / 1000, letter(record), record.start_sector, record.sectors, took_us)
    };
    records.iter().map(of).collect()
}

const EVENTS: &str = "\
  8,0    0        1     0.000000000   100  Q  WS 1000 + 8 [fio]
  8,0    0        2     0.000050000   100  D  WS 1000 + 8 [fio]
  8,0    0        3     0.000400000     0  C  WS 1000 + 8 [0]
";

#[test]
fn text_before_the_first_event_is_passed_over() {
    let before = [
        ("Input file sda.blktrace.0 added\nInput file sda.blktrace.1 added\n", 2),
        ("$ blkparse -i sda | head\n", 1),
        ("root@db1:~# blktrace -d /dev/sda -o - | blkparse -i -\n\n", 1),
        ("=== sda ===\n\nCPU  0:                    3 events,        1 KiB data\n", 2),
        ("blktrace of sda on 2019-03-01 12:00:05 by me\n1 2 3 4 5\n", 2),
        ("Script started on Fri 01 Mar 2019\n", 1),
        ("\u{feff}# a comment\n", 0),
        ("date,host\n2019-03-01,db1\n", 2),
    ];
    for (text, lines) in before {
        let (format, records, findings) = read(&format!("{text}{EVENTS}"));
        assert_eq!((format, moves(&records)), ("blkparse", vec![(0, 'W', 1000, 8, Some(400))]), "{text}");
        assert_eq!((findings.text_before, findings.damaged), (lines, 0), "{text}: {findings:?}");
        assert_eq!(findings.lines as usize, text.lines().count() + 3, "lines keep their numbers");
        let named = ReadOptions { format: Some(Format::Blkparse), ..ReadOptions::default() };
        assert_eq!(moves(&read_as(&format!("{text}{EVENTS}"), named).1), [(0, 'W', 1000, 8, Some(400))], "{text}");
    }
}

#[test]
fn what_the_kernel_traces_is_read_as_every_program_prints_it() {
    // Each is one request that is asked for or issued at some time, and ends 300 us later.
    let forms = [
        // perf script, with a processor, without one, with nanoseconds, without a process, with threads, padded.
        "fio  4121 [001]   812.100001: block:block_rq_issue: 8,0 WS 4096 () 1000 + 8 [fio]\n\
         swapper     0 [001]   812.100301: block:block_rq_complete: 8,0 WS () 1000 + 8 [0]\n",
        "fio  4121   812.100001: block:block_rq_issue: 8,0 WS 4096 () 1000 + 8 [fio]\n\
         swapper     0   812.100301: block:block_rq_complete: 8,0 WS () 1000 + 8 [0]\n",
        "fio  4121 [001]   812.100001000: block:block_rq_issue: 8,0 WS 4096 () 1000 + 8 [fio]\n\
         swapper     0 [001]   812.100301000: block:block_rq_complete: 8,0 WS () 1000 + 8 [0]\n",
        "  812.100001: block:block_rq_issue: 8,0 WS 4096 () 1000 + 8 [fio]\n\
         812.100301: block:block_rq_complete: 8,0 WS () 1000 + 8 [0]\n",
        "[001]   812.100001: block:block_bio_queue: 8,0 WS 1000 + 8 [fio]\n\
         [001]   812.100301: block:block_rq_complete: 8,0 WS () 1000 + 8 [0]\n",
        "Web Content  4121/4125  [001]   812.100001:          block:block_rq_insert: 8,0 WS 4096 () 1000 + 8 [x]\n\
         swapper     0/0     [001]   812.100301:        block:block_rq_complete: 8,0 WS () 1000 + 8 [0]\n",
        // trace-cmd report, whose first line counts processors; tracefs with process groups; kernels with priorities.
        "cpus=8\n             fio-4121  [001]   812.100001: block_rq_issue:       8,0 WS 4096 () 1000 + 8 [fio]\n\
         <idle>-0     [001]   812.100301: block_rq_complete:    8,0 WS () 1000 + 8 [0]\n",
        "# tracer: nop\n fio-4121 ( 4100) [001] d..2.  812.100001: block_bio_queue: 8,0 WS 1000 + 8 [fio]\n\
         <idle>-0 (-----) [001] d.h1.  812.100301: block_bio_complete: 8,0 WS 1000 + 8 [0]\n",
        "jbd2/sda1-8-4121 [001] ..... 812.100001: block_io_start: 8,0 WS 4096 () 1000 + 8 be,0,4 [jbd2/sda1-8]\n\
         <idle>-0 [001] ..s1. 812.100301: block_io_done: 8,0 WS 0 () 1000 + 8 be,0,4 [swapper/1]\n",
        // The tracer blk has the letters of blkparse.
        "             fio-4121  [001]   812.100001:   8,0    Q  WS 1000 + 8 [fio]\n\
         <idle>-0     [001]   812.100301:   8,0    C  WS 1000 + 8 [0]\n",
        // A command of SCSI in parentheses, a name with a plus, a copied command line before it.
        "$ cat trace_pipe\n kworker/u8:2+-4121 [001] .... 812.100001: block_rq_issue: 8,0 WS 4096 (2a 00 00 00 03 e8 00 00 08 00) \
         1000 + 8 [kworker/u8:2+fl]\n <idle>-0 [001] ..s. 812.100301: block_rq_complete: 8,0 WS (2a 00) 1000 + 8 [0]\n",
        // A process that is called like an event.
        "block_x: y-4121 [001] .... 812.100001: block_bio_queue: 8,0 WS 1000 + 8 [block_x: y]\n\
         <idle>-0 [001] ..s. 812.100301: block_rq_complete: 8,0 WS () 1000 + 8 [0]\n",
    ];
    for text in forms {
        let (format, records, findings) = read(text);
        assert_eq!((format, moves(&records)), ("tracefs", vec![(0, 'W', 1000, 8, Some(300))]), "{text}");
        assert_eq!((findings.damaged, findings.without_end), (0, 0), "{text}: {findings:?}");
        let process = if text.trim_start().starts_with(['8', '[']) { 0 } else { 4121 };
        assert_eq!(records[0].process, process, "{text}");
    }
}

#[test]
fn requests_begin_where_the_trace_knows_of_them() {
    let queued = "8,0 0 1 0.000001 7 Q R 8 + 8 [x]\n";
    let inserted = "8,0 0 2 0.000011 7 I R 8 + 8 [x]\n";
    let issued = "8,0 0 3 0.000021 7 D R 8 + 8 [x]\n";
    let ended = "8,0 0 4 0.000121 0 C R 8 + 8 [0]\n";
    let took = |text: &str, begin| {
        let (_, records, findings) = read_as(text, ReadOptions { begin, ..ReadOptions::default() });
        (moves(&records)[0].4, findings.notes.len())
    };
    let all = format!("{queued}{inserted}{issued}{ended}");
    assert_eq!(took(&all, Begin::Queued), (Some(120), 0));
    assert_eq!(took(&all, Begin::Issued), (Some(100), 0));
    assert_eq!(took(&format!("{inserted}{issued}{ended}"), Begin::Queued), (Some(110), 1));
    assert_eq!(took(&format!("{issued}{ended}"), Begin::Queued), (Some(100), 1));
    assert_eq!(took(&format!("{queued}{ended}"), Begin::Issued), (Some(120), 1));
    assert_eq!(took(ended, Begin::Queued), (None, 1));
    let (_, _, findings) = read(&format!("{issued}{ended}"));
    assert_eq!(
        findings.notes,
        [
            "requests begin when they were issued to the drive (D): the trace has no event of when they were asked for (Q)"
        ]
    );
}

#[test]
fn what_moves_no_data_is_counted_and_is_no_damage() {
    let text = "\
8,0 0 1 0.000000000 100 Q WFS 5000 + 8 [jbd2/sda1-8]
8,0 0 2 0.000010000 100 D WFS 5000 + 8 [jbd2/sda1-8]
8,0 0 3 0.003000000   0 C  WS 5000 + 8 [0]
8,0 0 4 0.003100000   0 C  WS 5000 [0]
8,0 0 5 0.003200000   0 C  WS 5000 [-5]
8,0 0 6 0.003300000   0 C   W 0 + 0 [0]
8,0 0 7 0.003400000 100 Q   D 9000 + 2048 [fstrim]
8,0 0 8 0.003500000 100 Q  DS 9000 + 2048 [fstrim]
8,0 0 9 0.003600000   0 C  DS 9000 [0]
8,0 0 10 0.003700000 100 Q FWS [mysqld]
8,0 0 11 0.003800000   0 C FWS 0 [0]
8,0 0 12 0.003900000 100 D   R 36 (12 00 00 00 24 00) [smartctl]
8,0 0 13 0.004000000 100 P   N [mysqld]
8,0 0 14 0.004100000 100 U   N [mysqld] 1
8,0 0 15 0.004200000   0 m   N cfq4121 slice expired t=0
";
    let (_, records, findings) = read(text);
    assert_eq!(moves(&records), [(0, 'W', 5000, 8, Some(3000)), (3700, 'F', 0, 0, Some(100))]);
    assert_eq!(findings.damaged, 0, "{findings:?}");
    let counted = |name: &str| findings.passed_over.get(name).copied();
    assert_eq!(
        (counted("without data"), counted("discard"), counted("P")),
        (Some(4), Some(3), Some(1)),
        "{findings:?}"
    );
}

#[test]
fn a_form_of_ones_own_is_read_by_what_its_words_are() {
    let forms = [
        // blkparse -f: the time first; without a plus; with commas; in bytes; without a device; only what was issued.
        "0.000000000 Q W 1000 + 8 [fio]\n0.000400000 C W 1000 + 8 [0]\n",
        "    0.000000000 8,0 Q W 1000 8\n    0.000400000 8,0 C W 1000 8\n",
        "0.000000000,Q,W,1000,8\n0.000400000,C,W,1000,8\n",
        "Q 0.000000000 1000 8 W\nC 0.000400000 1000 8 W\n",
        "8,0,0.000000000,4121,Q,W,1000,8\n8,0,0.000400000,0,C,W,1000,8\n",
        "0.000000000 4121 Q W 1000 4096\n0.000400000 0 C W 1000 4096\n",
        "  8,0  4121 fio 0.000000000 D W 1000 + 8\n  8,0  0 swapper 0.000400000 C W 1000 + 8\n",
    ];
    for text in forms {
        let (format, records, findings) = read(text);
        assert_eq!((format, moves(&records)), ("blkparse-f", vec![(0, 'W', 1000, 8, Some(400))]), "{text}");
        assert_eq!(findings.damaged, 0, "{text}: {findings:?}");
    }
}

#[test]
fn biosnoop_has_ends_and_durations() {
    let bcc = "\
TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  LAT(ms)
0.000000    supervise      1950    nvme0n1   W 13092560   4096      0.74
0.000039    Web Content    1950    nvme0n1   R 13092432   4096      0.61
2.000500    jbd2/sda1-8    370     nvme0n1   WS 8         8192    500.00
";
    let with_queue = "\
Tracing block device I/O... Hit Ctrl-C to end.
TIME(s)     COMM           PID     DISK    T    SECTOR     BYTES   QUE(ms) LAT(ms)
1.000000    kworker/u8:2   1950    nvme0n1 WS   13092560   4096      0.100   0.900
1.000500    tokio-runtime  1951    nvme0n1 FF   0          0         0.000   0.200
";
    let (format, records, findings) = read(bcc);
    let expected = [(131, 'R', 13_092_432, 8, Some(610)), (0, 'W', 13_092_560, 8, Some(740))];
    assert_eq!((format, findings.damaged, findings.backwards), ("biosnoop", 0, 0), "{findings:?}");
    assert_eq!(moves(&records)[..2], [(0, 'W', 13_092_560, 8, Some(740)), expected[0].with_time(169)]);
    assert_eq!(moves(&records)[2], (1_501_240, 'W', 8, 16, Some(500_000)));
    assert_eq!(findings.processes.get(&370).map(String::as_str), Some("jbd2/sda1-8"));
    let no_heading = bcc.split_once('\n').expect("lines").1;
    assert_eq!(moves(&read(no_heading).1), moves(&records), "{:?}", read(no_heading).2);
    let (format, records, findings) = read(with_queue);
    assert_eq!((format, findings.damaged, findings.text_before), ("biosnoop", 0, 1), "{findings:?}");
    assert_eq!(moves(&records), [(0, 'W', 13_092_560, 8, Some(1000)), (1300, 'F', 0, 0, Some(200))]);
    let issued = ReadOptions { begin: Begin::Issued, ..ReadOptions::default() };
    assert_eq!(moves(&read_as(with_queue, issued).1)[0].4, Some(900));
    let message = open(
        "Attached 4 probes\nTIME(ms)     DISK    COMM             PID    LAT(ms)\n611   sda bash 4179  10\n",
        ReadOptions::default(),
    );
    assert!(message.err().is_some_and(|message| message.starts_with("line 2 names no column for the offset")));
}

trait WithTime {
    fn with_time(self, us: u64) -> Self;
}

impl WithTime for Move {
    fn with_time(self, us: u64) -> Self {
        (us, self.1, self.2, self.3, self.4)
    }
}

#[test]
fn published_traces_are_known_with_and_without_their_headings() {
    let cases = [
        (
            "msr",
            "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n",
            "128166372003061629,srv,0,Read,7014609920,24576,41286\n128166372016382155,srv,0,Write,1317441536,8192,1963\n",
            vec![(0, 'R', 13_700_410, 48, Some(4128)), (1_332_052, 'W', 2_573_128, 16, Some(196))],
        ),
        (
            "alibaba",
            "device_id,opcode,offset,length,timestamp\n",
            "419,W,8792731648,16384,1577808000000626\n419,R,59110326272,360448,1577808000001333\n",
            vec![(0, 'W', 17_173_304, 32, None), (707, 'R', 115_449_856, 704, None)],
        ),
        (
            "tencent",
            "Timestamp,Offset,Size,IOType,VolumeID\n",
            "1538323200,12910952,128,0,1063\n1538323200,6338688,8,1,1063\n1538323201,6338696,8,1,1063\n",
            vec![(0, 'R', 12_910_952, 128, None), (0, 'W', 6_338_688, 8, None), (1_000_000, 'W', 6_338_696, 8, None)],
        ),
        (
            "systor17",
            "Timestamp,Response,IOType,LUN,Offset,Size\n",
            "1455592441.122433000,0.000211,R,4,6144,4096\n1455592441.122500000,0.001000,W,4,14336,512\n",
            vec![(0, 'R', 12, 8, Some(211)), (67, 'W', 28, 1, Some(1000))],
        ),
        (
            "spc",
            "ASU,LBA,Size,Opcode,Timestamp\n",
            "0,20941264,8192,W,0.551706\n",
            vec![(0, 'W', 20_941_264, 16, None)],
        ),
        (
            "fiu",
            "timestamp pid process lba size op major minor md5\n",
            "89968195792462 20782 gzip 283193184 8 R 6 0 56f11b711d91a065a2b6458eca924523\n\
             89968197792462 20783 my app 283193192 8 W 6 0 56f11b711d91a065a2b6458eca924523\n",
            vec![(0, 'R', 283_193_184, 8, None), (2000, 'W', 283_193_192, 8, None)],
        ),
    ];
    for (name, heading, lines, expected) in cases {
        for text in [lines.to_owned(), format!("{heading}{lines}"), format!("from the web\n{heading}{lines}")] {
            let (format, records, findings) = read(&text);
            assert_eq!((format, moves(&records)), (name, expected.clone()), "{text}");
            assert_eq!((findings.damaged, &findings.notes[..]), (0, &[][..]), "{text}: {findings:?}");
        }
        let named = ReadOptions { format: Format::by_name(name), ..ReadOptions::default() };
        assert_eq!(moves(&read_as(&format!("{heading}{lines}"), named).1), expected, "{name} as it is named");
    }
}

#[test]
fn columns_stand_in_the_order_that_the_heading_names() {
    let expected = [(0, 'W', 16, 8, Some(250)), (1500, 'R', 0, 8, Some(100))];
    let texts = [
        "time_us,op,offset,size,latency_us\n0,write,8192,4096,250\n1500,read,0,4096,100\n",
        "Size,Offset,Type,ResponseTime(us),Timestamp(ms)\n4096,8192,Write,250,0\n4096,0,Read,100,1.5\n",
        "op;lba;sectors;time_s;latency_s\nW;16;8;0.0;0.00025\nR;0;8;0.0015;0.0001\n",
        "\"Time [s]\",\"Op\",\"LBA\",\"Bytes\",\"Latency [ms]\"\n\"0\",\"W\",\"16\",\"4096\",\"0.25\"\n0.0015,R,0,4096,0.1\n",
        "# time_ns\trwbs\tsector\tnr_sector\tlatency_ns\n0\tWS\t16\t8\t250000\n1500000\tRA\t0\t8\t100000\n",
        "\u{feff}ts_usec,is_write,addr,len_bytes,resp_usec\r\n0,1,8192,4096,250\r\n1500,0,0,4096,100\r\n",
        "time(ms) pid comm rw sector bytes lat(us)\n0.0 7 my sql W 16 4096 250\n",
        "DeviceID,Length,Offset,OpCode,TimeStamp,x\n1,4096,8192,W,1577808000000000,0\n1,4096,0,R,1577808000001500,0\n",
        "responsetime,timestamp,hostname,disknumber,type,offset,size\n\
         2500,128166372003061629,h,0,Write,8192,4096\n1000,128166372003076629,h,0,Read,0,4096\n",
        "Offset,Size,IOType,VolumeID,Timestamp\n16,8,1,9,1538323200\n",
        "timestamp_s,op,offset_kb,size_kb\n0,w,8,4\n1.5e-03,r,0,4\n",
    ];
    for text in texts {
        let (_, records, findings) = read(text);
        let rows = moves(&records);
        let known: Vec<_> = expected[..rows.len()]
            .iter()
            .zip(&rows)
            .map(|(expected_row, row)| {
                if row.4.is_none() {
                    (expected_row.0, expected_row.1, expected_row.2, expected_row.3, None)
                } else {
                    *expected_row
                }
            })
            .collect();
        assert_eq!((rows, findings.damaged), (known, 0), "{text}: {findings:?}");
    }
}

#[test]
fn a_heading_that_is_nearly_one_says_which_column_lacks() {
    let lacking = |text: &str| open(text, ReadOptions::default()).err().unwrap_or_default();
    assert!(
        lacking("time_s,offset,op\n1,2,r\n")
            .starts_with("line 1 names no column for the size; known names are time or")
    );
    assert!(lacking("of me\ntimestamp,length,op,host\n1,2,r,h\n").starts_with("line 2 names no column for the offset"));
    assert!(lacking("time_s,offset,size\n1,2,3\n").starts_with("line 1 names no column for the operation"));
    assert!(lacking("offset,size,op\n1,2,r\n").starts_with("line 1 names no column for the time"));
    assert!(
        lacking("Lorem ipsum dolor\n")
            .starts_with("its beginning fits no format of traces; name the format, one of: blktrace")
    );
    assert!(lacking("\u{0}").starts_with("its beginning fits no format"));
}

/// Lines of a CSV whose times have no unit.
fn timed(times: &[&str]) -> String {
    let row = |at: &&str| format!("{at},r,4096,4096\n");
    format!("timestamp,op,offset,size\n{}", times.iter().map(row).collect::<String>())
}

#[test]
fn the_unit_of_times_is_the_one_that_is_plausible() {
    let span_us = |text: &str, ask: ReadOptions| {
        let (_, records, findings) = read_as(text, ask);
        (moves(&records).last().map_or(0, |last| last.0), findings.notes)
    };
    let cases: [(&[&str], u64, &str); 9] = [
        (&["128166372003061629", "128166372016382155"], 1_332_052, "steps of 100 ns, counted since 1601"),
        (&["1577808000000626", "1577808000001333"], 707, "microseconds, counted since 1970"),
        (&["1577808000000", "1577808000007"], 7000, "milliseconds, counted since 1970"),
        (&["1538323200", "1538323203"], 3_000_000, "seconds, counted since 1970"),
        (&["1538323200.25", "1538323203.5"], 3_250_000, "seconds, counted since 1970"),
        (&["1577808000000626000", "1577808000001333000"], 707, "nanoseconds, counted since 1970"),
        (&["0.0", "0.0004", "0.0011"], 1100, "seconds, because they have a decimal point"),
        (&["0", "812345", "1623456", "2434567"], 2434, "nanoseconds, because no other unit"),
        (&["7", "812", "1623", "2434"], 2427, "microseconds, because no other unit"),
    ];
    for (times, expected, note) in cases {
        let (span, notes) = span_us(&timed(times), ReadOptions::default());
        assert_eq!(span, expected, "{times:?}: {notes:?}");
        assert!(notes.len() == 1 && notes[0].contains(note), "{times:?}: {notes:?}");
    }
    let open_unit = timed(&["0", "1", "2", "4"]);
    let message = open(&open_unit, ReadOptions::default()).err().unwrap_or_default();
    assert_eq!(
        message,
        "its times, which are whole numbers, may be milliseconds (750 requests a second) or microseconds (750,000 requests \
         a second); state which with --time-unit ms or us, or with a heading such as time_us"
    );
    for (unit, expected) in [("ms", 4000), ("us", 4), ("s", 4_000_000)] {
        let options = ReadOptions::default().by_names(None, Some(unit), None).expect("a unit");
        assert_eq!(span_us(&open_unit, options), (expected, vec![]), "{unit}");
    }
}

#[test]
fn simulators_of_ssds_write_nanoseconds_where_disksim_has_milliseconds() {
    let mqsim = "938513000 0 264719034 16 0\n938828000 0 197570570 16 1\n938944000 0 93230992 32 0\n939010000 0 230420970 16 1\n";
    let (format, records, findings) = read(mqsim);
    assert_eq!((format, moves(&records)[3].0), ("disksim", 497));
    assert_eq!(
        findings.notes,
        [
            "times are read as nanoseconds, because the format's milliseconds would mean 0.00604 requests a second; choose \
          another unit with --time-unit"
        ]
    );
    let options = ReadOptions::default().by_names(None, Some("us"), None).expect("a unit");
    assert_eq!(moves(&read_as(mqsim, options).1)[3].0, 497_000);
    for text in ["0.5 0 1024 8 1\n900000.5 0 8 8 1\n", "0 0 1024 8 1\n5 0 8 8 0\n11 0 64 8 1\n", "12 0 1024 8 1\n"] {
        assert!(read(text).2.notes.is_empty(), "{text}");
    }
    let bytes = "0.5 0 8192 4096 1\n1.5 0 1048576 65536 0\n";
    let (_, records, findings) = read(bytes);
    assert_eq!(moves(&records), [(0, 'R', 16, 8, None), (1000, 'W', 2048, 128, None)]);
    assert!(
        findings.notes[0].starts_with("places and lengths are read as bytes, because all are whole sectors"),
        "{findings:?}"
    );
    let either = "0.5 0 512 512 1\n1.5 0 1024 1024 0\n";
    let message = open(either, ReadOptions::default()).err().unwrap_or_default();
    assert!(
        message.contains(
            "may be sectors (requests of up to 512 KiB) or bytes (up to 1024); state which with --length-unit"
        ),
        "{message}"
    );
    let options = ReadOptions::default().by_names(None, None, Some("bytes")).expect("a unit");
    assert_eq!(read_as(either, options).1[0].sectors, 1);
    let sectors = "time_us,op,offset,size\n0,r,2048,8\n900,w,64,16\n";
    assert_eq!(moves(&read(sectors).1)[1], (900, 'W', 64, 16, None));
}

#[test]
fn units_of_formats_that_have_their_own_are_not_asked_for() {
    for (text, format) in [(EVENTS, "blkparse"), ("fio version 3 iolog\n0 /f add\n5 /f read 0 512\n", "fio3")] {
        let options = ReadOptions::default().by_names(None, Some("us"), None).expect("a unit");
        let message = open(text, options).err();
        assert_eq!(
            message,
            Some(format!("--time-unit is for traces of columns; the format {format} has units of its own"))
        );
    }
    let message = ReadOptions::default().by_names(None, Some("days"), None).err();
    assert_eq!(
        message,
        Some(("time_unit", "there is no unit of time \"days\"; choose one of s, ms, us, 100ns, ns".to_owned()))
    );
}

#[test]
fn a_trace_larger_than_the_device_is_folded_onto_it() {
    let text = "time_s,op,lba,sectors\n0,w,0,8\n1,w,1000,8\n2,r,2096,8\n3,r,1996,8\n4,r,5000,2000\n";
    let folded = ReadOptions { device_sectors: Some(1000), fold: true, ..ReadOptions::default() };
    let (_, records, findings) = read_as(text, folded);
    let places: Vec<_> = records.iter().map(|record| (record.start_sector, record.sectors)).collect();
    assert_eq!(places, [(0, 8), (0, 8), (96, 8), (992, 8)]);
    assert_eq!((findings.folded, findings.beyond_device), (3, 1));
    let (_, records, findings) = read_as(text, ReadOptions { fold: false, ..folded });
    assert_eq!((records.len(), findings.folded, findings.beyond_device), (1, 0, 4));
}

#[test]
fn an_odd_line_costs_itself() {
    let cases = [
        ("blkparse", EVENTS.repeat(3), "8,0 0 x y z Q W 8 + 8 [x]\n"),
        ("msr", "128166372003061629,srv,0,Read,4096,24576,41286\n".repeat(3), "128166372003061629,srv,0\n"),
        ("alibaba", "419,W,8192,16384,1577808000000626\n".repeat(3), "419,W,x,16384,1577808000000626\n"),
        ("systor17", "1455592441.1,0.000211,R,4,6144,4096\n".repeat(3), "1455592441.1,0.000211,R,4,6144,-4096\n"),
        ("fiu", "89968195792462 20782 gzip 283193184 8 R 6 0 56f1\n".repeat(3), "89968195792462 20782 gzip\n"),
        ("biosnoop", "1.5 fio 7 sda R 800 4096 0.61\n".repeat(3), "1.5 fio 7 sda R 800\n"),
        (
            "tracefs",
            "x-5 [001] ..... 1.5: block_bio_queue: 7,0 R 8 + 8 [x]\n".repeat(3),
            "x-5 [001] ..... 1.5: block_bio_queue: 7,0 R x + 8 [x]\n",
        ),
    ];
    for (name, good, odd) in cases {
        let (format, whole, _) = read(&good);
        let lines: Vec<&str> = good.lines().collect();
        let (first, rest) = lines.split_at(2);
        let text = format!("{}\n{odd}{}\n", first.join("\n"), rest.join("\n"));
        let (_, records, findings) = read(&text);
        assert_eq!((format, records.len(), findings.damaged), (name, whole.len(), 1), "{text}: {findings:?}");
        assert_eq!(findings.first_damaged[0].line, 3, "{name}");
    }
    let none = "1455592441.1,,,4,6144,4096\n1455592441.2,0.1,R,4,6144,4096\n";
    let (format, records, findings) = read(none);
    assert_eq!((format, records.len(), findings.passed_over.get("no operation")), ("systor17", 1, Some(&1)));
}

#[test]
fn text_in_sixteen_bits_is_refused_with_the_way_to_convert_it() {
    let message = Trace::open(vec![Box::new(Cursor::new(b"\xff\xfe8\0,\0".to_vec()))], ReadOptions::default()).err();
    assert!(message.is_some_and(|message| message.to_string().contains("iconv -f UTF-16 -t UTF-8 FILE > trace")));
}

#[test]
fn what_scripts_of_bpftrace_print_is_read() {
    let expected = [(0, 'W', 2048, 8, Some(812)), (1500, 'R', 64, 16, Some(90))];
    for text in [
        "Attaching 3 probes...\nTIME(ms) PID COMM DISK DIR SECTOR BYTES LAT(us)\n11.0 7 mysqld sda W 2048 4096 812\n12.5 7 mysqld sda R 64 8192 90\n",
        "nsecs,disk,rwbs,sector,nr_sector,lat_us\n11000000,sda,WS,2048,8,812\n12500000,sda,RA,64,16,90\n",
        "Attaching 3 probes...\nts=11.000 pid=7 comm=my sql disk=sda rw=W sector=2048 bytes=4096 lat_us=812\nts=11.0015 pid=7 comm=x disk=sda rw=R sector=64 bytes=8192 lat_us=90\n",
        "{\"time_us\": 11000, \"comm\": \"my sql\", \"pid\": 7, \"op\": \"W\", \"sector\": 2048, \"bytes\": 4096, \"latency_us\": 812}\n\
         {\"time_us\": 12500, \"comm\": \"x\", \"pid\": 7, \"op\": \"R\", \"sector\": 64, \"bytes\": 8192, \"latency_us\": 90}\n",
        "{\"type\": \"attached_probes\", \"data\": {\"probes\": 3}}\n{\"type\": \"printf\", \"data\": \"TIME(ms) PID DISK T SECTOR BYTES LAT(us)\\n\"}\n\
         {\"type\": \"printf\", \"data\": \"11.0 7 sda W 2048 4096 812\\n\"}\n{\"type\": \"printf\", \"data\": \"12.5 7 sda R 64 8192 90\\n\"}\n",
    ] {
        let (_, records, findings) = read(text);
        assert_eq!((moves(&records), findings.damaged), (expected.to_vec(), 0), "{text} {findings:?}");
    }
    // Without names there is what the words show; a duration has no unit then.
    let bare = "11.000 7 mysqld sda W 2048 4096 812\n11.0015 7 mysqld sda R 64 8192 90\n";
    assert_eq!(moves(&read(bare).1), [(0, 'W', 2048, 8, None), (1500, 'R', 64, 16, None)]);
}

#[test]
fn dates_and_clocks_are_times() {
    let rows = |times: [&str; 3]| times.map(|at| format!("{at},R,8,4096\n")).concat();
    for times in [
        ["2026-11-28T17:56:53.123456Z", "2026-11-28T17:56:53.123956Z", "2026-11-28T17:56:54.123456Z"],
        ["2026-11-28 17:56:53.123456", "2026-11-28 17:56:53.123956", "2026-11-28 17:56:54.123456"],
        ["Sat Nov 28 17:56:53.123456 2026", "Sat Nov 28 17:56:53.123956 2026", "Sat Nov 28 17:56:54.123456 2026"],
        ["23:59:59.500000", "23:59:59.500500", "00:00:00.500000"],
    ] {
        let (_, records, findings) = read(&format!("timestamp,op,lba,bytes\n{}", rows(times)));
        let times_us: Vec<u64> = moves(&records).iter().map(|row| row.0).collect();
        assert_eq!((times_us, findings.damaged), (vec![0, 500, 1_000_000], 0), "{times:?} {findings:?}");
        let blanks = times.map(|at| format!("{at} mysqld 7 sda R 8 4096\n")).concat();
        let (_, records, findings) = read(&format!("TIME COMM PID DISK RW SECTOR BYTES\n{blanks}"));
        assert_eq!((moves(&records).len(), moves(&records)[2].0, findings.damaged), (3, 1_000_000, 0), "{blanks}");
    }
    let text = format!("timestamp,op,lba,bytes\n{}yesterday,R,8,4096\n", rows(["1:2:3", "00:00:01", "00:00:02"]));
    assert_eq!(read(&text).2.damaged, 2);
}

#[test]
fn sums_are_told_from_requests() {
    for (text, what) in [
        (
            "avg-cpu:  %user\n 1.0\n\nDevice            r/s     rkB/s     w/s  wkB/s\nsda 1.0 2.0 3.0 4.0\n",
            "figures of iostat",
        ),
        ("@usecs[sda]:\n[64, 128)   12 |@@@@@@@      |\n[128, 256)   3 |@      |\n", "a histogram"),
        (
            "     usecs               : count     distribution\n         0 -> 1          : 12       |******   |\n",
            "a histogram",
        ),
        (
            "==================== All Devices ====================\n  ALL MIN AVG MAX N\nQ2Q 0.1 0.2 0.3 4\n",
            "figures of btt",
        ),
    ] {
        let message = open(text, ReadOptions::default()).err().unwrap_or_default();
        assert!(message.starts_with(&format!("it has {what}")), "{message}");
    }
}
