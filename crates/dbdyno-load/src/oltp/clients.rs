//! What the clients of `oltp` send.

use std::sync::atomic::{AtomicU64, Ordering};

use dbdyno_common::random::Random;

use super::event::Action;
use super::options::Options;
use super::tables::Texts;
use crate::distribution::Sampler;
use crate::protocol::packet::{self, Parameter, RequestEncoder};
use crate::statements::{After, Next, Part, Statement, Statements};
use crate::workload::Portion;

/// Values of a statement, at most, and pieces of text with them: the number of the table and what stands around.
const VALUES_MAX: usize = 4;
const PARTS_MAX: usize = 2 * VALUES_MAX + 3;

/// Where a client is.
#[derive(Debug, Clone)]
struct Cursor {
    random: Random,
    /// Index of its next step.
    at: usize,
    /// Number of the table of its group of statements, from 0.
    table: u32,
    /// Of the row that it deleted.
    id: i64,
    /// Where the values begin that its lists are of: each client has a part of them, as with sysbench.
    part: i64,
    /// Events since the connection was made.
    events: u64,
}

/// Numbers of the statements that are prepared on every connection; see [`prepared`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbers {
    /// BEGIN, COMMIT after it; `None` where the server does not prepare these.
    transaction: Option<usize>,
    /// Of each step, on the first table; those on the other tables follow.
    steps: Vec<Option<usize>>,
}

/// The statements to prepare, and their numbers by the steps of the event. `transactions` says whether the server
/// prepares BEGIN and COMMIT: MariaDB does, MySQL does not, and gets them as text, from sysbench too.
pub fn prepared(options: &Options, transactions: bool) -> (Vec<String>, Numbers) {
    let steps = &options.event.steps;
    let mut texts = Vec::new();
    let begins = steps.iter().any(|step| step.action == Action::Begin);
    let transaction = (options.prepared && transactions && begins).then(|| {
        texts.extend(["BEGIN".to_owned(), "COMMIT".to_owned()]);
        0
    });
    let mut actions = options.event.actions();
    actions.retain(|action| options.prepared && !action.is_always_text());
    let first = texts.len();
    for action in &actions {
        texts.extend(options.tables.numbers().map(|number| action.to_prepare(number, options.lists)));
    }
    let number = |action: Action| {
        let place = actions.iter().position(|other| *other == action)?;
        Some(first + place * options.tables.count as usize)
    };
    (texts, Numbers { transaction, steps: steps.iter().map(|step| number(step.action)).collect() })
}

/// The clients of one thread.
pub struct Clients<'a> {
    options: &'a Options,
    numbers: Numbers,
    ids: Sampler,
    /// How many ids were made up so far, by all threads.
    made_ids: &'a AtomicU64,
    /// `1`, `2`, ... up to the number of tables.
    table_names: Vec<Box<[u8]>>,
    begin: Vec<u8>,
    commit: Vec<u8>,
    texts: Texts,
    /// Draws values of a client's part.
    listed: Sampler,
    /// The values of a list, and its text, kept for their room.
    list: Vec<i64>,
    text: String,
    cursors: Vec<Cursor>,
}

impl<'a> Clients<'a> {
    /// The clients of `portion`.
    pub fn new(options: &'a Options, numbers: Numbers, made_ids: &'a AtomicU64, portion: Portion) -> Self {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        // As with sysbench, which divides the rows by its threads.
        let part_size = (options.tables.size / number(portion.of).max(1)).max(1);
        let cursor = |(at, random)| {
            let part = number(portion.first + at) * part_size;
            Cursor { random, at: 0, table: 0, id: 0, part, events: 0 }
        };
        Self {
            options,
            numbers,
            ids: Sampler::new(options.distribution, 1, options.tables.size),
            made_ids,
            table_names: options.tables.numbers().map(|number| number.to_string().into_bytes().into()).collect(),
            begin: packet::query(b"BEGIN"),
            commit: packet::query(b"COMMIT"),
            texts: Texts::blank(),
            cursors: portion.generators().enumerate().map(cursor).collect(),
            listed: Sampler::new(options.distribution, 0, part_size),
            list: Vec::new(),
            text: String::new(),
        }
    }

