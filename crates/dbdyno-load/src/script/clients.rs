//! What the clients send.

use dbdyno_common::random::Random;

use crate::protocol::encoder::{Parameter, RequestEncoder};
use crate::protocol::packet;
use crate::statements::{After, Next, Part, Statement, Statements};
use crate::workload::Portion;

use super::generator::{Drawn, pick};
use super::model::Piece;
use super::plan::{BlockPlan, Form, Plan};

/// Errors after which a transaction can succeed when it is sent again: deadlock, lock wait timeout,
/// and a row changed since the snapshot was taken (MariaDB).
const GIVEN_UP: [u16; 3] = [1213, 1205, 1020];

/// The clients of one thread.
pub struct ScriptClients<'a> {
    plan: &'a Plan,
    clients: Vec<Cursor>,
    rollback: Vec<u8>,
    text: Vec<u8>,
}

struct Cursor {
    random: Random,
    block: usize,
    /// Number of the next line.
    next: usize,
    /// The block is sent to its end.
    is_over: bool,
    /// A ROLLBACK comes before the next line, or is in flight.
    rollback: Rollback,
    drawn: Vec<Drawn>,
}

#[derive(Clone, Copy, PartialEq)]
enum Rollback {
    No,
    Due,
    InFlight,
}

impl<'a> ScriptClients<'a> {
    /// For the clients of `portion`.
    pub fn new(plan: &'a Plan, portion: Portion) -> Self {
        let most = plan.blocks.iter().map(|block| block.generators.len()).max().unwrap_or(0);
        // Seeds are often next to each other, as are clients: both are mixed before they meet.
        let base = Random::new(portion.seed).bits();
        let seed = |number: usize| Random::new(base.wrapping_add((portion.first + number) as u64)).bits();
        let client = |number: usize| Cursor {
            random: Random::new(seed(number)),
            block: 0,
            next: 0,
            is_over: true,
            rollback: Rollback::No,
            drawn: vec![Drawn::default(); most],
        };
        let clients = (0..portion.clients).map(client).collect();
        Self { plan, clients, rollback: packet::query(b"ROLLBACK"), text: Vec::new() }
    }
}

impl Cursor {
    /// Starts another event.
    fn begin(&mut self, plan: &Plan) {
        self.block = pick(&plan.ends, &mut self.random);
        self.next = 0;
        for (generator, drawn) in plan.blocks[self.block].generators.iter().zip(&mut self.drawn) {
            generator.draw(&mut self.random, drawn);
        }
    }

    /// Goes back to where the transaction began that the line in flight is in; false if there is
    /// none, and so nothing to send again but this line.
    fn go_back(&mut self, plan: &Plan) -> bool {
        let in_flight = self.next - 1;
        self.next = plan.blocks[self.block].lines[in_flight].retry_from;
        self.is_over = false;
        self.next < in_flight
    }
}

fn write(block: &BlockPlan, form: &Form, drawn: &[Drawn], text: &mut Vec<u8>, encoder: &mut RequestEncoder<'_>) {
    match form {
        Form::Packets(packets) => encoder.packets(packets),
        Form::Text(pieces) => {
            text.clear();
            for piece in pieces {
                match piece {
                    Piece::Sql(sql) => text.extend_from_slice(sql.as_bytes()),
                    Piece::Value(number) => block.generators[*number].write(&drawn[*number], text),
                }
            }
            encoder.query(&[text]);
        }
        Form::Prepared(number, values) => {
            let parameters: Vec<Parameter<'_>> =
                values.iter().map(|value| block.generators[*value].parameter(&drawn[*value])).collect();
            encoder.execute(*number, &parameters);
        }
    }
}

impl Statements for ScriptClients<'_> {
    fn next(&mut self, client: usize, encoder: &mut RequestEncoder<'_>) -> Next {
        let client = &mut self.clients[client];
        if client.rollback == Rollback::Due {
            client.rollback = Rollback::InFlight;
            encoder.packets(&self.rollback);
            return Next::Send(Statement { kind: self.plan.rollback, part: Part::Apart, rows: 0, phase: 0 });
        }
        client.rollback = Rollback::No;
        if client.is_over {
            client.begin(self.plan);
        }
        let block = &self.plan.blocks[client.block];
        let line = &block.lines[client.next];
        write(block, &line.form, &client.drawn, &mut self.text, encoder);
        client.next += 1;
        client.is_over = client.next == block.lines.len();
        let part = if client.is_over { Part::Last } else { Part::Inner };
        Next::Send(Statement { kind: line.kind, part, rows: 0, phase: 0 })
    }

    fn refused(&mut self, client: usize, code: u16) -> After {
        let client = &mut self.clients[client];
        if client.rollback == Rollback::InFlight || !GIVEN_UP.contains(&code) {
            return After::GoOn;
        }
        // A lock wait timeout ends no transaction.
        if client.go_back(self.plan) {
            client.rollback = Rollback::Due;
        }
        After::StartOver
    }

    fn reconnected(&mut self, client: usize) -> After {
        let client = &mut self.clients[client];
        if client.rollback == Rollback::InFlight {
            return After::GoOn;
        }
        let line = &self.plan.blocks[client.block].lines[client.next - 1];
        // A statement on its own may have been executed.
        if line.retry_from == client.next - 1 {
            return After::GoOn;
        }
        client.go_back(self.plan);
        After::StartOver
    }
}

#[cfg(test)]
#[path = "clients_tests.rs"]
mod tests;
