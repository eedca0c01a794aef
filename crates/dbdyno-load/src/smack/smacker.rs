//! The clients of `smack`, and which keys were drawn for DELETE: a bit each, shared by all threads.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use dbdyno_common::random::Random;

use super::options::{Content, Key, Options, Query};
use crate::protocol::encoder::{Parameter, RequestEncoder};
use crate::statements::{After, Next, Part, Statement, Statements};
use crate::workload::Portion;

/// Follows those of the load's queries; see [`super::options::Load::kinds`].
const DELETE_GONE: usize = 1;

/// A client.
#[derive(Debug)]
struct Cursor {
    random: Random,
    /// Which of the load's queries comes next.
    turn: usize,
    /// The key that the statement in flight is the first to delete.
    deletes: Option<i64>,
}

/// The clients of one thread.
#[derive(Debug)]
pub struct Smacker<'a> {
    options: &'a Options,
    /// Number of the next new key, for all threads.
    next: &'a AtomicI64,
    /// For DELETEs only.
    gone: Option<&'a DeletedKeys>,
    clients: Vec<Cursor>,
    key: Vec<u8>,
    content: Content,
}

impl<'a> Smacker<'a> {
    /// Clients that take new keys from `next`.
    pub fn new(options: &'a Options, next: &'a AtomicI64, gone: Option<&'a DeletedKeys>, portion: Portion) -> Self {
        let clients = portion.generators().map(|random| Cursor { random, turn: 0, deletes: None }).collect();
        Self { options, next, gone, clients, key: Vec::new(), content: options.content() }
    }
}

impl Statements for Smacker<'_> {
    #[inline]
    fn next(&mut self, client: usize, encoder: &mut RequestEncoder<'_>) -> Next {
        let client = &mut self.clients[client];
        let options = self.options;
        let queries = options.load.queries();
        let turn = client.turn;
        client.turn = (turn + 1) % queries.len();
        let query = queries[turn];
        let number = match query {
            Query::Insert => self.next.fetch_add(1, Ordering::Relaxed),
            _ => options.sampler.draw(&mut client.random),
        };
        let content = match query {
            Query::Insert | Query::Update => self.content.draw(&mut client.random),
            Query::Select | Query::Delete => b"",
        };
        self.key.clear();
        if options.prepared {
            let key = match options.key {
                Key::Integer => Parameter::Integer(number),
                Key::Char => {
                    options.key.write(number, false, &mut self.key);
                    Parameter::Text(&self.key)
                }
            };
            match query {
                Query::Insert => encoder.execute(turn, &[key, Parameter::Text(content)]),
                Query::Update => encoder.execute(turn, &[Parameter::Text(content), key]),
                Query::Select | Query::Delete => encoder.execute(turn, &[key]),
            }
        } else {
            options.key.write(number, true, &mut self.key);
            encoder.query(&query.parts(&self.key, content));
        }
        let again = self.gone.is_some_and(|gone| gone.mark(number));
        client.deletes = self.gone.and((!again).then_some(number));
        let kind = if again { DELETE_GONE } else { turn };
        Next::Send(Statement { kind: kind as u16, part: Part::Last, rows: u32::from(query == Query::Insert), phase: 0 })
    }

    fn refused(&mut self, client: usize, _code: u16) -> After {
        if let (Some(gone), Some(key)) = (self.gone, self.clients[client].deletes) {
            gone.unmark(key);
        }
        After::GoOn
    }
}

/// The keys 1 to some last one.
#[derive(Debug)]
pub struct DeletedKeys(Vec<AtomicU64>);

