//! What the clients send.

use dbdyno_common::random::Random;

use crate::protocol::encoder::{Parameter, RequestEncoder};
use crate::protocol::packet;
use crate::statements::{After, Next, Part, Statement, Statements};
use crate::workload::Portion;

use super::options::{Mode, Options};
use super::share::{Share, rows_of_last};
use super::sql::{TEXT, call, insert_head};

/// Kinds, in the order of [`crate::workload::Workload::kinds`].
const WRITES: u16 = 0;
const BEGIN: u16 = 1;
const COMMIT: u16 = 2;
const ROLLBACK: u16 = 3;

/// A client.
#[derive(Debug)]
struct Cursor {
    share: Share,
    /// Events that are done.
    done: u64,
    /// Statements of the open event that were sent.
    sent: u32,
    /// The open transaction failed and is to be rolled back before it is tried again.
    broken: bool,
    random: Random,
}

/// The clients of one thread.
#[derive(Debug)]
pub struct Writer<'a> {
    options: &'a Options,
    clients: Vec<Cursor>,
    /// CALLs of whole events, and of the last.
    call: Vec<u8>,
    call_last: Vec<u8>,
    begin: Vec<u8>,
    commit: Vec<u8>,
    rollback: Vec<u8>,
    /// The text INSERT, whose head stays.
    insert: Vec<u8>,
    head_length: usize,
    /// Of the prepared INSERT.
    parameters: Vec<Parameter<'static>>,
}

impl<'a> Writer<'a> {
    /// Clients that share the rows of a run.
    pub fn new(options: &'a Options, portion: Portion) -> Self {
        // A warm-up ends by time alone.
        let rows = options.rows.filter(|_| !portion.warmup);
        let share = |client| Share::of(client, portion.of as u64, rows, options.rows_per_event);
        let clients = (portion.first..).zip(portion.generators()).map(|(number, random)| Cursor {
            share: share(number as u64),
            done: 0,
            sent: 0,
            broken: false,
            random,
        });
        let rows_last = rows.map_or(options.rows_per_event, |rows| rows_of_last(rows, options.rows_per_event));
        let insert = insert_head().into_bytes();
        let row = [Parameter::Integer(0), Parameter::Integer(0), Parameter::Integer(0), Parameter::Text(TEXT)];
        Self {
            options,
            clients: clients.collect(),
            call: call(options, options.rows_per_event),
            call_last: call(options, rows_last),
            begin: packet::query(b"BEGIN"),
            commit: packet::query(b"COMMIT"),
            rollback: packet::query(b"ROLLBACK"),
            head_length: insert.len(),
            insert,
            parameters: row.repeat(options.rows_per_insert as usize),
        }
    }

    fn write_call(&mut self, rows: u32, encoder: &mut RequestEncoder<'_>) {
        let options = self.options;
        if options.prepared {
            let parameters = [rows, options.value_range, options.rows_per_commit];
            encoder.execute(0, &parameters.map(|number| Parameter::Integer(number.into())));
        } else {
            encoder.packets(if rows == options.rows_per_event { &self.call } else { &self.call_last });
        }
    }

    fn write_insert(&mut self, client: usize, rows: u32, encoder: &mut RequestEncoder<'_>) {
        let options = self.options;
        let random = &mut self.clients[client].random;
        // Uniform over 0..=range, as the procedure's values but for its half as likely ends.
        let mut value = || i64::from(random.below(u64::from(options.value_range) + 1) as u32);
        // A smaller one was not prepared.
        if options.prepared && rows == options.rows_per_insert {
            for row in self.parameters.chunks_exact_mut(4) {
                row[..3].fill_with(|| Parameter::Integer(value()));
            }
            encoder.execute(0, &self.parameters);
            return;
        }
        self.insert.truncate(self.head_length);
        for row in 0..rows {
            self.insert.extend_from_slice(if row == 0 { b"(" } else { b",(" });
            for _ in 0..3 {
                self.insert.extend_from_slice(itoa::Buffer::new().format(value()).as_bytes());
                self.insert.push(b',');
            }
            self.insert.push(b'\'');
            self.insert.extend_from_slice(TEXT);
            self.insert.extend_from_slice(b"')");
        }
        encoder.query(&[&self.insert]);
    }

    /// Statement number `place` of a transaction that adds `rows` rows.
    fn write_in_transaction(
        &mut self,
        client: usize,
        place: u32,
        rows: u32,
        encoder: &mut RequestEncoder<'_>,
    ) -> Statement {
        let per_insert = self.options.rows_per_insert;
        let inner = |kind| Statement { kind, part: Part::Inner, rows: 0, phase: 0 };
        if place == 0 {
            encoder.packets(&self.begin);
            return inner(BEGIN);
        }
        let before = (place - 1) * per_insert;
        if before < rows {
            self.write_insert(client, per_insert.min(rows - before), encoder);
            return inner(WRITES);
        }
        encoder.packets(&self.commit);
        // Only now are they there for good.
        Statement { kind: COMMIT, part: Part::Last, rows, phase: 0 }
    }
}

impl Statements for Writer<'_> {
    #[inline]
    fn next(&mut self, client: usize, encoder: &mut RequestEncoder<'_>) -> Next {
        let options = self.options;
        let this = &mut self.clients[client];
        if this.broken {
            this.broken = false;
            encoder.packets(&self.rollback);
            return Next::Send(Statement { kind: ROLLBACK, part: Part::Inner, rows: 0, phase: 0 });
        }
        let rows = this.share.event(this.done);
        let statements = match (options.mode, rows) {
            (Mode::Transaction, Some(rows)) => rows.div_ceil(options.rows_per_insert) + 2,
            _ => 1,
        };
        if this.sent == statements {
            this.sent = 0;
            this.done += 1;
        }
        let Some(rows) = this.share.event(this.done) else {
            return Next::Done;
        };
        let place = this.sent;
        this.sent += 1;
        Next::Send(match options.mode {
            Mode::Transaction => self.write_in_transaction(client, place, rows, encoder),
            Mode::Procedure => {
                self.write_call(rows, encoder);
                Statement { kind: WRITES, part: Part::Last, rows, phase: 0 }
            }
            Mode::Insert => {
                self.write_insert(client, rows, encoder);
                Statement { kind: WRITES, part: Part::Last, rows, phase: 0 }
            }
        })
    }

    /// A transaction is tried again; rows that commit by themselves are not, as some of them may be there.
    fn refused(&mut self, client: usize, _code: u16) -> After {
        let again = self.reconnected(client);
        self.clients[client].broken = again == After::StartOver;
        again
    }

    /// The server rolled back what did not commit. If the COMMIT itself was in flight, it is unknown whether it did, and
    /// its rows may be there twice.
    fn reconnected(&mut self, client: usize) -> After {
        if self.options.mode != Mode::Transaction {
            return After::GoOn;
        }
        let this = &mut self.clients[client];
        this.sent = 0;
        this.broken = false;
        After::StartOver
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
