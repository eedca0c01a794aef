//! Makes the tables and fills them, over several connections.

use dbdyno_common::random::Random;

use crate::error::Error;
use crate::fill::share_out;
use crate::names::quoted;
use crate::protocol::session::Session;

use super::draw::{between, shuffled};
use super::options::Options;
use super::rows::Writer;
use super::schema::{CUSTOMERS, DISTRICTS, INDEXES, ITEMS, TABLES, UNDELIVERED};

/// Pieces into which a list of all items is cut.
const CUTS: i64 = 10;

/// Makes all tables with their rows, then the indexes.
///
/// # Errors
/// One of them is there, or the server refuses.
pub fn prepare(session: &mut Session, options: &Options, begun: &mut bool) -> Result<(), Error> {
    options.tables.iter().try_for_each(|table| table.check_absent(session))?;
    for (table, columns) in options.tables.iter().zip(TABLES) {
        let made = table.make(session, &columns.definition(), &mut false);
        // Even one that failed may come after others.
        *begun |= made.is_ok();
        made?;
    }
    let enter = |session: &mut Session| session.execute(&format!("USE {}", quoted(&options.schema)));
    enter(session)?;
    let pieces = pieces(options.warehouses);
    share_out(session, options.fillers, pieces.len() as u64, enter, |session, number, _| {
        // The same rows whoever makes them, and however many do.
        let seed = Random::new(options.seed).bits() ^ Random::new(!number).bits();
        pieces[number as usize].fill(&mut Filling { session, options, random: Random::new(seed) })
    })?;
    INDEXES.iter().try_for_each(|index| session.execute_long(index))
}

/// Rows that one connection makes at a time.
#[derive(Debug, Clone, Copy)]
enum Piece {
    /// A part of all items.
    Items(i64),
    /// A warehouse and its districts.
    Warehouse(i64),
    /// A part of a warehouse's stock.
    Stock(i64, i64),
    /// Customers of a district and what they paid.
    Customers(i64, i64),
    /// Orders of a district.
    Orders(i64, i64),
}

fn pieces(warehouses: i64) -> Vec<Piece> {
    let of_one = |warehouse| {
        let stock = (0..CUTS).map(move |cut| Piece::Stock(warehouse, cut));
        let customers = (1..=DISTRICTS).map(move |district| Piece::Customers(warehouse, district));
        let orders = (1..=DISTRICTS).map(move |district| Piece::Orders(warehouse, district));
        std::iter::once(Piece::Warehouse(warehouse)).chain(stock).chain(customers).chain(orders)
    };
    (0..CUTS).map(Piece::Items).chain((1..=warehouses).flat_map(of_one)).collect()
}

struct Filling<'a> {
    session: &'a mut Session,
    options: &'a Options,
    random: Random,
}

impl Filling<'_> {
    /// Adds so many rows to a table; `row` writes the one with a number from 0.
    fn rows(&mut self, table: &str, rows: i64, mut row: impl FnMut(&mut Writer<'_>, i64)) -> Result<(), Error> {
        let at = TABLES.iter().position(|columns| columns.name == table).unwrap_or(0);
        let mut number = 0;
        self.options.tables[at].fill(self.session, &TABLES[at].names(), rows as u64, |sql| {
            row(&mut Writer::new(&mut self.random, sql), number);
            number += 1;
        })
    }
}

impl Piece {
    fn fill(self, to: &mut Filling<'_>) -> Result<(), Error> {
        const EACH: i64 = ITEMS / CUTS;
        match self {
            Self::Items(cut) => to.rows("item", EACH, |row, number| row.item(cut * EACH + number + 1)),
            Self::Warehouse(warehouse) => {
                to.rows("warehouse", 1, |row, _| row.warehouse(warehouse))?;
                to.rows("district", DISTRICTS, |row, number| row.district(warehouse, number + 1))
            }
            Self::Stock(warehouse, cut) => {
                to.rows("stock", EACH, |row, number| row.stock(warehouse, cut * EACH + number + 1))
            }
            Self::Customers(warehouse, district) => {
                to.rows("customer", CUSTOMERS, |row, number| row.customer(warehouse, district, number + 1))?;
                to.rows("history", CUSTOMERS, |row, number| row.history(warehouse, district, number + 1))
            }
            Self::Orders(warehouse, district) => orders(to, warehouse, district),
        }
    }
}

/// Each customer of a district has one order; the last 900 are not delivered.
fn orders(to: &mut Filling<'_>, warehouse: i64, district: i64) -> Result<(), Error> {
    let customers = shuffled(&mut to.random, CUSTOMERS);
    let lines: Vec<i64> = customers.iter().map(|_| between(&mut to.random, 5, 15)).collect();
    to.rows("orders", CUSTOMERS, |row, number| {
        row.order(warehouse, district, number + 1, customers[number as usize], lines[number as usize]);
    })?;
    let numbered = lines.iter().zip(1..).flat_map(|(count, order)| (1..=*count).map(move |number| (order, number)));
    let mut numbered = numbered.collect::<Vec<_>>().into_iter();
    to.rows("order_line", numbered.len() as i64, |row, _| {
        let (order, number) = numbered.next().unwrap_or_default();
        row.order_line(warehouse, district, order, number, ITEMS);
    })?;
    to.rows("new_order", CUSTOMERS - UNDELIVERED + 1, |row, number| {
        row.new_order(warehouse, district, UNDELIVERED + number);
    })
}
