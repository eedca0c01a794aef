//! New-Order (clause 2.4): 5 to 15 items; one in a hundred asks for an item that is not there, and is rolled back.

use crate::protocol::encoder::Parameter;
use crate::protocol::kept_rows::KeptRows;
use crate::statements::{Part, Statement};

use super::super::draw::{between, money};
use super::super::mix::Type;
use super::super::schema::ITEMS;
use super::super::sql::{self, Ask, Sender};
use super::parts::{Place, Transaction};

/// Statements before those of the first line, and for each line.
const HEAD: usize = 6;
const EACH: usize = 4;

/// Columns of what is asked for.
const NEXT_ORDER_COLUMNS: usize = 2;
const ITEM_COLUMNS: usize = 3;
const STOCK_COLUMNS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    /// First, as lines are worked through in this order: two orders that lock the same stock do so in the same order.
    supply: i64,
    item: i64,
    quantity: i64,
}

/// The transaction.
pub struct NewOrder {
    warehouse: i64,
    district: i64,
    customer: i64,
    lines: Vec<Line>,
    at: usize,
    order: i64,
    price: i64,
    stock: i64,
    district_text: Vec<u8>,
    item_missing: bool,
}

impl NewOrder {
    /// Draws one.
    pub fn draw(place: &mut Place<'_>) -> Self {
        let (constants, warehouse) = (place.constants, place.warehouse);
        let district = place.any_district();
        let customer = constants.customer(place.random);
        let count = between(place.random, 5, 15);
        let line = |_| Line {
            supply: place.remote(1).unwrap_or(warehouse),
            item: constants.item(place.random),
            quantity: between(place.random, 1, 10),
        };
        let mut lines: Vec<Line> = (0..count).map(line).collect();
        lines.sort_unstable();
        if place.random.below(100) == 0
            && let Some(last) = lines.last_mut()
        {
            last.item = ITEMS + 1;
        }
        let (order, price, stock) = (0, 0, 0);
        let district_text = Vec::new();
        Self { warehouse, district, customer, lines, at: 0, order, price, stock, district_text, item_missing: false }
    }

    /// The statement for a line: its item, its stock, the stock taken, the line added.
    fn of_line(&self, number: usize, part: usize, send: &mut Sender<'_, '_>) -> Statement {
        let Line { supply, item, quantity } = self.lines[number];
        let Self { warehouse, district, order, .. } = *self;
        match part {
            0 => send.numbers(Ask::Item, [item]),
            1 => send.numbers(Ask::Stock, [district, supply, item]),
            2 => {
                let left = if self.stock >= quantity + 10 { self.stock - quantity } else { self.stock - quantity + 91 };
                send.numbers(Ask::TakeStock, [left, quantity, i64::from(supply != warehouse), supply, item])
            }
            _ => {
                let amount = money(self.price * quantity);
                let numbers =
                    [warehouse, district, order, number as i64 + 1, item, supply, quantity].map(Parameter::Integer);
                let texts = [Parameter::Text(amount.as_bytes()), Parameter::Text(&self.district_text)];
                let mut values = [Parameter::Null; 9];
                values[..7].copy_from_slice(&numbers);
                values[7..].copy_from_slice(&texts);
                send.ask(Ask::AddLine, &values)
            }
        }
    }
}

impl Transaction for NewOrder {
    fn next(&mut self, mut send: Sender<'_, '_>) -> Statement {
        let (at, lines) = (self.at, self.lines.len());
        self.at += 1;
        let Self { warehouse, district, customer, order, .. } = *self;
        match at {
            _ if self.item_missing => send.rollback(Part::Last),
            0 => send.begin(),
            1 => send.numbers(Ask::NextOrder, [warehouse, district]),
            2 => send.numbers(Ask::TakeOrder, [warehouse, district]),
            3 => send.numbers(Ask::Buyer, [warehouse, district, customer]),
            4 => {
                let is_local = self.lines.iter().all(|line| line.supply == warehouse);
                let values = [warehouse, district, order, customer, lines as i64, i64::from(is_local)];
                send.numbers(Ask::AddOrder, values)
            }
            5 => send.numbers(Ask::AddNewOrder, [warehouse, district, order]),
            at if at < HEAD + EACH * lines => self.of_line((at - HEAD) / EACH, (at - HEAD) % EACH, &mut send),
            _ => send.commit(),
        }
    }

    fn answered(&mut self, rows: &KeptRows) -> Option<()> {
        let at = self.at - 1;
        if self.item_missing {
            return Some(());
        }
        match at {
            1 => self.order = rows.row(0, NEXT_ORDER_COLUMNS)?.int()?.into(),
            at if at < HEAD || at >= HEAD + EACH * self.lines.len() => {}
            at if (at - HEAD).is_multiple_of(EACH) => match rows.row(0, ITEM_COLUMNS) {
                Some(mut row) => self.price = row.hundredths()?,
                None if rows.is_empty() && self.lines[(at - HEAD) / EACH].item > ITEMS => self.item_missing = true,
                None => return None,
            },
            at if (at - HEAD) % EACH == 1 => {
                let mut row = rows.row(0, STOCK_COLUMNS)?;
                self.stock = row.int()?.into();
                self.district_text = row.text()?.to_vec();
            }
            _ => {}
        }
        Some(())
    }

    fn start_over(&mut self) {
        (self.at, self.item_missing) = (0, false);
    }

    fn kind(&self) -> u16 {
        if self.item_missing { sql::rolled_back() } else { Type::NewOrder as u16 }
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_common::random::Random;

    use super::super::super::draw::Constants;
    use super::*;

    fn drawn(warehouses: i64, count: usize) -> Vec<NewOrder> {
        let mut random = Random::new(1);
        let constants = Constants::new(1);
        let mut draw =
            || NewOrder::draw(&mut Place { random: &mut random, constants, warehouses, warehouse: 2, district: 1 });
        (0..count).map(|_| draw()).collect()
    }

    #[test]
    fn orders_are_drawn_as_the_standard_says() {
        let orders = drawn(5, 20_000);
        let lines: Vec<&Line> = orders.iter().flat_map(|order| &order.lines).collect();
        assert!((9.9..10.1).contains(&(lines.len() as f64 / orders.len() as f64)));
        let share =
            |of: &dyn Fn(&Line) -> bool| lines.iter().filter(|line| of(line)).count() as f64 / lines.len() as f64;
        assert!((0.008..0.012).contains(&share(&|line| line.supply != 2)));
        assert!(lines.iter().all(|line| (1..=5).contains(&line.supply) && (1..=10).contains(&line.quantity)));
        let wrong = orders.iter().filter(|order| order.lines.iter().any(|line| line.item > ITEMS)).count();
        assert!((150..250).contains(&wrong), "{wrong}");
        assert!(orders.iter().all(|order| order.lines.iter().rev().skip(1).all(|line| line.item <= ITEMS)));
    }

    #[test]
    fn one_warehouse_supplies_itself() {
        assert!(drawn(1, 1000).iter().flat_map(|order| &order.lines).all(|line| line.supply == 2));
    }
}
