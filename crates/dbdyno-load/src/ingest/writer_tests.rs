use super::*;
use crate::protocol::encoder::Prepared;
use crate::values::Values;

fn options(flags: &[(&'static str, &'static str)]) -> Options {
    Options::read(&Values::of(flags)).unwrap()
}

fn portion(first: usize, clients: usize, of: usize) -> Portion {
    Portion { first, clients, of, seed: 1, warmup: false }
}

/// What is said next, behind the header.
fn say(writer: &mut Writer<'_>, client: usize, parameters: u16) -> Option<(Statement, Vec<u8>)> {
    let mut out = Vec::new();
    let mut prepared = [Prepared { id: 9, parameters, bound: true }];
    match writer.next(client, &mut RequestEncoder::new(&mut out, &mut prepared)) {
        Next::Send(said) => Some((said, out.split_off(4))),
        Next::Done => None,
        Next::Reconnect => panic!("nothing asks for that"),
    }
}

fn text(writer: &mut Writer<'_>, client: usize) -> Option<(Statement, String)> {
    say(writer, client, 0).map(|(said, bytes)| {
        assert_eq!(bytes[0], 3);
        (said, String::from_utf8(bytes[1..].to_vec()).unwrap())
    })
}

/// Everything a client says, as texts with the rows that each adds.
fn all(writer: &mut Writer<'_>, client: usize) -> Vec<(String, u32)> {
    std::iter::from_fn(|| text(writer, client)).map(|(said, sql)| (sql, said.rows)).collect()
}

const TEXT_MODE: (&str, &str) = ("db-ps-mode", "disable");
const STATEMENT: (&str, &str) = ("mode", "statement");

#[test]
fn the_last_call_adds_what_is_left() {
    let options = options(&[TEXT_MODE, ("rows", "2500"), ("rows-per-commit", "100")]);
    let mut writer = Writer::new(&options, portion(0, 2, 2));
    let call = |rows: u32| (format!("CALL ingest_rows({rows}, 100000000, 100)"), rows);
    assert_eq!(all(&mut writer, 0), [call(1000), call(500)]);
    assert_eq!(all(&mut writer, 1), [call(1000)]);
    assert_eq!(text(&mut writer, 1), None);
}

#[test]
fn a_prepared_call_has_its_numbers_bound() {
    let options = options(&[("rows", "7"), ("rows-per-call", "5"), ("value-range", "9")]);
    let mut writer = Writer::new(&options, portion(0, 1, 1));
    for rows in [5, 2] {
        let (said, bytes) = say(&mut writer, 0, 3).unwrap();
        assert_eq!((said.rows, said.part), (rows, Part::Last));
        assert!(bytes.ends_with(&[i64::from(rows), 9, 1].map(i64::to_le_bytes).concat()));
    }
    assert_eq!(say(&mut writer, 0, 3), None);
}

#[test]
fn inserts_have_values_within_their_range() {
    let options = options(&[TEXT_MODE, STATEMENT, ("rows", "500"), ("value-range", "3"), ("rows-per-insert", "7")]);
    let mut writer = Writer::new(&options, portion(0, 1, 1));
    let said = all(&mut writer, 0);
    assert_eq!(said.len(), 72);
    assert_eq!(said[71].1, 3);
    let mut counts = [0; 4];
    for (sql, rows) in &said {
        let values = sql.strip_prefix("INSERT INTO ingest (b1, b2, b3, c) VALUES ").unwrap();
        let each: Vec<&str> = values.trim_matches(['(', ')']).split("),(").collect();
        assert_eq!(each.len(), *rows as usize);
        for row in each {
            let values: Vec<&str> = row.split(',').collect();
            assert_eq!(values[3], format!("'{}'", "1".repeat(40)));
            values[..3].iter().for_each(|value| counts[value.parse::<usize>().unwrap()] += 1);
        }
    }
    assert_eq!(counts.iter().sum::<u32>(), 1500);
    assert!(counts.iter().all(|count| (310..440).contains(count)), "{counts:?}");
}

