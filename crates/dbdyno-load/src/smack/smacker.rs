//! What the clients send.

use std::sync::atomic::{AtomicI64, Ordering};

use dbdyno_common::random::Random;

use crate::protocol::encoder::{Parameter, RequestEncoder};
use crate::statements::{After, Next, Part, Statement, Statements};
use crate::workload::Portion;

use super::gone::Gone;
use super::options::Options;
use super::query::Query;
use super::row::{Content, Key};

/// Follows those of the load's queries; see [`super::query::Load::kinds`].
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
    gone: Option<&'a Gone>,
    clients: Vec<Cursor>,
    key: Vec<u8>,
    content: Content,
}

impl<'a> Smacker<'a> {
    /// Clients that take new keys from `next`.
    pub fn new(options: &'a Options, next: &'a AtomicI64, gone: Option<&'a Gone>, portion: Portion) -> Self {
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

#[cfg(test)]
#[path = "smacker_tests.rs"]
mod tests;
