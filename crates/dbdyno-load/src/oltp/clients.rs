//! What the clients of `oltp` send.

use std::sync::atomic::{AtomicU64, Ordering};

use dbdyno_common::random::Random;

use crate::distribution::Sampler;
use crate::protocol::encoder::{Parameter, RequestEncoder};
use crate::protocol::packet;
use crate::statements::{After, Next, Part, Statement, Statements};
use crate::workload::Portion;

use super::event::Action;
use super::options::Options;
use super::rows::Texts;

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

/// The statements to prepare, and their numbers by the steps of the event. `transactions` says whether the server prepares
/// BEGIN and COMMIT: MariaDB does, MySQL does not, and gets them as text, from sysbench too.
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
        let place = actions.iter().position(|one| *one == action)?;
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

    /// The event begins anew with values of its own, as sysbench's. A transaction that the error left open is committed by
    /// the BEGIN that follows.
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
#[path = "clients_tests.rs"]
mod tests;
