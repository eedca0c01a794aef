//! Delivery (clause 2.7): the oldest new order of each district, in one transaction. It is done at once, not queued.

use crate::protocol::encoder::Parameter;
use crate::protocol::kept_rows::KeptRows;
use crate::statements::Statement;

use super::super::draw::{between, money};
use super::super::mix::Type;
use super::super::schema::DISTRICTS;
use super::super::sql::{Ask, Sender};
use super::parts::{Place, Transaction};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Begin,
    Oldest,
    Delete,
    Deliver,
    Carrier,
    OrderOf,
    Amount,
    Credit,
    Commit,
}

/// The transaction.
pub struct Delivery {
    warehouse: i64,
    carrier: i64,
    district: i64,
    order: i64,
    customer: i64,
    amount: i64,
    step: Step,
    last: Step,
}

impl Delivery {
    /// Draws one.
    pub fn draw(place: &mut Place<'_>) -> Self {
        let carrier = between(place.random, 1, 10);
        let (district, order, customer, amount) = (1, 0, 0, 0);
        let (step, last) = (Step::Begin, Step::Begin);
        Self { warehouse: place.warehouse, carrier, district, order, customer, amount, step, last }
    }

    /// Goes on to the next district, or ends.
    fn next_district(&mut self) {
        self.district += 1;
        self.step = if self.district > DISTRICTS { Step::Commit } else { Step::Oldest };
    }
}

impl Transaction for Delivery {
    fn next(&mut self, mut send: Sender<'_, '_>) -> Statement {
        self.last = self.step;
        let Self { warehouse, carrier, district, order, customer, .. } = *self;
        let key = [warehouse, district, order];
        // An order that was changed is seen, whatever a snapshot holds: so it is asked for after that.
        let (statement, next) = match self.step {
            Step::Begin => (send.begin(), Step::Oldest),
            Step::Oldest => (send.numbers(Ask::Oldest, [warehouse, district]), Step::Delete),
            Step::Delete => (send.numbers(Ask::Deliver, key), Step::Carrier),
            Step::Carrier => (send.numbers(Ask::Carrier, [carrier, warehouse, district, order]), Step::OrderOf),
            Step::OrderOf => (send.numbers(Ask::OrderOf, key), Step::Deliver),
            Step::Deliver => (send.numbers(Ask::DeliverLines, key), Step::Amount),
            Step::Amount => (send.numbers(Ask::Amount, key), Step::Credit),
            Step::Credit => {
                let amount = money(self.amount);
                let key = [warehouse, district, customer].map(Parameter::Integer);
                let values = [Parameter::Text(amount.as_bytes()), key[0], key[1], key[2]];
                (send.ask(Ask::Credit, &values), Step::Oldest)
            }
            Step::Commit => (send.commit(), Step::Commit),
        };
        self.step = next;
        if self.last == Step::Credit {
            self.next_district();
        }
        statement
    }

    fn answered(&mut self, rows: &KeptRows) -> Option<()> {
        match self.last {
            // A district may have none left.
            Step::Oldest if rows.is_empty() => self.next_district(),
            Step::Oldest => self.order = rows.row(0, 1)?.int()?.into(),
            Step::OrderOf => self.customer = rows.row(0, 1)?.int()?.into(),
            Step::Amount => self.amount = rows.row(0, 1)?.hundredths()?,
            _ => {}
        }
        Some(())
    }

    fn start_over(&mut self) {
        (self.step, self.district) = (Step::Begin, 1);
    }

    fn kind(&self) -> u16 {
        Type::Delivery as u16
    }
}
