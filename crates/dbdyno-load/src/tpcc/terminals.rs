//! The clients of one thread: each sends one transaction after the other.

use dbdyno_common::random::Random;

use crate::dialect::TRANSACTION_RETRYABLE;
use crate::protocol::encoder::RequestEncoder;
use crate::protocol::reply::KeptRows;
use crate::statements::{After, Next, Part, Statement, Statements};
use crate::workload::Portion;

use super::draw::{Constants, between};
use super::options::{Options, TERMINALS, Type};
use super::schema::DISTRICTS;
use super::sql::Sender;
use super::transaction::{Place, Transaction, draw};

/// The clients.
pub struct Terminals<'a> {
    options: &'a Options,
    constants: Constants,
    each: Vec<Terminal>,
}

struct Terminal {
    random: Random,
    /// Warehouse and district, where it has its own; else they are drawn for each transaction.
    home: Option<[i64; 2]>,
    /// What it does next, if that is drawn already.
    planned: Option<Type>,
    /// What it did last.
    done: Type,
    transaction: Option<Box<dyn Transaction>>,
    rollback: Rollback,
    /// As what the transaction that has just ended counts.
    ended: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rollback {
    No,
    Due,
    InFlight,
}

impl<'a> Terminals<'a> {
    /// The clients of `portion`.
    pub fn new(options: &'a Options, portion: Portion) -> Self {
        let terminal = |(number, random): (usize, Random)| Terminal {
            random,
            home: options.keying.then(|| home(number as i64)),
            planned: None,
            done: Type::NewOrder,
            transaction: None,
            // A warm-up may have left a transaction open, which BEGIN would commit.
            rollback: Rollback::Due,
            ended: None,
        };
        let each = (portion.first..).zip(portion.generators()).map(terminal).collect();
        Self { options, constants: Constants::new(portion.seed), each }
    }
}

/// Warehouse and district of a terminal.
fn home(number: i64) -> [i64; 2] {
    [number / TERMINALS + 1, number % TERMINALS + 1]
}

impl Terminal {
    fn draw(&mut self, options: &Options, constants: Constants) -> Box<dyn Transaction> {
        let random = &mut self.random;
        let kind = self.planned.take().unwrap_or_else(|| options.mix.draw(random));
        let [warehouse, district] =
            self.home.unwrap_or_else(|| [between(random, 1, options.warehouses), between(random, 1, DISTRICTS)]);
        self.done = kind;
        draw(kind, &mut Place { random, constants, warehouses: options.warehouses, warehouse, district })
    }

    /// The transaction failed: the next statement is a ROLLBACK.
    fn start_over(&mut self, rollback: Rollback, code: Option<u16>) -> After {
        self.rollback = rollback;
        match &mut self.transaction {
            Some(transaction) if code.is_none_or(|code| TRANSACTION_RETRYABLE.contains(&code)) => {
                transaction.start_over();
            }
            // What else is refused would be refused again.
            _ => self.transaction = None,
        }
        After::StartOver
    }
}

impl Statements for Terminals<'_> {
    fn next(&mut self, client: usize, encoder: &mut RequestEncoder<'_>) -> Next {
        let terminal = &mut self.each[client];
        if terminal.rollback == Rollback::Due {
            terminal.rollback = Rollback::InFlight;
            return Next::Send(Sender(encoder).rollback(Part::Apart));
        }
        terminal.rollback = Rollback::No;
        let mut transaction =
            terminal.transaction.take().unwrap_or_else(|| terminal.draw(self.options, self.constants));
        let sent = transaction.next(Sender(encoder));
        terminal.transaction = Some(transaction);
        Next::Send(sent)
    }

    fn reads_rows(&self) -> bool {
        true
    }

    fn answered(&mut self, client: usize, statement: Statement, rows: &KeptRows) -> Result<(), String> {
        let terminal = &mut self.each[client];
        let Some(transaction) = terminal.transaction.as_mut().filter(|_| terminal.rollback == Rollback::No) else {
            return Ok(());
        };
        let taken = transaction.answered(rows);
        taken.ok_or_else(|| {
            let name: &str = terminal.done.into();
            format!("the tables lack a row that {name} looks for, or have NULL there: make them anew with cleanup and prepare")
        })?;
        if statement.part == Part::Last {
            terminal.ended = terminal.transaction.take().map(|transaction| transaction.kind());
        }
        Ok(())
    }

    fn refused(&mut self, client: usize, code: u16) -> After {
        let terminal = &mut self.each[client];
        if terminal.rollback == Rollback::InFlight {
            return After::GoOn;
        }
        terminal.start_over(Rollback::Due, Some(code))
    }

    fn reconnected(&mut self, client: usize) -> After {
        self.each[client].start_over(Rollback::No, None)
    }

    fn event_kind(&self, client: usize) -> Option<u16> {
        self.each[client].ended
    }

    fn pause_ns(&mut self, client: usize) -> Option<u64> {
        if !self.options.keying {
            return None;
        }
        let terminal = &mut self.each[client];
        let next = self.options.mix.draw(&mut terminal.random);
        terminal.planned = Some(next);
        Some(terminal.done.pause_ns(next, &mut terminal.random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_warehouse_has_ten_terminals() {
        assert_eq!([home(0), home(9), home(10), home(25)], [[1, 1], [1, 10], [2, 1], [3, 6]]);
    }
}
