use std::fmt::Write as _;

use super::*;
use proptest::prelude::*;

fn parse(text: &[u8]) -> Log {
    Log::parse("a.log", text.to_vec()).unwrap()
}

fn refused(text: &[u8]) -> String {
    Log::parse("a.log", text.to_vec()).map(|_| ()).unwrap_err().to_string()
}

fn texts(log: &Log) -> Vec<String> {
    log.statements.iter().map(|one| String::from_utf8_lossy(log.sql(one)).into_owned()).collect()
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
    let one = (1u64..5, 1i64..800_000, 0i64..3_000_000, sql());
    prop::collection::vec(one, 1..30).prop_map(|all| {
        let mut ended = BASE_US;
        let next = |(thread, gap, length, sql)| {
            ended += gap;
            (thread, ended - length, length, sql)
        };
        all.into_iter().map(next).collect()
    })
}

fn given_back(log: &Log) -> Vec<Sent> {
    let texts = texts(log);
    let each = log.statements.iter().zip(texts);
    each.map(|(one, sql)| (log.sessions[one.session as usize].thread, one.start_us, one.duration_us, sql)).collect()
}

proptest! {
    #[test]
    fn a_slow_log_gives_back_what_was_sent(all in sent()) {
        let log = parse(mysql(&all).as_bytes());
        prop_assert_eq!(given_back(&log), all);
        prop_assert_eq!((log.form, log.has_whole_seconds, log.unusable), (Form::Slow, false, Unusable::default()));
    }

    #[test]
    fn one_of_whole_seconds_gives_back_all_but_the_fractions(all in sent()) {
        let log = parse(mariadb(&all).as_bytes());
        let found = given_back(&log);
        prop_assert_eq!(found.len(), all.len());
        for (found, sent) in found.iter().zip(&all) {
            prop_assert_eq!((found.0, found.2, &found.3), (sent.0, sent.2, &sent.3));
        }
        // A session of the test may have statements at the same time, which no session has: then they are put off.
        let ends: Vec<i64> = found.iter().map(|(_, start, length, _)| start + length).collect();
        let first = ends[0] - (all[0].1 + all[0].2);
        prop_assert!(first.abs() <= 1_000_000, "{first}");
        prop_assert_eq!((log.has_whole_seconds, log.out_of_order, log.unusable), (true, 0, Unusable::default()));
    }

    #[test]
    fn a_general_log_gives_back_what_was_sent(all in sent()) {
        let all: Vec<Sent> = all.into_iter().map(|(thread, start, length, sql)| (thread, start + length, 0, sql)).collect();
        let log = parse(general(&all).as_bytes());
        prop_assert_eq!(given_back(&log), all);
        prop_assert_eq!((log.form, log.has_whole_seconds, log.unusable), (Form::General, false, Unusable::default()));
    }

    #[test]
    fn no_bytes_make_it_panic(all in sent(), cut in 0usize..5000, noise: Vec<u8>, at in 0usize..5000) {
        for text in [mysql(&all), mariadb(&all), general(&all)] {
            let mut bytes = text.into_bytes();
            bytes.truncate(cut);
            let at = at.min(bytes.len());
            bytes.splice(at..at, noise.iter().copied());
            if let Ok(log) = Log::parse("a.log", bytes) {
                for one in &log.statements {
                    prop_assert!(!log.sql(one).is_empty() && (one.session as usize) < log.sessions.len());
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
    let named: Vec<&[u8]> = log.statements.iter().map(|one| log.schemas[usize::from(one.schema)].as_slice()).collect();
    assert_eq!(named, [&b"shop"[..], b"shop", b"a`b", b""]);
    assert_eq!(texts(&log), ["SELECT 1", "SELECT 2", "use shop", "SELECT 3"]);
    assert_eq!(log.statements.iter().map(|one| one.line).collect::<Vec<_>>(), [6, 11, 17, 25]);
}

#[test]
fn sessions_end_with_quit_and_begin_with_connect() {
    let slow = format!(
        "{HEAD}SELECT 1;\n{HEAD}# administrator command: Quit;\n{HEAD}SELECT 2;\n{HEAD}# administrator command: Ping;\n"
    );
    let log = parse(slow.as_bytes());
    assert_eq!(log.statements.iter().map(|one| one.session).collect::<Vec<_>>(), [0, 1]);
    assert_eq!((log.sessions[0].quit_us.is_some(), log.sessions[1].quit_us), (true, None));
    assert_eq!(log.unusable.commands, 2);
    let general = "261123 12:58:53\t    6 Connect\troot@localhost on shop using Socket\n\t\t    6 Query\tSELECT 1\n\
                   \t\t    7 Query\tSELECT 2\n\t\t    6 Init DB\tother\n\t\t    6 Query\tSELECT 3\n\
                   261123 12:58:55\t    6 Connect\troot@localhost on  using Socket\n\t\t    6 Query\tSELECT 4\n\
                   \t\t    8 Connect\tAccess denied for user 'x'@'h' (using password: NO)\n\t\t    6 Quit\t\n\t\t    6 Ping\t\n";
    let log = parse(general.as_bytes());
    assert_eq!(texts(&log), ["SELECT 1", "SELECT 2", "SELECT 3", "SELECT 4"]);
    assert_eq!(log.statements.iter().map(|one| one.session).collect::<Vec<_>>(), [0, 1, 0, 2]);
    let named: Vec<&[u8]> = log.statements.iter().map(|one| log.schemas[usize::from(one.schema)].as_slice()).collect();
    assert_eq!(named, [&b"shop"[..], b"", b"other", b""]);
    assert_eq!(log.unusable.commands, 2);
}

#[test]
fn what_a_server_executes_for_execute_is_sent_once() {
    let general = "261123 12:58:53\t    6 Query\tprepare s from 'select ? + 1'\n\t\t    6 Prepare\tselect ? + 1\n\
                   \t\t    6 Query\texecute s using @a\n\t\t    6 Execute\tselect 1 + 1\n\
                   \t\t    6 Prepare\tselect ?\n\t\t    6 Execute\tselect 5\n\t\t    6 Close stmt\t\n\t\t    6 Reset stmt\t\n";
    assert_eq!(texts(&parse(general.as_bytes())), ["prepare s from 'select ? + 1'", "execute s using @a", "select 5"]);
}

#[test]
fn a_statement_without_its_end_spoils_no_other() {
    let slow =
        format!("{HEAD}SELECT 'it's';\n{HEAD}SELECT 'x';\n{HEAD}SELECT \"it's\";\n{HEAD}INSERT INTO t VALUES ('a\n# b");
    let log = parse(slow.as_bytes());
    assert_eq!(texts(&log), ["SELECT 'x'", "SELECT \"it's\""]);
    assert_eq!(log.unusable.cut_off, 2);
    // By a server with NO_BACKSLASH_ESCAPES.
    assert_eq!(
        texts(&parse(format!("{HEAD}SELECT 'C:\\';\n{HEAD}SELECT 'x';\n").as_bytes())),
        ["SELECT 'C:\\'", "SELECT 'x'"]
    );
    // A server that died while it wrote.
    let log = parse(format!("{HEAD}SELECT 1\n{HEAD}SELECT 2;\n").as_bytes());
    assert_eq!((texts(&log), log.unusable.cut_off), (vec!["SELECT 2".to_owned()], 1));
    let general =
        "261123 12:58:53\t    6 Query\tSELECT 'it's'\n\t\t    6 Query\tSELECT 2\n\t\t    6 Query\tSELECT '3'\n";
    let log = parse(general.as_bytes());
    assert_eq!((texts(&log), log.unusable.cut_off), (vec!["SELECT 2".to_owned(), "SELECT '3'".to_owned()], 1));
}

#[test]
fn lines_of_windows_and_of_an_older_file_are_taken() {
    let text = format!("of another file;\n{HEAD}SET timestamp=1;\nSELECT 1,\n2;\n").replace('\n', "\r\n");
    let log = parse(text.as_bytes());
    assert_eq!((texts(&log), log.unusable.stray_lines), (vec!["SELECT 1,\r\n2".to_owned()], 1));
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
    assert_eq!(parse(text.as_bytes()).statements.iter().map(|one| one.session).collect::<Vec<_>>(), [0, 1, 0]);
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
    assert!(refused(b"\x1f\x8b\x08").contains("compressed"));
    assert!(refused(b"x\n# Time: yesterday\n").contains("a.log:2: the time of `# Time:`"));
    assert!(refused(HEAD.replace("1.5", "long").as_bytes()).contains("a.log:3: `# Query_time:`"));
    assert!(
        refused(b"# User@Host: a[a] @ h []  Id: 7\n# Query_time: 1.5\nSELECT 'secret';\n")
            .contains("a.log:4: the entry before this line has no time")
    );
    assert!(refused(b"\t\t    7 Query\tSELECT 'secret'\n").contains("a.log:1: this entry has no time"));
    let mut long = HEAD.as_bytes().to_vec();
    long.splice(long.len() - 5..long.len(), vec![b'x'; 70_000]);
    assert!(refused(&long).contains("a.log:3: a line of more than 64 KiB"));
    let mut huge = HEAD.as_bytes().to_vec();
    huge.resize((64 << 20) + 1000, b'x');
    huge.extend(b"\nx");
    let said = refused(&huge);
    assert!(said.contains("a.log:4: a statement of more than 64 MiB") && said.len() < 100, "{said}");
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
    let starts: Vec<i64> = log.statements.iter().map(|one| one.start_us - BASE_US).collect();
    assert!(starts.iter().all(|start| (0..2_000_000).contains(start)), "{starts:?}");
}