    /// Writes the statement of step `at` of `client`.
    #[inline]
    fn write(&mut self, client: usize, at: usize, encoder: &mut RequestEncoder<'_>) {
        use Value::{Integer, Text};
        let Self { options, ids, texts, .. } = self;
        let cursor = &mut self.cursors[client];
        let random = &mut cursor.random;
        let action = options.event.steps[at].action;
        let line = Line {
            number: self.numbers.steps[at].map(|first| first + cursor.table as usize),
            pieces: action.pieces(),
            table: &self.table_names[cursor.table as usize],
        };
        if action.is_list() {
            self.list.clear();
            while self.list.len() < action.values(options.lists) {
                let value = cursor.part + self.listed.draw(random);
                self.list.push(value);
                if action == Action::RandomRanges {
                    self.list.push(value + i64::from(options.lists.delta));
                }
            }
            if let Some(number) = line.number {
                let parameters: Vec<_> = self.list.iter().map(|value| Parameter::Integer(*value)).collect();
                encoder.execute(number, &parameters);
            } else {
                self.text.clear();
                let table = String::from_utf8_lossy(line.table);
                action.list(&table, self.list.iter().map(ToString::to_string), &mut self.text);
                encoder.query(&[self.text.as_bytes()]);
            }
            return;
        }
        match action {
            Action::RandomPoints | Action::RandomRanges => {}
            Action::Begin => transaction(self.numbers.transaction, &self.begin, encoder),
            Action::Commit => transaction(self.numbers.transaction.map(|begin| begin + 1), &self.commit, encoder),
            Action::PointSelect | Action::UpdateIndex => line.write(&[Integer(ids.draw(random))], encoder),
            Action::SimpleRange | Action::SumRange | Action::OrderRange | Action::DistinctRange => {
                let id = ids.draw(random);
                line.write(&[Integer(id), Integer(id.saturating_add(options.range_size - 1))], encoder);
            }
            Action::UpdateNonIndex => {
                texts.renew_c(random);
                line.write(&[Text(&texts.c), Integer(ids.draw(random))], encoder);
            }
            Action::Delete => {
                cursor.id = ids.draw(random);
                line.write(&[Integer(cursor.id)], encoder);
            }
            Action::Reinsert | Action::Insert => {
                let id = match action {
                    Action::Reinsert => cursor.id,
                    // The server makes an id of 0 one of its own.
                    _ if options.tables.auto_inc => 0,
                    _ => made_id(self.made_ids.fetch_add(1, Ordering::Relaxed)),
                };
                texts.renew_c(random);
                texts.renew_pad(random);
                let values = [Integer(id), Integer(ids.draw(random)), Text(&texts.c), Text(&texts.pad)];
                line.write(&values, encoder);
            }
        }
    }
}

impl Statements for Clients<'_> {
    #[inline]
    fn next(&mut self, client: usize, encoder: &mut RequestEncoder<'_>) -> Next {
        let cursor = &mut self.cursors[client];
        if cursor.at == 0 && self.options.reconnect_every.is_some_and(|every| cursor.events >= every) {
            cursor.events = 0;
            return Next::Reconnect;
        }
        let at = cursor.at;
        let step = self.options.event.steps[at];
        if step.draws_table {
            cursor.table = cursor.random.below(self.options.tables.count.into()) as u32;
        }
        if step.part == Part::Last {
            cursor.at = 0;
            cursor.events += 1;
        } else {
            cursor.at += 1;
        }
        self.write(client, at, encoder);
        let rows = u32::from(matches!(step.action, Action::Reinsert | Action::Insert));
        Next::Send(Statement { kind: step.kind, part: step.part, rows, phase: 0 })
    }

    /// The event begins anew with values of its own, as sysbench's. A transaction that the error left open is committed
    /// by the BEGIN that follows.
    fn refused(&mut self, client: usize, _code: u16) -> After {
        self.cursors[client].at = 0;
        After::StartOver
    }

    fn reconnected(&mut self, client: usize) -> After {
        self.cursors[client].at = 0;
        self.cursors[client].events = 0;
        After::StartOver
    }
}

/// A value of a statement.
#[derive(Clone, Copy)]
enum Value<'a> {
    Integer(i64),
    Text(&'a [u8]),
}

