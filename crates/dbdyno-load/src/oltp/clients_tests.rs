use super::*;
use crate::protocol::encoder::Prepared;
use crate::protocol::packet::HEADER_SIZE;
use crate::values::Values;
use proptest::prelude::*;
use std::collections::BTreeSet;

type Flags<'a> = &'a [(&'static str, &'static str)];

fn options(load: &str, flags: Flags<'_>) -> Options {
    Options::read(&Values::of(flags), load).unwrap()
}

const PORTION: Portion = Portion { first: 0, clients: 1, of: 1, seed: 1, warmup: false };

/// What the clients of `portion` say in turn, `count` statements each.
fn packets(options: &Options, portion: Portion, count: usize) -> Vec<Vec<u8>> {
    let (texts, numbers) = prepared(options, true);
    let parameters = |text: &String| text.matches('?').count() as u16;
    let statements = (0..).zip(&texts).map(|(id, text)| Prepared { id, parameters: parameters(text), bound: true });
    let mut statements: Vec<Prepared> = statements.collect();
    let made_ids = AtomicU64::new(0);
    let mut clients = Clients::new(options, numbers, &made_ids, portion);
    let mut all = Vec::new();
    for _ in 0..count {
        for client in 0..portion.clients {
            let mut out = Vec::new();
            let Next::Send(_) = clients.next(client, &mut RequestEncoder::new(&mut out, &mut statements)) else {
                panic!("silent")
            };
            all.push(out[HEADER_SIZE..].to_vec());
        }
    }
    all
}

fn texts(load: &str, flags: Flags<'_>, count: usize) -> Vec<String> {
    let flags = [flags, &[("db-ps-mode", "disable")]].concat();
    let packets = packets(&options(load, &flags), PORTION, count);
    packets.iter().map(|packet| String::from_utf8(packet[1..].to_vec()).unwrap()).collect()
}

/// Digits as one # per number.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    for c in text.chars() {
        match c {
            '0'..='9' if shape.ends_with('#') => {}
            '0'..='9' => shape.push('#'),
            c => shape.push(c),
        }
    }
    let c = ["#"; 10].join("-");
    let pad = ["#"; 5].join("-");
    shape.replace(&c, "C").replace(&pad, "PAD")
}

#[test]
fn texts_are_sysbenchs() {
    let said = texts("read_write", &[("point-selects", "1")], 11);
    let shapes: Vec<String> = said.iter().map(|text| shape(text)).collect();
    let expected = [
        "BEGIN",
        "SELECT c FROM sbtest# WHERE id=#",
        "SELECT c FROM sbtest# WHERE id BETWEEN # AND #",
        "SELECT SUM(k) FROM sbtest# WHERE id BETWEEN # AND #",
        "SELECT c FROM sbtest# WHERE id BETWEEN # AND # ORDER BY c",
        "SELECT DISTINCT c FROM sbtest# WHERE id BETWEEN # AND # ORDER BY c",
        "UPDATE sbtest# SET k=k+# WHERE id=#",
        "UPDATE sbtest# SET c='C' WHERE id=#",
        "DELETE FROM sbtest# WHERE id=#",
        "INSERT INTO sbtest# (id, k, c, pad) VALUES (#, #, 'C', 'PAD')",
        "COMMIT",
    ];
    assert_eq!(shapes, expected);
    let id = |text: &str, before| text.split_once(before).unwrap().1.split([',', ' ']).next().unwrap().to_owned();
    assert_eq!(id(&said[8], "id="), id(&said[9], "VALUES ("), "the row deleted is put back");
    let range: Vec<i64> =
        said[2].split_once("BETWEEN ").unwrap().1.split(" AND ").map(|id| id.parse().unwrap()).collect();
    assert_eq!(range[1] - range[0], 99);
}

#[test]
fn inserts_leave_ids_to_the_server_or_make_them_up_once() {
    let said = texts("oltp_insert", &[], 2);
    assert_eq!(shape(&said[0]), "INSERT INTO sbtest# (id, k, c, pad) VALUES (#, #, 'C', 'PAD')");
    assert!(said.iter().all(|text| text.contains("VALUES (0, ")));
    let said = texts("insert", &[("auto-inc", "off")], 1000);
    let ids: BTreeSet<&str> = said.iter().map(|text| text.split(['(', ',']).nth(5).unwrap()).collect();
    assert_eq!(ids.len(), 1000);
    // sysbench does not prepare these.
    let packets = packets(&options("insert", &[]), PORTION, 1);
    assert_eq!(packets[0][0], 3);
}

