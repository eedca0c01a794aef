//! The transactions, each a file: what it is about, drawn once, and its statements one after the other.

mod delivery;
mod new_order;
mod order_status;
mod parts;
mod payment;
mod stock_level;

use super::mix::Type;

pub use parts::{Place, Transaction};

/// Draws a transaction of a type.
pub fn draw(kind: Type, place: &mut Place<'_>) -> Box<dyn Transaction> {
    match kind {
        Type::NewOrder => Box::new(new_order::NewOrder::draw(place)),
        Type::Payment => Box::new(payment::Payment::draw(place)),
        Type::OrderStatus => Box::new(order_status::OrderStatus::draw(place)),
        Type::Delivery => Box::new(delivery::Delivery::draw(place)),
        Type::StockLevel => Box::new(stock_level::StockLevel::draw(place)),
    }
}
