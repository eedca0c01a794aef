use super::*;

const TEXT_AT: usize = 5;

fn bulk(flags: &[(&'static str, &'static str)]) -> Result<Bulk, String> {
    Bulk::new(&Values::of(flags)).map_err(|error| error.to_string())
}

/// The next statement of a client, short.
fn next(clients: &mut dyn Statements, client: usize) -> Option<(String, Statement)> {
    let mut out = Vec::new();
    match clients.next(client, &mut RequestEncoder::new(&mut out, &mut [])) {
        Next::Send(said) => Some((String::from_utf8(out[TEXT_AT..].to_vec()).unwrap(), said)),
        Next::Done => None,
        Next::Reconnect => panic!("no reason"),
    }
}

fn words(text: &str) -> String {
    text.split([' ', '(', '\n']).take(3).collect::<Vec<&str>>().join(" ")
}

#[test]
fn a_client_makes_fills_and_indexes_its_tables_in_turn() {
    let bulk = bulk(&[("tables", "3"), ("table-size", "30"), ("batch-bytes", "2048")]).unwrap();
    let mut all = Vec::new();
    for first in 0..2 {
        let portion = Portion { first, clients: 1, of: 2, seed: 1, warmup: false };
        let mut clients = bulk.statements(portion).unwrap();
        let mut said = Vec::new();
        while let Some((text, what)) = next(&mut *clients, 0) {
            said.push((words(&text), what));
        }
        assert!(next(&mut *clients, 0).is_none());
        all.push(said);
    }
    let texts: Vec<&str> = all[0].iter().map(|(text, _)| text.as_str()).collect();
    let table = |number| {
        let insert = format!("INSERT INTO sbtest{number}");
        let index = format!("CREATE INDEX k_{number}");
        [vec![format!("CREATE TABLE sbtest{number}")], vec![insert; 3], vec![index]].concat()
    };
    assert_eq!(texts, [table(1), table(3)].concat());
    assert_eq!(all[1].len(), 5);
    let inserts: Vec<&Statement> = all[0].iter().map(|(_, said)| said).filter(|said| said.rows > 0).collect();
    assert_eq!(inserts.iter().map(|said| said.rows).sum::<u32>(), 60);
    assert!(inserts.iter().all(|said| said.part == Part::Last && said.phase == 1));
    let phases: Vec<u8> = all[1].iter().map(|(_, said)| said.phase).collect();
    assert_eq!(phases, [0, 1, 1, 1, 2]);
}

#[test]
fn what_was_refused_is_said_again() {
    let bulk = bulk(&[("table-size", "30"), ("batch-bytes", "2048")]).unwrap();
    let portion = Portion { first: 0, clients: 1, of: 1, seed: 1, warmup: false };
    let mut clients = bulk.statements(portion).unwrap();
    while let Some(before) = next(&mut *clients, 0) {
        // Only an INSERT is an event, whose time runs on.
        let expected = if before.1.part == Part::Last { After::StartOver } else { After::GoOn };
        assert_eq!(clients.refused(0, 1213), expected);
        assert_eq!(next(&mut *clients, 0), Some(before));
    }
}

#[test]
fn a_table_may_go_without_an_index() {
    let bulk = bulk(&[("table-size", "1"), ("create-secondary", "off")]).unwrap();
    let mut clients = bulk.statements(Portion { first: 0, clients: 2, of: 2, seed: 1, warmup: false }).unwrap();
    assert!(next(&mut *clients, 0).unwrap().0.starts_with("CREATE TABLE"));
    assert!(next(&mut *clients, 0).unwrap().0.starts_with("INSERT"));
    assert_eq!(next(&mut *clients, 0), None);
    assert_eq!(next(&mut *clients, 1), None, "there is no table for it");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (flags, said) in [
        (&[("clients", "1,2")][..], "one number"),
        (&[("rate", "1,2")], "one number"),
        (&[("warmup", "1")], "leave it out"),
        (&[("batch-bytes", "100")], "at least 1024"),
        (&[("db-driver", "pgsql")], "only MySQL and MariaDB"),
    ] {
        let text = bulk(flags).unwrap_err();
        assert!(text.contains(said), "{text}");
    }
}