/// A statement on a table, but for its values.
struct Line<'a> {
    /// Its number if it is prepared.
    number: Option<usize>,
    pieces: &'static [&'static str],
    table: &'a [u8],
}

impl Line<'_> {
    #[inline]
    fn write(&self, values: &[Value<'_>], encoder: &mut RequestEncoder<'_>) {
        match self.number {
            Some(number) => Self::execute(number, values, encoder),
            None => self.query(values, encoder),
        }
    }

    fn execute(number: usize, values: &[Value<'_>], encoder: &mut RequestEncoder<'_>) {
        let mut parameters = [Parameter::Null; VALUES_MAX];
        for (parameter, value) in parameters.iter_mut().zip(values) {
            *parameter = match value {
                Value::Integer(value) => Parameter::Integer(*value),
                Value::Text(text) => Parameter::Text(text),
            };
        }
        encoder.execute(number, &parameters[..values.len()]);
    }

    /// The pieces with the values between them.
    fn query(&self, values: &[Value<'_>], encoder: &mut RequestEncoder<'_>) {
        let mut buffers = [itoa::Buffer::new(); VALUES_MAX];
        let mut parts: [&[u8]; PARTS_MAX] = [b""; PARTS_MAX];
        let (head, pieces) = self.pieces.split_at(2);
        parts[..3].copy_from_slice(&[head[0].as_bytes(), self.table, head[1].as_bytes()]);
        let mut end = 3;
        for ((value, piece), buffer) in values.iter().zip(pieces).zip(&mut buffers) {
            parts[end] = match value {
                Value::Integer(value) => buffer.format(*value).as_bytes(),
                Value::Text(text) => text,
            };
            parts[end + 1] = piece.as_bytes();
            end += 2;
        }
        encoder.query(&parts[..end]);
    }
}

fn transaction(number: Option<usize>, text: &[u8], encoder: &mut RequestEncoder<'_>) {
    match number {
        Some(number) => encoder.execute(number, &[]),
        None => encoder.packets(text),
    }
}

/// The id made up as number `count`: all of a signed 32-bit column in an order that looks random, each once (a Feistel
/// network is invertible whatever its round function; Luby and Rackoff, SIAM J. Comput. 17(2), 1988).
fn made_id(count: u64) -> i64 {
    const ROUNDS: [u32; 4] = [0x9e37_79b1, 0x85eb_ca6b, 0xc2b2_ae35, 0x27d4_eb2f];
    let mut halves = (count as u32 >> 16, count as u32 & 0xffff);
    for key in ROUNDS {
        let mixed = halves.1.wrapping_mul(key) >> 13;
        halves = (halves.1, (halves.0 ^ mixed) & 0xffff);
    }
    i64::from(i32::MIN) + i64::from(halves.0 << 16 | halves.1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::protocol::packet::{HEADER_SIZE, Prepared};
    use crate::values::Values;

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
        let statements = texts("read_write", &[("point-selects", "1")], 11);
        let shapes: Vec<String> = statements.iter().map(|text| shape(text)).collect();
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
        assert_eq!(id(&statements[8], "id="), id(&statements[9], "VALUES ("), "the row deleted is put back");
        let range: Vec<i64> =
            statements[2].split_once("BETWEEN ").unwrap().1.split(" AND ").map(|id| id.parse().unwrap()).collect();
        assert_eq!(range[1] - range[0], 99);
    }

    #[test]
    fn inserts_leave_ids_to_the_server_or_make_them_up_once() {
        let statements = texts("oltp_insert", &[], 2);
        assert_eq!(shape(&statements[0]), "INSERT INTO sbtest# (id, k, c, pad) VALUES (#, #, 'C', 'PAD')");
        assert!(statements.iter().all(|text| text.contains("VALUES (0, ")));
        let statements = texts("insert", &[("auto-inc", "off")], 1000);
        let ids: BTreeSet<&str> = statements.iter().map(|text| text.split(['(', ',']).nth(5).unwrap()).collect();
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
            let step = clients.next(0, &mut RequestEncoder::new(&mut out, &mut []));
            (step, String::from_utf8(out[HEADER_SIZE + 1..].to_vec()).unwrap())
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
}
