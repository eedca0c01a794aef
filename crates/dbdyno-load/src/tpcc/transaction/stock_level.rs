//! Stock-Level (clause 2.8): items of a district's last 20 orders that are running out.

use crate::protocol::kept_rows::KeptRows;
use crate::statements::Statement;

use super::super::draw::between;
use super::super::mix::Type;
use super::super::sql::{Ask, Sender};
use super::parts::{Place, Transaction};

/// Orders that are looked at.
const ORDERS: i64 = 20;

/// The transaction.
pub struct StockLevel {
    warehouse: i64,
    district: i64,
    threshold: i64,
    next_order: i64,
    at: usize,
}

impl StockLevel {
    /// Draws one.
    pub fn draw(place: &mut Place<'_>) -> Self {
        let threshold = between(place.random, 10, 20);
        Self { warehouse: place.warehouse, district: place.district, threshold, next_order: 0, at: 0 }
    }
}

impl Transaction for StockLevel {
    fn next(&mut self, mut send: Sender<'_, '_>) -> Statement {
        let Self { warehouse, district, threshold, next_order, at } = *self;
        self.at += 1;
        match at {
            0 => send.begin(),
            1 => send.numbers(Ask::OrdersSoFar, [warehouse, district]),
            2 => send.numbers(Ask::LowStock, [warehouse, district, next_order - ORDERS, next_order, threshold]),
            _ => send.commit(),
        }
    }

    fn answered(&mut self, rows: &KeptRows) -> Option<()> {
        if self.at == 2 {
            self.next_order = rows.row(0, 1)?.int()?.into();
        }
        Some(())
    }

    fn start_over(&mut self) {
        self.at = 0;
    }

    fn kind(&self) -> u16 {
        Type::StockLevel as u16
    }
}