#[test]
fn a_prepared_insert_binds_whole_rows_and_a_smaller_one_is_a_text() {
    let options = options(&[STATEMENT, ("rows", "5"), ("rows-per-insert", "3")]);
    let mut writer = Writer::new(&options, portion(0, 1, 1));
    let (said, bytes) = say(&mut writer, 0, 12).unwrap();
    assert_eq!((said.rows, bytes[0]), (3, 0x17));
    assert!(bytes.ends_with(&[&[40][..], TEXT].concat()));
    assert_eq!(bytes.windows(TEXT.len()).filter(|window| window == TEXT).count(), 3);
    let (said, sql) = text(&mut writer, 0).unwrap();
    assert_eq!((said.rows, sql.matches("),(").count()), (2, 1));
}

#[test]
fn a_transaction_is_one_event_and_counts_when_it_commits() {
    let flags = [TEXT_MODE, STATEMENT, ("rows", "7"), ("rows-per-insert", "2"), ("rows-per-commit", "4")];
    let options = options(&flags);
    let mut writer = Writer::new(&options, portion(0, 1, 1));
    let mut said = Vec::new();
    while let Some((one, sql)) = text(&mut writer, 0) {
        said.push((one.kind, one.part, one.rows, sql.matches("),(").count()));
    }
    let (inner, last) = (Part::Inner, Part::Last);
    let whole = [(BEGIN, inner, 0, 0), (WRITES, inner, 0, 1), (WRITES, inner, 0, 1), (COMMIT, last, 4, 0)];
    let rest = [(BEGIN, inner, 0, 0), (WRITES, inner, 0, 1), (WRITES, inner, 0, 0), (COMMIT, last, 3, 0)];
    assert_eq!(said, [whole, rest].concat());
}

#[test]
fn a_refused_transaction_is_rolled_back_and_tried_again() {
    let options = options(&[TEXT_MODE, STATEMENT, ("rows", "3"), ("rows-per-commit", "3")]);
    for refused_at in 1..=5 {
        let mut writer = Writer::new(&options, portion(0, 1, 1));
        let kinds = |writer: &mut Writer<'_>| text(writer, 0).map(|(said, _)| said.kind);
        for _ in 0..refused_at {
            kinds(&mut writer).unwrap();
        }
        assert_eq!(writer.refused(0, 1213), After::StartOver);
        let rest: Vec<u16> = std::iter::from_fn(|| kinds(&mut writer)).collect();
        assert_eq!(rest, [ROLLBACK, BEGIN, WRITES, WRITES, WRITES, COMMIT]);
    }
    let mut writer = Writer::new(&options, portion(0, 1, 1));
    text(&mut writer, 0);
    assert_eq!(writer.reconnected(0), After::StartOver);
    assert_eq!(text(&mut writer, 0).map(|(said, _)| said.kind), Some(BEGIN));
}

#[test]
fn a_refused_insert_is_not_tried_again() {
    let options = options(&[TEXT_MODE, STATEMENT, ("rows", "2")]);
    let mut writer = Writer::new(&options, portion(0, 1, 1));
    text(&mut writer, 0);
    assert_eq!((writer.refused(0, 1213), writer.reconnected(0)), (After::GoOn, After::GoOn));
    assert_eq!(all(&mut writer, 0).len(), 1);
}

#[test]
fn a_warm_up_ends_by_time_only_and_threads_share_the_rows() {
    let options = options(&[TEXT_MODE, STATEMENT, ("rows", "10")]);
    let warm = Portion { warmup: true, ..portion(0, 1, 1) };
    let mut writer = Writer::new(&options, warm);
    assert!((0..100).all(|_| text(&mut writer, 0).is_some()));
    let counts = [portion(0, 2, 3), portion(2, 1, 3)].map(|portion| {
        let mut writer = Writer::new(&options, portion);
        (0..portion.clients).map(|client| all(&mut writer, client).len()).sum::<usize>()
    });
    assert_eq!(counts, [7, 3]);
}