#[test]
fn executions_carry_the_statement_of_their_table() {
    let options = options("write_only", &[("tables", "3")]);
    let (texts, _) = prepared(&options, true);
    assert_eq!(texts.len(), 2 + 4 * 3);
    assert_eq!(texts[..3], ["BEGIN", "COMMIT", "UPDATE sbtest1 SET k=k+1 WHERE id=?"]);
    let mut seen = BTreeSet::new();
    for event in packets(&options, PORTION, 6 * 50).chunks(6) {
        let texts: Vec<&str> = event
            .iter()
            .map(|packet| {
                assert_eq!(packet[0], 0x17);
                let id = u32::from_le_bytes(packet[1..5].try_into().unwrap());
                texts[id as usize].as_str()
            })
            .collect();
        let [begin, index, other, delete, insert, commit] = texts[..] else { panic!("{texts:?}") };
        assert_eq!((begin, commit), ("BEGIN", "COMMIT"));
        assert!(index.contains("SET k=k+1") && other.contains("SET c=?"));
        let table = |text: &str| text.split("sbtest").nth(1).unwrap().chars().next();
        assert_eq!(table(delete), table(insert));
        seen.insert(table(insert));
    }
    assert_eq!(seen.len(), 3);
}

#[test]
fn a_server_that_does_not_prepare_begin_gets_its_text() {
    let options = options("read_only", &[]);
    let (texts, numbers) = prepared(&options, false);
    assert!(texts[0].starts_with("SELECT"));
    let made_ids = AtomicU64::new(0);
    let mut clients = Clients::new(&options, numbers, &made_ids, PORTION);
    let mut out = Vec::new();
    clients.next(0, &mut RequestEncoder::new(&mut out, &mut []));
    assert_eq!(out, packet::query(b"BEGIN"));
}

#[test]
fn an_event_starts_over_from_its_first_statement() {
    let options = options("write_only", &[("db-ps-mode", "disable")]);
    let made_ids = AtomicU64::new(0);
    let mut clients = Clients::new(&options, prepared(&options, true).1, &made_ids, PORTION);
    let mut out = Vec::new();
    let mut next = |clients: &mut Clients<'_>| {
        let said = clients.next(0, &mut RequestEncoder::new(&mut out, &mut []));
        (said, String::from_utf8(out[HEADER_SIZE + 1..].to_vec()).unwrap())
    };
    assert_eq!(next(&mut clients).1, "BEGIN");
    next(&mut clients);
    assert_eq!(clients.refused(0, 1213), After::StartOver);
    assert_eq!(next(&mut clients).1, "BEGIN");
    assert_eq!(clients.reconnected(0), After::StartOver);
    assert_eq!(next(&mut clients).1, "BEGIN");
}

#[test]
fn connections_are_renewed_between_events() {
    let options = options("point_select", &[("reconnect-every", "2"), ("db-ps-mode", "disable")]);
    let made_ids = AtomicU64::new(0);
    let mut clients = Clients::new(&options, prepared(&options, true).1, &made_ids, PORTION);
    let mut out = Vec::new();
    let mut says = || matches!(clients.next(0, &mut RequestEncoder::new(&mut out, &mut [])), Next::Send(_));
    assert_eq!([says(), says(), says(), says(), says(), says()], [true, true, false, true, true, false]);
}

#[test]
fn what_a_client_says_does_not_depend_on_its_thread() {
    let options = options("read_write", &[("tables", "4")]);
    let together = packets(&options, Portion { clients: 2, of: 2, ..PORTION }, 40);
    let alone = packets(&options, Portion { first: 1, of: 2, ..PORTION }, 40);
    let second: Vec<Vec<u8>> = together.into_iter().skip(1).step_by(2).collect();
    assert_eq!(second, alone);
    assert_ne!(alone, packets(&options, Portion { first: 0, of: 2, ..PORTION }, 40));
    assert_ne!(alone, packets(&options, Portion { first: 1, seed: 2, of: 2, ..PORTION }, 40));
}

proptest! {
    #[test]
    fn made_up_ids_are_distinct_and_fit_32_bits(a: u32, b: u32) {
        let (first, second) = (made_id(a.into()), made_id(b.into()));
        prop_assert_eq!(a == b, first == second);
        prop_assert!(i32::try_from(first).is_ok());
    }
}
