use std::fmt::Write as _;

use super::super::not_sent::Reason;
use super::super::statement::Class;
use super::*;
use proptest::prelude::*;

fn parse(text: &[u8]) -> Log {
    Log::parse("a.log", text.to_vec()).unwrap()
}

fn refused(text: &[u8]) -> String {
    Log::parse("a.log", text.to_vec()).map(|_| ()).unwrap_err().to_string()
}

fn texts(log: &Log) -> Vec<String> {
    log.statements.iter().map(|statement| String::from_utf8_lossy(log.sql(statement)).into_owned()).collect()
}

/// Entries that are about sessions, commands, and those without an end.
fn counts(log: &Log) -> [u64; 3] {
    [Reason::Sessions, Reason::AdministratorCommands, Reason::CutOff].map(|reason| log.others.count(reason))
}

/// Thread, start and length in microseconds, text.
type Sent = (u64, i64, i64, String);

const BASE_US: i64 = 1_795_438_747_000_000;

/// A time as MySQL writes it; of one day, which is all that the tests need.
fn iso(us: i64) -> String {
    let (seconds, us) = (us.div_euclid(1_000_000) % 86_400, us.rem_euclid(1_000_000));
    format!("2026-11-23T{:02}:{:02}:{:02}.{us:06}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

fn short(us: i64) -> String {
    let seconds = us.div_euclid(1_000_000) % 86_400;
    format!("261123 {:2}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

fn seconds(us: i64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

const STARTED: &str = "/usr/sbin/mysqld, Version: 8.0.33 (MySQL Community Server - GPL). started with:\n\
                       Tcp port: 0  Unix socket: /tmp/s\nTime                 Id Command    Argument\n";

fn mysql(all: &[Sent]) -> String {
    let mut text = STARTED.to_owned();
    for (thread, start, length, sql) in all {
        let _ = write!(
            text,
            "# Time: {}\n# User@Host: app[app] @ web1 [10.0.0.2]  Id: {thread:5}\n# Query_time: {}  Lock_time: 0.000000 \
             Rows_sent: 1  Rows_examined: 1\nSET timestamp={};\n{sql};\n",
            iso(start + length),
            seconds(*length),
            start / 1_000_000
        );
    }
    text
}

fn mariadb(all: &[Sent]) -> String {
    let mut text = STARTED.replace("8.0.33", "10.11.19-MariaDB");
    let mut last = String::new();
    for (thread, start, length, sql) in all {
        let time = short(*start);
        if time != last {
            let _ = writeln!(text, "# Time: {time}");
            last = time;
        }
        let _ = write!(
            text,
            "# User@Host: app[app] @ web1 [10.0.0.2]\n# Thread_id: {thread}  Schema: shop  QC_hit: No\n# Query_time: {}  \
             Lock_time: 0.000000  Rows_sent: 1  Rows_examined: 0\n# Rows_affected: 0  Bytes_sent: 95\nSET timestamp={};\n{sql};\n",
            seconds(*length),
            start / 1_000_000
        );
    }
    text
}

fn general(all: &[Sent]) -> String {
    let lines = all.iter().map(|(thread, start, _, sql)| format!("{}\t{thread:5} Query\t{sql}\n", iso(*start)));
    STARTED.to_owned() + &lines.collect::<String>()
}

/// Statements with everything in their strings that could be taken for something else.
fn sql() -> impl Strategy<Value = String> {
    let inside = prop::sample::select(vec![
        "a",
        ";",
        "\n",
        ";\n",
        "''",
        "\\'",
        "\\\\",
        "\"",
        "`",
        "--",
        "#",
        "/*",
        "\r\n",
        "é",
        "?",
        "\n# Time: 2026-11-23T12:59:07.302094Z\n# User@Host: x[x] @ h []  Id: 9\n# Query_time: 1.0  Lock_time: 0\nSET timestamp=1;\nDROP TABLE t;\n",
        "\n2026-11-23T12:59:07.302048Z\t    7 Query\tDROP TABLE t\n",
        "\n\t\t    7 Query\tDROP TABLE t\n",
    ]);
    let string = prop::collection::vec(inside, 0..6).prop_map(|parts| format!("'{}'", parts.concat()));
    let piece = prop_oneof![
        string,
        Just("a".to_owned()),
        Just("/* it's ; */".to_owned()),
        Just("\n-- it's\n1".to_owned()),
        Just("`it's`".to_owned())
    ];
    // Two such strings can't be told from a statement with a mistake, a good one, and another mistake.
    let is_clear = |sql: &String| sql.matches("DROP").count() < 2;
    prop::collection::vec(piece, 0..4)
        .prop_map(|pieces| format!("SELECT {} 1", pieces.join(", ")))
        .prop_filter("ambiguous", is_clear)
}

fn sent() -> impl Strategy<Value = Vec<Sent>> {
    let statement = (1u64..5, 1i64..800_000, 0i64..3_000_000, sql());
    prop::collection::vec(statement, 1..30).prop_map(|all| {
        let mut ended = BASE_US;
        let next = |(thread, gap, length, sql)| {
            ended += gap;
            (thread, ended - length, length, sql)
        };
        all.into_iter().map(next).collect()
    })
}

fn read_back(log: &Log) -> Vec<Sent> {
    let texts = texts(log);
    let statements = log.statements.iter().zip(texts);
    statements
        .map(|(statement, sql)| {
            (log.sessions[statement.session as usize].thread, statement.start_us, statement.duration_us, sql)
        })
        .collect()
}

proptest! {
    #[test]
    fn a_slow_log_gives_back_what_was_sent(all in sent()) {
        let log = parse(mysql(&all).as_bytes());
        prop_assert_eq!(read_back(&log), all);
        prop_assert_eq!((log.form, log.has_whole_seconds, log.others, log.odd), (Form::Slow, false, NotSent::default(), Oddities::default()));
    }

    #[test]
    fn one_of_whole_seconds_gives_back_all_but_the_fractions(all in sent()) {
        let log = parse(mariadb(&all).as_bytes());
        let read = read_back(&log);
        prop_assert_eq!(read.len(), all.len());
        for (read, sent) in read.iter().zip(&all) {
            prop_assert_eq!((read.0, read.2, &read.3), (sent.0, sent.2, &sent.3));
        }
        // A session of the test may have statements at the same time, which no session has: then they are put off.
        let ends: Vec<i64> = read.iter().map(|(_, start, length, _)| start + length).collect();
        let first = ends[0] - (all[0].1 + all[0].2);
        prop_assert!(first.abs() <= 1_000_000, "{first}");
        prop_assert_eq!((log.has_whole_seconds, log.out_of_order, log.others, log.odd), (true, 0, NotSent::default(), Oddities::default()));
    }

    #[test]
    fn a_general_log_gives_back_what_was_sent(all in sent()) {
        let all: Vec<Sent> = all.into_iter().map(|(thread, start, length, sql)| (thread, start + length, 0, sql)).collect();
        let log = parse(general(&all).as_bytes());
        prop_assert_eq!(read_back(&log), all);
        prop_assert_eq!((log.form, log.has_whole_seconds, log.others, log.odd), (Form::General, false, NotSent::default(), Oddities::default()));
    }

    #[test]
    fn no_bytes_make_it_panic(all in sent(), cut in 0usize..5000, noise: Vec<u8>, at in 0usize..5000) {
        for text in [mysql(&all), mariadb(&all), general(&all)] {
            let mut bytes = text.into_bytes();
            bytes.truncate(cut);
            let at = at.min(bytes.len());
            bytes.splice(at..at, noise.iter().copied());
            if let Ok(log) = Log::parse("a.log", bytes) {
                for statement in &log.statements {
                    prop_assert!(!log.sql(statement).is_empty() && (statement.session as usize) < log.sessions.len());
                }
            }
        }
    }
}

const HEAD: &str =
    "# Time: 2026-11-23T12:59:07.301898Z\n# User@Host: a[a] @ h []  Id: 7\n# Query_time: 1.5  Lock_time: 0\n";

#[test]
fn schemas_are_those_of_use_or_of_the_header() {
    let text = format!(
        "{HEAD}use shop;\nSET timestamp=1;\nSELECT 1;\n{HEAD}SET timestamp=1;\nSELECT 2;\n{HEAD}use `a``b`;\n\
                        SET last_insert_id=4,insert_id=5,timestamp=1;\nuse shop;\n{STARTED}{HEAD}SET timestamp=1;\nSELECT 3;\n"
    );
    let log = parse(text.as_bytes());
    let named: Vec<&[u8]> =
        log.statements.iter().map(|statement| log.schemas[usize::from(statement.schema)].as_slice()).collect();
    assert_eq!(named, [&b"shop"[..], b"shop", b""]);
    assert_eq!(texts(&log), ["SELECT 1", "SELECT 2", "SELECT 3"]);
    assert_eq!(log.statements.iter().map(|statement| statement.line).collect::<Vec<_>>(), [6, 11, 25]);
    assert_eq!(counts(&log), [1, 0, 0]);
}

#[test]
fn sessions_end_with_quit_and_begin_with_connect() {
    let slow = format!(
        "{HEAD}SELECT 1;\n{HEAD}# administrator command: Quit;\n{HEAD}SELECT 2;\n{HEAD}# administrator command: Ping;\n"
    );
    let log = parse(slow.as_bytes());
    assert_eq!(log.statements.iter().map(|statement| statement.session).collect::<Vec<_>>(), [0, 1]);
    assert_eq!((log.sessions[0].quit_us.is_some(), log.sessions[1].quit_us), (true, None));
    assert_eq!(counts(&log), [1, 1, 0]);
    let general = "261123 12:58:53\t    6 Connect\troot@localhost on shop using Socket\n\t\t    6 Query\tSELECT 1\n\
                   \t\t    7 Query\tSELECT 2\n\t\t    6 Init DB\tother\n\t\t    6 Query\tSELECT 3\n\
                   261123 12:58:55\t    6 Connect\troot@localhost on  using Socket\n\t\t    6 Query\tSELECT 4\n\
                   \t\t    8 Connect\tAccess denied for user 'x'@'h' (using password: NO)\n\t\t    6 Quit\t\n\t\t    6 Ping\t\n";
    let log = parse(general.as_bytes());
    assert_eq!(texts(&log), ["SELECT 1", "SELECT 2", "SELECT 3", "SELECT 4"]);
    assert_eq!(log.statements.iter().map(|statement| statement.session).collect::<Vec<_>>(), [0, 1, 0, 2]);
    let named: Vec<&[u8]> =
        log.statements.iter().map(|statement| log.schemas[usize::from(statement.schema)].as_slice()).collect();
    assert_eq!(named, [&b"shop"[..], b"", b"other", b""]);
    // Connect, Connect, Init DB, Quit; a Connect that was denied, and Ping.
    assert_eq!(counts(&log), [4, 2, 0]);
}

#[test]
fn what_a_server_executes_for_execute_is_told() {
    let general = "261123 12:58:53\t    6 Query\tprepare s from 'select ? + 1'\n\t\t    6 Prepare\tselect ? + 1\n\
                   \t\t    6 Query\texecute s using @a\n\t\t    6 Execute\tselect 1 + 1\n\
                   \t\t    6 Prepare\tselect ?\n\t\t    6 Execute\tselect 5\n\t\t    6 Close stmt\t\n\t\t    6 Reset stmt\t\n";
    let log = parse(general.as_bytes());
    assert_eq!(texts(&log), ["prepare s from 'select ? + 1'", "execute s using @a", "select 1 + 1", "select 5"]);
    let by: Vec<By> = log.statements.iter().map(|statement| statement.by).collect();
    assert_eq!(by, [By::Client, By::Client, By::Execute, By::Execute]);
}

#[test]
fn a_statement_without_its_end_spoils_no_other() {
    let slow =
        format!("{HEAD}SELECT 'it's';\n{HEAD}SELECT 'x';\n{HEAD}SELECT \"it's\";\n{HEAD}INSERT INTO t VALUES ('a\n# b");
    let log = parse(slow.as_bytes());
    assert_eq!(texts(&log), ["SELECT 'x'", "SELECT \"it's\""]);
    assert_eq!(counts(&log)[2], 2);
    // By a server with NO_BACKSLASH_ESCAPES.
    assert_eq!(
        texts(&parse(format!("{HEAD}SELECT 'C:\\';\n{HEAD}SELECT 'x';\n").as_bytes())),
        ["SELECT 'C:\\'", "SELECT 'x'"]
    );
    // A server that died while it wrote.
    let log = parse(format!("{HEAD}SELECT 1\n{HEAD}SELECT 2;\n").as_bytes());
    assert_eq!((texts(&log), counts(&log)[2]), (vec!["SELECT 2".to_owned()], 1));
    let general =
        "261123 12:58:53\t    6 Query\tSELECT 'it's'\n\t\t    6 Query\tSELECT 2\n\t\t    6 Query\tSELECT '3'\n";
    let log = parse(general.as_bytes());
    assert_eq!((texts(&log), counts(&log)[2]), (vec!["SELECT 2".to_owned(), "SELECT '3'".to_owned()], 1));
}

#[test]
fn lines_of_windows_and_of_an_older_file_are_taken() {
    let text = format!("of another file;\n{HEAD}SET timestamp=1;\nSELECT 1,\n2;\n").replace('\n', "\r\n");
    let log = parse(text.as_bytes());
    assert_eq!((texts(&log), log.odd.stray.count), (vec!["SELECT 1,\r\n2".to_owned()], 1));
}

#[test]
fn binary_text_stays_as_it_is() {
    let mut text = format!("{HEAD}SELECT '").into_bytes();
    text.extend(b"\x00\xff\\'\xe9;\n';\n");
    let log = parse(&text);
    assert_eq!(log.sql(&log.statements[0]), b"SELECT '\x00\xff\\'\xe9;\n'");
}

#[test]
fn what_has_no_number_is_a_session_by_who_it_is() {
    let text = "# Time: 261123 12:58:55\n# User@Host: a[a] @ h []\n# Query_time: 1.0  Lock_time: 0.0 Rows_sent: 1  Rows_examined: 0\n\
                SET timestamp=1795438735;\nSELECT 1;\n# User@Host: b[b] @ h []\n# Query_time: 1.0  Lock_time: 0.0\nSET timestamp=1795438735;\nSELECT 2;\n\
                # User@Host: a[a] @ h []\n# Query_time: 1.0  Lock_time: 0.0\nSET timestamp=1795438735;\nSELECT 3;\n";
    assert_eq!(
        parse(text.as_bytes()).statements.iter().map(|statement| statement.session).collect::<Vec<_>>(),
        [0, 1, 0]
    );
}

#[test]
fn the_start_that_mysql_adds_is_taken() {
    let text = "# Time: 2026-11-23T12:59:07.301898Z\n# User@Host: a[a] @ h []  Id: 7\n# Query_time: 1.500000  Lock_time: 0.000000 \
                Rows_sent: 1  Rows_examined: 1 Thread_id: 7 Errno: 0 Killed: 0 Start: 2026-11-23T12:59:05.801898Z End: \
                2026-11-23T12:59:07.301898Z\nSET timestamp=1795438745;\nSELECT 1;\n";
    assert_eq!(parse(text.as_bytes()).statements[0].start_us, BASE_US - 1_198_102);
}

#[test]
fn what_is_no_log_is_refused_with_its_line() {
    assert!(refused(b"").contains("a.log:1: no entry of a slow query log"));
    assert!(refused(b"SELECT 1;\n\xff\xfe\x00").contains("a.log:1: no entry"));
    assert!(refused(b"BZh91").contains("compressed"));
    assert!(refused(b"x\n# Time: yesterday\n").contains("a.log:3: no entry of a slow query log"));
    assert!(refused("\u{feff}SELECT 1".as_bytes()).contains("no entry"));
    assert!(refused(b"\xff\xfe#\0 \0").contains("UTF-16"));
    for untimed in [
        &b"# User@Host: a[a] @ h []  Id: 7\n# Query_time: 1.5\nSELECT 'secret';\n"[..],
        b"\t\t    7 Query\tSELECT 'secret'\n",
    ] {
        let message = refused(untimed);
        assert!(message.contains("no entry up to here has a time") && !message.contains("secret"), "{message}");
    }
}

#[test]
fn what_is_too_long_costs_itself_alone() {
    let good = format!("{HEAD}SELECT 1;\n");
    let long_line = HEAD.replace("  Lock_time: 0", &"x".repeat(70_000));
    let log = parse(format!("{good}{long_line}SELECT 2;\n{good}").as_bytes());
    assert_eq!(texts(&log), ["SELECT 1", "SELECT 2", "SELECT 1"]);
    let mut huge = format!("{good}{HEAD}SELECT '").into_bytes();
    for _ in 0..=1 << 10 {
        huge.extend([b'x'; 1023]);
        huge.push(b'\n');
    }
    huge.extend(good.as_bytes());
    let log = parse(&huge);
    assert_eq!((texts(&log).len(), counts(&log)), (2, [0, 0, 1]));
}

#[test]
fn a_session_that_sets_its_time_moves_no_other() {
    let at = |second: i64, length: &str| {
        format!(
            "# User@Host: a[a] @ h []\n# Thread_id: 8  Schema:   QC_hit: No\n# Query_time: {length}  Lock_time: 0\nSET timestamp={second};\nSELECT 1;\n"
        )
    };
    let now = BASE_US / 1_000_000;
    let text = [
        at(now, "0.000200"),
        at(now, "0.300000"),
        at(now, "0.000100"),
        at(1000, "0.000001"),
        at(1000, "0.000002"),
        at(now, "0.000050"),
        at(now + 1, "0.000010"),
    ]
    .concat();
    let log = parse(text.as_bytes());
    assert_eq!(log.out_of_order, 2);
    let starts: Vec<i64> = log.statements.iter().map(|statement| statement.start_us - BASE_US).collect();
    assert!(starts.iter().all(|start| (0..2_000_000).contains(start)), "{starts:?}");
}

/// One entry of each form that a server has written, by the server that did.
const SLOW_FORMS: [(&str, &str); 10] = [
    (
        "MySQL 5.0",
        "# Time: 071015 21:43:52\n# User@Host: root[root] @ localhost []\n# Query_time: 2  Lock_time: 0  Rows_sent: 1  Rows_examined: 0\nuse shop;\n",
    ),
    (
        "MySQL 5.0 with an insert",
        "# Time: 071218 11:48:27\n# User@Host: app[app] @  [10.0.0.2]\n# Query_time: 0  Lock_time: 0  Rows_sent: 0  Rows_examined: 0\nuse shop;\nSET last_insert_id=1,insert_id=9;\n",
    ),
    (
        "MySQL 5.6",
        "# Time: 150109 11:38:55\n# User@Host: root[root] @ localhost []  Id:     1\n# Query_time: 0.000652  Lock_time: 0.000109 Rows_sent: 1  Rows_examined: 1\nuse shop;\nSET timestamp=1420803535;\n",
    ),
    (
        "MySQL 8.0 with log_slow_extra",
        "# Time: 2026-01-05T10:00:01.000000Z\n# User@Host: app[app] @ web1 [10.0.0.5]  Id:    11\n# Query_time: 0.000120  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 3 Thread_id: 11 Errno: 0 Killed: 0 Bytes_received: 0 Bytes_sent: 65 Read_first: 1 Start: 2026-01-05T10:00:00.999880Z End: 2026-01-05T10:00:01.000000Z\nuse shop;\nSET timestamp=1767607200;\n",
    ),
    (
        "MySQL 8.0 in a zone",
        "# Time: 2026-01-05T12:00:01.000000+02:00\n# User@Host: app[app] @ web1 [10.0.0.5]  Id:    11\n# Query_time: 0.000120  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 3\nuse shop;\nSET timestamp=1767607201;\n",
    ),
    (
        "Percona Server 5.1",
        "# Time: 090311 18:11:50.274563\n# User@Host: root[root] @ localhost []\n# Thread_id: 47  Schema: shop  Last_errno: 0  Killed: 0\n# Query_time: 0.000652  Lock_time: 0.000109  Rows_sent: 1  Rows_examined: 1  Rows_affected: 0  Rows_read: 1\n# Bytes_sent: 0  Tmp_tables: 0  Tmp_disk_tables: 0  Tmp_table_sizes: 0\n# InnoDB_trx_id: 1500\n# QC_Hit: No  Full_scan: No  Full_join: No  Tmp_table: No  Tmp_table_on_disk: No\n# Filesort: No  Filesort_on_disk: No  Merge_passes: 0\n#   InnoDB_IO_r_ops: 19  InnoDB_IO_r_bytes: 311296  InnoDB_IO_r_wait: 0.001\n#   InnoDB_pages_distinct: 20\nSET timestamp=1236791510;\n",
    ),
    (
        "Percona Server 5.7",
        "# Time: 2026-01-05T10:00:01.000000Z\n# User@Host: app[app] @ web1 [10.0.0.5]  Id:    11\n# Schema: shop  Last_errno: 0  Killed: 0\n# Query_time: 0.000120  Lock_time: 0.000000  Rows_sent: 1  Rows_examined: 3  Rows_affected: 0\n# Bytes_sent: 65\n# Log_slow_rate_type: query  Log_slow_rate_limit: 10\nSET timestamp=1767607201;\n",
    ),
    (
        "MariaDB 5.5",
        "# Time: 150109 11:38:55\n# User@Host: root[root] @ localhost []\n# Thread_id: 3  Schema: shop  QC_hit: No\n# Query_time: 0.000652  Lock_time: 0.000109  Rows_sent: 1  Rows_examined: 1\nSET timestamp=1420803535;\n",
    ),
    (
        "MariaDB 11 with everything",
        "# Time: 260105 10:00:01\n# User@Host: app[app] @ web1 [10.0.0.5]\n# Thread_id: 11  Schema: shop  QC_hit: No\n# Query_time: 0.001364  Lock_time: 0.001212  Rows_sent: 1  Rows_examined: 1\n# Rows_affected: 0  Bytes_sent: 116\n# Tmp_tables: 1  Tmp_disk_tables: 0\n# Tmp_table_sizes: 126984\n# Full_scan: Yes  Full_join: No  Tmp_table: Yes  Tmp_table_on_disk: No\n# Filesort: No  Filesort_on_disk: No  Merge_passes: 0  Priority_queue: No\n# Pages_accessed: 3  Pages_read: 0  Pages_prefetched: 0  Pages_updated: 0  Old_rows_read: 0\n# Pages_read_time: 0.0000  Engine_time: 0.1231\n#\n# explain: id\tselect_type\ttable\n# explain: 1\tSIMPLE\titem\n#\nSET timestamp=1767607201;\n",
    ),
    (
        "none, by hand",
        "# Time:  2026-01-05 10:00:01\n# User@Host: app[app] @ web1 [10.0.0.5] Id: 11\n# Query_time:\t0.5 Lock_time: 0\nuse shop;\n",
    ),
];

#[test]
fn every_form_of_a_slow_log_is_taken() {
    for (server, head) in SLOW_FORMS {
        for end in ["\n", "\r\n"] {
            let text =
                format!("{head}SELECT 1,\n2;\n{head}# administrator command: Ping;\n{head}INSERT INTO t VALUES (1);\n");
            let log = parse(text.replace('\n', end).as_bytes());
            assert_eq!(texts(&log), [&format!("SELECT 1,{end}2"), "INSERT INTO t VALUES (1)"], "{server}");
            let schemas = log.statements.iter().map(|statement| log.schemas[usize::from(statement.schema)].as_slice());
            assert!(schemas.into_iter().all(|name| name == b"shop"), "{server}");
            assert_eq!((counts(&log), &log.odd), ([0, 1, 0], &Oddities::default()), "{server}");
        }
    }
    let start = |name: &str| {
        let head = SLOW_FORMS.iter().find(|(server, _)| *server == name).unwrap().1;
        parse(format!("{head}SELECT 1;\n").as_bytes()).statements[0].start_us
    };
    // By `date -u -d ... +%s`, less the Query_time of what has the time of its end.
    assert_eq!(start("Percona Server 5.1"), 1_236_795_110_274_563 - 652);
    assert_eq!(start("MySQL 8.0 in a zone"), 1_767_607_201_000_000 - 120);
    assert_eq!(start("MySQL 8.0 with log_slow_extra"), 1_767_607_200_999_880);
}

#[test]
fn every_form_of_a_general_log_is_taken() {
    for (server, text) in [
        (
            "MySQL 5.0",
            "071015 21:43:52\t      1 Connect     app@web1 on shop\n\t\t      1 Query       SELECT 1,\n2\n\t\t      1 Prepare     [1] SELECT ?\n\t\t      1 Execute     [1] SELECT 5\n\t\t      1 Quit       \n",
        ),
        (
            "MySQL 5.1",
            "071015 21:43:52\t    1 Connect\tapp@web1 on shop\n\t\t    1 Query\tSELECT 1,\n2\n071015  1:43:52\t    1 Prepare\tSELECT ?\n\t\t    1 Execute\tSELECT 5\n\t\t    1 Quit\t\n",
        ),
        (
            "MySQL 5.7.9",
            "2026-01-05T10:00:00.000100Z   11 Connect\tapp@web1 on shop using TCP/IP\n2026-01-05T10:00:00.000300Z   11 Query\tSELECT 1,\n2\n2026-01-05T10:00:00.000300Z   11 Prepare\tSELECT ?\n2026-01-05T10:00:00.000300Z   11 Execute\tSELECT 5\n2026-01-05T10:00:00.000300Z   11 Quit\t\n",
        ),
        (
            "MySQL 5.7.9, late",
            "2026-01-05T10:00:00.000100+02:00123456 Connect\tapp@web1 on shop using TCP/IP\n2026-01-05T10:00:00.000300+02:00123456 Query\tSELECT 1,\n2\n2026-01-05T10:00:00.000300+02:00123456 Prepare\tSELECT ?\n2026-01-05T10:00:00.000300+02:00123456 Execute\tSELECT 5\n2026-01-05T10:00:00.000300+02:00123456 Quit\t\n",
        ),
        (
            "an editor",
            "2026-01-05T10:00:00.000100Z\t   11 Connect\tapp@web1 on shop using TCP/IP\n2026-01-05T10:00:00.000300Z\t   11 Query\tSELECT 1,\n2\n2026-01-05T10:00:00.000300Z\t   11 Prepare\tSELECT ?\n2026-01-05T10:00:00.000300Z\t   11 Execute\tSELECT 5\n2026-01-05T10:00:00.000300Z\t   11 Quit\n",
        ),
        (
            "a terminal",
            "260105 10:00:00       11 Connect   app@web1 on shop using TCP/IP\n                      11 Query     SELECT 1,\n2\n                      11 Prepare   SELECT ?\n                      11 Execute   SELECT 5\n                      11 Quit\n",
        ),
    ] {
        for end in ["\n", "\r\n"] {
            let log = parse((STARTED.to_owned() + text).replace('\n', end).as_bytes());
            assert_eq!(texts(&log), [&format!("SELECT 1,{end}2"), "SELECT 5"], "{server}");
            assert_eq!((counts(&log), log.sessions.len(), &log.odd), ([2, 1, 0], 1, &Oddities::default()), "{server}");
            assert!(
                log.statements.iter().all(|statement| log.schemas[usize::from(statement.schema)] == b"shop"),
                "{server}"
            );
        }
    }
}

#[test]
fn a_damaged_entry_costs_itself_alone() {
    let good = |sql: &str| format!("{HEAD}{sql};\n");
    let head = HEAD.split_inclusive('\n').collect::<Vec<_>>();
    // What the middle of a log may be, and how many entries and oddities that is.
    for (damage, sent, cut_off, odd) in [
        (HEAD.replace("2026-11-23T12:59:07.301898Z", "yesterday") + "SELECT 2;\n", 1, 0, 1),
        (HEAD.replace("1.5", "18446744073708.796870") + "SELECT 2;\n", 1, 0, 1),
        (HEAD.replace("1.5", "-0.000123") + "SELECT 2;\n", 1, 0, 1),
        (HEAD.replace("1.5", "long") + "SELECT 2;\n", 1, 0, 1),
        (HEAD.to_owned(), 0, 1, 0),
        (HEAD.to_owned() + "SET timestamp=1;\n", 0, 1, 0),
        (HEAD.to_owned() + "use shop;\nSET timestamp=1;\n", 0, 1, 0),
        (head[..2].concat(), 0, 1, 0),
        (head[0].to_owned(), 0, 0, 0),
        (HEAD.to_owned() + "SELECT 2\n", 0, 1, 0),
        (HEAD.to_owned() + "SELECT 'it's';\n", 0, 1, 0),
        (HEAD.to_owned() + "SELECT 2 [Your log message was truncated]\n", 0, 1, 0),
        (HEAD.to_owned() + "SELECT 2" + STARTED, 0, 1, 0),
        (STARTED.to_owned(), 0, 0, 0),
        (STARTED.split_inclusive('\n').skip(1).collect(), 0, 0, 0),
        ("\0\0\0\0".to_owned() + HEAD + "SELECT 2;\n", 1, 0, 0),
    ] {
        let log = parse((good("SELECT 1") + &damage + &good("SELECT 3")).as_bytes());
        let statements = texts(&log);
        assert_eq!((statements.len(), counts(&log)[2]), (2 + sent, cut_off), "{damage}");
        assert_eq!(
            (statements[0].as_str(), statements[statements.len() - 1].as_str()),
            ("SELECT 1", "SELECT 3"),
            "{damage}"
        );
        let oddities = log.odd.stray.count + log.odd.times.count + log.odd.durations.count;
        assert!(oddities >= odd, "{damage} {:?}", log.odd);
    }
    let at = |rest: &str| format!("2026-11-23T12:59:07.302048Z\t    7 {rest}\n");
    for damage in [
        at("clone\tx"),
        at("Group Replication Data Stream subscription\t"),
        at("Quit"),
        "2026-11-23T12:59:07.302048Z\t    9 Query\t\n".to_owned(),
        STARTED.to_owned(),
        STARTED.split_inclusive('\n').skip(2).collect(),
        at("Query\tSELECT 'it's'"),
    ] {
        let log = parse((at("Query\tSELECT 1") + &damage + &at("Query\tSELECT 3")).as_bytes());
        assert_eq!(texts(&log), ["SELECT 1", "SELECT 3"], "{damage}");
    }
    let log = parse(
        (at("Query\tSELECT 1") + &at("Query\tSELECT 2").replace('\n', "") + STARTED + &at("Query\tSELECT 3"))
            .as_bytes(),
    );
    assert_eq!((texts(&log), counts(&log)), (vec!["SELECT 1".to_owned(), "SELECT 3".to_owned()], [0, 0, 1]));
}

#[test]
fn what_was_cut_at_its_start_has_the_first_time_that_comes() {
    let log = parse(b"tail of one;\n\t\t    7 Query\tSELECT 1\n261123 12:58:55\t    7 Query\tSELECT 2\n");
    assert_eq!((texts(&log).len(), log.odd.untimed.lines.as_slice(), log.odd.stray.count), (2, &[2][..], 1));
    assert!(log.statements[0].start_us >= 1_795_438_735_000_000);
    let log = parse(
        format!("# User@Host: a[a] @ h []\n# Query_time: 1  Lock_time: 0\nSELECT 1;\n{HEAD}SELECT 2;\n").as_bytes(),
    );
    assert_eq!((texts(&log).len(), log.odd.untimed.count), (2, 1));
}

#[test]
fn a_session_is_followed() {
    let at = |rest: &str| format!("2026-11-23T12:59:07.302048Z\t    7 {rest}\n");
    let text = at("Connect\ta@b on  using Socket")
        + &at("Query\tuse `shop`")
        + &at("Query\tSELECT 1")
        + &at("Query\tSELECT 2; /* a */ USE `sh``op`;\nSELECT 3;")
        + &at("Reset Connection\t")
        + &at("Query\tSELECT 4")
        + &at("Change user\ta@b on other using Socket")
        + &at("Query\tSELECT 5")
        + &at("Init DB\tlast")
        + &at("Query\tSELECT 6")
        + &at("Connect\ta@b on shop using Socket")
        + &at("Query\tSELECT 7")
        + &at("Quit\t");
    let log = parse(text.as_bytes());
    let statements: Vec<(String, &str, u32, u32)> = log
        .statements
        .iter()
        .zip(texts(&log))
        .map(|(statement, sql)| {
            (
                sql,
                std::str::from_utf8(&log.schemas[usize::from(statement.schema)]).unwrap(),
                statement.session,
                statement.line,
            )
        })
        .collect();
    let expected = [
        ("SELECT 1", "shop", 0, 3),
        ("SELECT 2", "shop", 0, 4),
        ("SELECT 3", "sh`op", 0, 5),
        ("SELECT 4", "sh`op", 1, 7),
        ("SELECT 5", "other", 2, 9),
        ("SELECT 6", "last", 2, 11),
        ("SELECT 7", "shop", 3, 13),
    ];
    assert_eq!(statements, expected.map(|(sql, schema, session, line)| (sql.to_owned(), schema, session, line)));
    let continues: Vec<Option<u32>> = log.sessions.iter().map(|session| session.continues).collect();
    assert_eq!(continues, [None, Some(0), Some(1), None]);
    // Connect, Connect, Quit, Init DB, Change user, Reset Connection, USE, USE.
    assert_eq!(counts(&log), [8, 0, 0]);
}

#[test]
fn what_a_routine_ran_is_told_where_its_call_is() {
    let entry = |line: &str, length: &str, sql: &str| {
        format!(
            "# User@Host: a[a] @ h []\n# Thread_id: 8  Schema: shop  QC_hit: No\n# Query_time: {length}  Lock_time: 0\n{line}SET timestamp=1795438747;\n{sql};\n"
        )
    };
    let of_routine = "# Stored_routine: shop.bump\n";
    let by = |text: String| {
        parse(text.as_bytes()).statements.iter().map(|statement| statement.by == By::Call).collect::<Vec<_>>()
    };
    let inner = entry(of_routine, "0.002", "update cnt set n=n+1") + &entry(of_routine, "0.001", "call deeper()");
    assert_eq!(
        by(entry("", "0.1", "SELECT 1") + &inner + &entry("", "0.004", "call bump(1)")),
        [false, true, true, false]
    );
    // A function or a trigger has no CALL.
    assert_eq!(by(inner.clone() + &entry("", "0.004", "SELECT f()")), [true, true, false]);
    // Without their call they are all that there is.
    assert_eq!(by(inner.clone()), [false, false]);
    assert_eq!(by(inner + &entry("", "0.0001", "SELECT 2")), [false; 3]);
    // MySQL says nothing of a routine; but no session does two things at a time.
    let exact = |end: u32, length: &str, sql: &str| {
        format!(
            "# Time: 2026-11-23T12:59:07.{end:06}Z\n# User@Host: a[a] @ h []  Id: 7\n# Query_time: {length}  Lock_time: 0\nSET timestamp=1795438747;\n{sql};\n"
        )
    };
    let text =
        exact(1000, "0.0005", "SELECT 1") + &exact(4000, "0.001", "DELETE FROM t") + &exact(5000, "0.003", "CALL p()");
    assert_eq!(by(text), [false, true, false]);
    // A general log has them behind it, with what no client writes.
    let at = |rest: &str| format!("2026-11-23T12:59:07.302048Z\t    7 Query\t{rest}\n");
    let text = at("CALL p(1)") + &at("update cnt set n=n+1 where id= NAME_CONST('k',1)") + &at("SELECT 1");
    assert_eq!(by(text), [false, true, false]);
}

#[test]
fn a_packet_that_no_server_cuts_alike_stays_one() {
    let log = parse(b"2026-11-23T12:59:07.302048Z\t    7 Query\tSELECT 1; SELECT '\\'; SELECT 2; -- '\n");
    assert_eq!(log.statements.len(), 1);
    assert!(log.statements[0].class >= Class::Several);
}

/// What MariaDB 10.11 wrote of the same statements into its tables.
const GENERAL_CSV: &str = r#""2026-11-28 18:22:29.448906","[root] @ localhost []",18,1,"Connect","root@localhost on shop using Socket"
"2026-11-28 18:22:29.464094","root[root] @ localhost []",18,1,"Query","SELECT SLEEP(1.1)"
"2026-11-28 18:22:30.576853","root[root] @ localhost []",18,1,"Query","SELECT 'a\"b\\\\c', 'x\ny	z', 'é'"
"2026-11-28 18:22:30.582944","root[root] @ localhost []",18,1,"Execute","SELECT * FROM t WHERE b='it\\'s'"
"2026-11-28 18:22:30.599086","root[root] @ localhost []",18,1,"Quit",""
"#;
const SLOW_CSV: &str = r#""2026-11-28 18:22:29.464085","root[root] @ localhost []","00:00:01.100383","00:00:00.000000",1,0,"shop",0,0,1,"SELECT SLEEP(1.1)",18,0
"2026-11-28 18:22:30.576845","root[root] @ localhost []","00:00:00.000197","00:00:00.000000",1,0,"shop",0,0,1,"SELECT 'a\"b\\\\c', 'x\ny	z', 'é'",18,0
"2026-11-28 18:22:30.582938","root[root] @ localhost []","00:00:00.000348","00:00:00.000167",0,4,"shop",0,0,1,"SELECT * FROM t WHERE b='it\\'s'",18,0
"2026-11-28 18:22:30.599000","root[root] @ localhost []","00:00:00.000348","00:00:00.000167",0,4,"shop",0,0,1,"Quit",18,0
"#;

#[test]
fn a_log_table_is_read_however_it_was_written() {
    let expected = ["SELECT SLEEP(1.1)", "SELECT 'a\"b\\\\c', 'x\ny\tz', 'é'", "SELECT * FROM t WHERE b='it\\'s'"];
    // INTO OUTFILE and --batch have tabulators, escapes and, of the latter, a heading; programs with windows double
    // quotes.
    let unquoted = |line: &str| {
        let cells = line.trim_end_matches('\n').replace('\t', "\\t").replace("\\\"", "\u{1}");
        cells.replace("\",\"", "\t").replace("\",", "\t").replace(",\"", "\t").replace('"', "").replace('\u{1}', "\"")
    };
    let tabbed = |csv: &str| {
        let numbers = |line: String| {
            let mut cells: Vec<String> = line.split('\t').map(str::to_owned).collect();
            let splits = |cell: &String| !cell.contains("SELECT") && !cell.contains(':') && !cell.contains('@');
            cells = cells
                .iter()
                .flat_map(
                    |cell| if splits(cell) { cell.split(',').map(str::to_owned).collect() } else { vec![cell.clone()] },
                )
                .collect();
            cells.join("\t") + "\n"
        };
        csv.split_inclusive('\n').map(|line| numbers(unquoted(line))).collect::<String>()
    };
    let doubled = |csv: &str| csv.replace("\\\"", "\"\"").replace("\\n", "\n").replace("\\\\", "\\");
    let general_names = "event_time,user_host,thread_id,server_id,command_type,argument\n";
    let slow_names = "start_time,user_host,query_time,lock_time,rows_sent,rows_examined,db,last_insert_id,insert_id,server_id,sql_text,thread_id,rows_affected\n";
    for (csv, names) in [(GENERAL_CSV, general_names), (SLOW_CSV, slow_names)] {
        let tabs = names.replace(',', "\t");
        for text in [
            csv.to_owned(),
            tabbed(csv),
            tabs.clone() + &tabbed(csv),
            tabs + &tabbed(csv).replace('\n', "\r\n"),
            names.to_owned() + &doubled(csv),
            names.to_uppercase() + &doubled(csv),
            format!("\u{feff}{names}{}", doubled(csv)),
        ] {
            let log = parse(text.as_bytes());
            assert_eq!(texts(&log), expected, "{text}");
            assert_eq!(log.odd, Oddities::default(), "{text}");
            assert_eq!((log.sessions.len(), log.has_whole_seconds), (1, false), "{text}");
            assert!(
                log.statements.iter().all(|statement| log.schemas[usize::from(statement.schema)] == b"shop"),
                "{text}"
            );
            let starts =
                log.statements.iter().map(|statement| (statement.start_us - log.statements[0].start_us) / 1000);
            assert_eq!(starts.collect::<Vec<_>>(), [0, 1112, 1118], "{text}");
        }
    }
    // MySQL has no rows_affected, and the time of the end in start_time.
    let mysql = SLOW_CSV.replace(",18,0\n", ",18\n");
    let log = parse(mysql.as_bytes());
    assert_eq!(log.statements[1].start_us - log.statements[0].start_us, 1_112_760 + 1_100_383 - 197);
    // A client that shows bytes in digits, and lines with numbers as they are in the file.
    let log = parse(
        (GENERAL_CSV.to_owned() + "\"2026-11-28 18:22:31.5\",\"a\",18,1,\"Query\",\"0x53454C4543542039\"\n").as_bytes(),
    );
    assert_eq!((texts(&log)[3].as_str(), log.statements[3].line), ("SELECT 9", 6));
    assert_eq!(log.sum().bytes, GENERAL_CSV.len() + 62);
}

#[test]
fn a_damaged_row_of_a_table_costs_itself_alone() {
    let good =
        |second: u32| format!("\"2026-11-28 18:22:{second}.5\",\"a[a] @ h []\",7,1,\"Query\",\"SELECT {second}\"\n");
    for (damage, cut_off, stray) in [
        ("\"2026-11-28 18:22:31.5\",\"a[a] @ h []\",7,1,\"Query\",\"SELECT 'no end\n", 1, 0),
        ("\"2026-11-28 18:22:31.5\",\"a[a] @ h []\",7,1\n", 1, 0),
        ("\"yesterday\",\"a[a] @ h []\",7,1,\"Query\",\"SELECT 2\"\n", 0, 1),
        ("22:31.5\",\"a[a] @ h []\",7,1,\"Query\",\"SELECT 2\"\n", 0, 1),
        ("\0\0\0\0\n", 0, 1),
        ("\n\n", 0, 0),
    ] {
        let log = parse((good(30) + damage + &good(32)).as_bytes());
        assert_eq!(texts(&log), ["SELECT 30", "SELECT 32"], "{damage}");
        assert_eq!((counts(&log)[2], log.odd.stray.count), (cut_off, stray), "{damage}");
        assert_eq!(log.statements[1].line as usize, 2 + damage.matches('\n').count(), "{damage}");
    }
}

#[test]
fn a_packed_log_is_read_within_bounds() {
    use std::io::Write as _;
    let packed = |text: &str| {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all(text.as_bytes()).unwrap();
        writer.finish().unwrap()
    };
    let path = std::env::temp_dir().join(format!("dbdyno-packed-{}.gz", std::process::id()));
    let name = path.display().to_string();
    let read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let log = Log::read(&name);
        std::fs::remove_file(&path).unwrap();
        log.map_err(|error| error.to_string())
    };
    // As cat joins what logrotate packed.
    let two = [packed(&format!("{HEAD}SELECT 1;\n")), packed(&format!("{HEAD}SELECT 2;\n"))].concat();
    let log = read(&two).unwrap();
    assert_eq!((texts(&log).len(), log.sum().bytes), (2, two.len()));
    let cut = read(&packed(&format!("{HEAD}SELECT 1;\n").repeat(2000))[..200]).err().unwrap();
    assert!(cut.contains("is damaged or cut off: gzip unpacks") && cut.contains("gzip -dc"), "{cut}");
    let other = read(b"\x28\xb5\x2f\xfd0").err().unwrap();
    assert!(other.contains("for example with zstd -dc FILE > log"), "{other}");
}
