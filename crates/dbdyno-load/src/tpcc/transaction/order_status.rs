//! Order-Status (clause 2.6): a customer's last order.

use crate::protocol::kept_rows::KeptRows;
use crate::statements::Statement;

use super::super::mix::Type;
use super::super::sql::{Ask, Sender};
use super::parts::{Customer, Place, Transaction};

const ORDER_COLUMNS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Begin,
    Named,
    Balance,
    LastOrder,
    Lines,
    Commit,
}

/// The transaction.
pub struct OrderStatus {
    customer: Customer,
    order: i64,
    step: Step,
    last: Step,
}

impl OrderStatus {
    /// Draws one.
    pub fn draw(place: &mut Place<'_>) -> Self {
        let (warehouse, district) = (place.warehouse, place.any_district());
        let customer = Customer::draw(place, warehouse, district);
        Self { customer, order: 0, step: Step::Begin, last: Step::Begin }
    }
}

impl Transaction for OrderStatus {
    fn next(&mut self, mut send: Sender<'_, '_>) -> Statement {
        self.last = self.step;
        let key = self.customer.key();
        let (statement, next) = match (self.step, &self.customer.name) {
            (Step::Begin, Some(_)) => (send.begin(), Step::Named),
            (Step::Begin, None) => (send.begin(), Step::Balance),
            (Step::Named, name) => (self.customer.ask(name.as_deref().unwrap_or_default(), &mut send), Step::Balance),
            (Step::Balance, _) => (send.numbers(Ask::Balance, key), Step::LastOrder),
            (Step::LastOrder, _) => (send.numbers(Ask::LastOrder, key), Step::Lines),
            (Step::Lines, _) => (send.numbers(Ask::Lines, [key[0], key[1], self.order]), Step::Commit),
            (Step::Commit, _) => (send.commit(), Step::Commit),
        };
        self.step = next;
        statement
    }

    fn answered(&mut self, rows: &KeptRows) -> Option<()> {
        match self.last {
            Step::Named => self.customer.found(rows),
            Step::LastOrder => {
                self.order = rows.row(0, ORDER_COLUMNS)?.int()?.into();
                Some(())
            }
            _ => Some(()),
        }
    }

    fn start_over(&mut self) {
        self.step = Step::Begin;
    }

    fn kind(&self) -> u16 {
        Type::OrderStatus as u16
    }
}