impl DeletedKeys {
    /// None gone of the keys up to `last`.
    pub fn new(last: i64) -> Self {
        let words = last as usize / 64 + 1;
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    /// Marks `key`; whether it was marked before.
    #[inline]
    pub fn mark(&self, key: i64) -> bool {
        let (word, bit) = self.place(key);
        word.fetch_or(bit, Ordering::Relaxed) & bit != 0
    }

    /// Whether `key` is marked.
    pub fn has(&self, key: i64) -> bool {
        let (word, bit) = self.place(key);
        word.load(Ordering::Relaxed) & bit != 0
    }

    /// Takes the mark of `key` back.
    pub fn unmark(&self, key: i64) {
        let (word, bit) = self.place(key);
        word.fetch_and(!bit, Ordering::Relaxed);
    }

    fn place(&self, key: i64) -> (&AtomicU64, u64) {
        (&self.0[key as usize / 64], 1 << (key % 64))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::protocol::encoder::Prepared;
    use crate::values::Values;

    const PREPARED: usize = 2;

    fn options(load: &str, flags: &[(&'static str, &'static str)]) -> Options {
        Options::read(&Values::of(flags), load).unwrap()
    }

    fn portion(first: usize, clients: usize) -> Portion {
        Portion { first, clients, of: 8, seed: 1, warmup: false }
    }

    /// What is said next, behind the header.
    fn say(smacker: &mut Smacker<'_>, client: usize, parameters: u16) -> (Statement, Vec<u8>) {
        let mut out = Vec::new();
        let mut prepared = [Prepared { id: 9, parameters, bound: true }; PREPARED];
        match smacker.next(client, &mut RequestEncoder::new(&mut out, &mut prepared)) {
            Next::Send(said) => (said, out.split_off(4)),
            other => panic!("{other:?}"),
        }
    }

    fn text(smacker: &mut Smacker<'_>, client: usize) -> (Statement, String) {
        let (said, bytes) = say(smacker, client, 0);
        assert_eq!(bytes[0], 3);
        (said, String::from_utf8_lossy(&bytes[1..]).into_owned())
    }

    const TEXT: (&str, &str) = ("db-ps-mode", "disable");

    #[test]
    fn texts_have_their_values_in_place() {
        let next = AtomicI64::new(90_001);
        let small = [TEXT, ("row-size", "32"), ("compressible", "100")];
        let filler = ".".repeat(24);
        let insert = options("insert", &small);
        let (said, sql) = text(&mut Smacker::new(&insert, &next, None, portion(0, 1)), 0);
        assert_eq!(sql, format!("INSERT INTO smack (id, data) VALUES (90001, _binary'{filler}')"));
        assert_eq!((said.kind, said.rows, said.part), (0, 1, Part::Last));
        let one = [TEXT, ("row-size", "32"), ("compressible", "100"), ("rows", "1")];
        let mixed = options("mixed", &one);
        let mut smacker = Smacker::new(&mixed, &next, None, portion(0, 1));
        for _ in 0..2 {
            let (said, sql) = text(&mut smacker, 0);
            assert_eq!((said.kind, sql), (0, format!("UPDATE smack SET data = _binary'{filler}' WHERE id = 1")));
            let (said, sql) = text(&mut smacker, 0);
            assert_eq!((said.kind, sql), (1, "SELECT * FROM smack WHERE id = 1".into()));
            assert_eq!(said.rows, 0);
        }
        let named = options("delete", &[TEXT, ("key", "char"), ("rows", "1")]);
        let (_, sql) = text(&mut Smacker::new(&named, &next, None, portion(0, 1)), 0);
        assert_eq!(sql, format!("DELETE FROM smack WHERE id = {}", named.key_literal(1)));
    }

    #[test]
    fn prepared_ones_carry_the_values_alone() {
        let next = AtomicI64::new(5);
        let insert = options("insert", &[("row-size", "32"), ("compressible", "100")]);
        let (_, bytes) = say(&mut Smacker::new(&insert, &next, None, portion(0, 1)), 0, 2);
        assert!(bytes.ends_with(&[&5_i64.to_le_bytes()[..], &[24], &[b'.'; 24]].concat()));
        let update = options("update", &[("row-size", "64"), ("compressible", "100"), ("rows", "1"), ("key", "char")]);
        let (_, bytes) = say(&mut Smacker::new(&update, &next, None, portion(0, 1)), 0, 2);
        let name = update.key_literal(1).replace('\'', "");
        assert_eq!(bytes[0], 0x17);
        assert!(bytes.ends_with(&[&[39][..], &[b'.'; 39], &[name.len() as u8], name.as_bytes()].concat()));
    }

    #[test]
    fn new_keys_ascend_and_no_two_clients_share_one() {
        let insert = options("insert", &[TEXT, ("row-size", "32")]);
        let next = AtomicI64::new(90_001);
        let mut threads = [portion(0, 2), portion(2, 3)].map(|portion| Smacker::new(&insert, &next, None, portion));
        let key = |sql: String| sql.split(['(', ',']).nth(3).unwrap().parse::<i64>().unwrap();
        let mut keys = Vec::new();
        for turn in 0..300 {
            let thread = turn % 2;
            keys.push(key(text(&mut threads[thread], turn % (2 + thread)).1));
        }
        assert_eq!(keys, (90_001..90_301).collect::<Vec<_>>());
    }

    fn draws(smacker: &mut Smacker<'_>, client: usize, count: usize) -> Vec<u64> {
        (0..count).map(|_| text(smacker, client).1.rsplit(' ').next().unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn keys_are_drawn_from_all_rows_by_the_distribution_asked_for() {
        let next = AtomicI64::new(0);
        let uniform = options("select", &[TEXT, ("rows", "100")]);
        let mut counts = [0; 101];
        let mut smacker = Smacker::new(&uniform, &next, None, portion(0, 1));
        for key in draws(&mut smacker, 0, 20_000) {
            counts[key as usize] += 1;
        }
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|count| (120..290).contains(count)), "{counts:?}");
        let zipfian = options("select", &[TEXT, ("rows", "100"), ("rand-type", "zipfian")]);
        let keys = draws(&mut Smacker::new(&zipfian, &next, None, portion(0, 1)), 0, 20_000);
        assert!(keys.iter().all(|key| (1..=100).contains(key)));
        assert!(keys.iter().filter(|key| **key == 1).count() > 1500);
    }

    #[test]
    fn a_client_says_the_same_in_whatever_thread_it_is() {
        let next = AtomicI64::new(0);
        let select = options("select", &[TEXT]);
        let all: Vec<_> = {
            let mut smacker = Smacker::new(&select, &next, None, portion(0, 5));
            (0..5).map(|client| draws(&mut smacker, client, 20)).collect()
        };
        let second = draws(&mut Smacker::new(&select, &next, None, portion(3, 2)), 0, 20);
        assert_eq!(second, all[3]);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 5);
    }

    #[test]
    fn deletes_in_vain_are_told_apart() {
        let next = AtomicI64::new(0);
        let delete = options("delete", &[TEXT, ("rows", "50")]);
        let gone = DeletedKeys::new(50);
        let mut smacker = Smacker::new(&delete, &next, Some(&gone), portion(0, 1));
        let mut seen = BTreeSet::new();
        for _ in 0..1000 {
            let (said, sql) = text(&mut smacker, 0);
            assert_eq!(said.kind, u16::from(!seen.insert(sql)));
        }
        assert_eq!(seen.len(), 50);
    }

    #[test]
    fn a_refused_delete_leaves_its_key() {
        let next = AtomicI64::new(0);
        let delete = options("delete", &[TEXT, ("rows", "1")]);
        let gone = DeletedKeys::new(1);
        let mut smacker = Smacker::new(&delete, &next, Some(&gone), portion(0, 1));
        let mut kind = || {
            let (said, _) = text(&mut smacker, 0);
            let after = smacker.refused(0, 1213);
            (said.kind, after)
        };
        assert_eq!([kind(), kind()], [(0, After::GoOn); 2]);
        assert_eq!(text(&mut smacker, 0).0.kind, 0);
        assert_eq!(text(&mut smacker, 0).0.kind, 1);
        smacker.refused(0, 1213);
        assert_eq!(text(&mut smacker, 0).0.kind, 1);
    }

    #[test]
    fn each_key_has_a_mark_of_its_own() {
        let gone = DeletedKeys::new(128);
        assert!((1..=128).all(|key| !gone.mark(key)));
        assert!((1..=128).all(|key| gone.has(key) && gone.mark(key)));
        gone.unmark(64);
        assert!(!gone.has(64));
        assert!(!gone.mark(64) && gone.mark(63) && gone.mark(65));
    }
}
