//! Makes the tables and fills them over several connections, with the rows of clause 4.3.3.1.

use std::fmt::Write as _;

use dbdyno_common::random::Random;

use super::options::Options;
use super::schema::{
    CUSTOMERS, DISTRICTS, INDEXES, ITEMS, LOAD_CONSTANT, TABLES, UNDELIVERED, between, last_name, last_name_number,
    money, put_digits, put_text, shuffled,
};
use crate::error::Error;
use crate::names::quoted;
use crate::protocol::session::Session;
use crate::tables::share_out;

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
    let of_warehouse = |warehouse| {
        let stock = (0..CUTS).map(move |cut| Piece::Stock(warehouse, cut));
        let customers = (1..=DISTRICTS).map(move |district| Piece::Customers(warehouse, district));
        let orders = (1..=DISTRICTS).map(move |district| Piece::Orders(warehouse, district));
        std::iter::once(Piece::Warehouse(warehouse)).chain(stock).chain(customers).chain(orders)
    };
    (0..CUTS).map(Piece::Items).chain((1..=warehouses).flat_map(of_warehouse)).collect()
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

/// When all that prepare makes is said to have been: the same bytes at every time.
const DATE: &str = "'2020-01-01 00:00:00'";

/// Appends rows in parentheses; writing to a string cannot fail.
pub struct Writer<'a> {
    random: &'a mut Random,
    out: &'a mut String,
}

impl<'a> Writer<'a> {
    /// Appends to `out`.
    pub fn new(random: &'a mut Random, out: &'a mut String) -> Self {
        Self { random, out }
    }

    fn text(&mut self, low: usize, high: usize) {
        self.out.push_str(",'");
        put_text(self.random, low, high, self.out);
        self.out.push('\'');
    }

    /// One in ten says ORIGINAL somewhere.
    fn data(&mut self) {
        const ORIGINAL: &str = "ORIGINAL";
        let start = self.out.len() + 2;
        self.text(26, 50);
        if self.random.below(10) == 0 {
            let room = self.out.len() - 1 - start - ORIGINAL.len();
            let at = start + self.random.below(room as u64 + 1) as usize;
            self.out.replace_range(at..at + ORIGINAL.len(), ORIGINAL);
        }
    }

    fn address(&mut self) {
        (0..3).for_each(|_| self.text(10, 20));
        self.text(2, 2);
        self.out.push_str(",'");
        put_digits(self.random, 4, self.out);
        self.out.push_str("11111'");
    }

    fn rate(&mut self, most: i64) {
        let rate = between(self.random, 0, most);
        let _ = write!(self.out, ",0.{rate:04}");
    }

    /// A row of `item`.
    pub fn item(&mut self, id: i64) {
        let image = between(self.random, 1, 10_000);
        let _ = write!(self.out, "({id},{image}");
        self.text(14, 24);
        let price = money(between(self.random, 100, 10_000));
        let _ = write!(self.out, ",{price}");
        self.data();
        self.out.push(')');
    }

    /// A row of `warehouse`.
    pub fn warehouse(&mut self, id: i64) {
        let _ = write!(self.out, "({id}");
        self.text(6, 10);
        self.address();
        self.rate(2000);
        self.out.push_str(",300000.00)");
    }

    /// A row of `district`.
    pub fn district(&mut self, warehouse: i64, id: i64) {
        let _ = write!(self.out, "({warehouse},{id}");
        self.text(6, 10);
        self.address();
        self.rate(2000);
        self.out.push_str(",30000.00,3001)");
    }

    /// A row of `stock`.
    pub fn stock(&mut self, warehouse: i64, item: i64) {
        let quantity = between(self.random, 10, 100);
        let _ = write!(self.out, "({warehouse},{item},{quantity}");
        (0..10).for_each(|_| self.text(24, 24));
        self.out.push_str(",0,0,0");
        self.data();
        self.out.push(')');
    }

    /// A row of `customer`.
    pub fn customer(&mut self, warehouse: i64, district: i64, id: i64) {
        let _ = write!(self.out, "({warehouse},{district},{id}");
        self.text(8, 16);
        // The first thousand have each name once, the others by chance.
        let name = if id <= 1000 { id - 1 } else { last_name_number(self.random, LOAD_CONSTANT) };
        let _ = write!(self.out, ",'OE','{}'", last_name(name));
        self.address();
        self.out.push_str(",'");
        put_digits(self.random, 16, self.out);
        let credit = if self.random.below(10) == 0 { "BC" } else { "GC" };
        let _ = write!(self.out, "',{DATE},'{credit}',50000.00");
        self.rate(5000);
        self.out.push_str(",-10.00,10.00,1,0");
        self.text(300, 500);
        self.out.push(')');
    }

    /// A row of `history`.
    pub fn history(&mut self, warehouse: i64, district: i64, customer: i64) {
        let _ = write!(self.out, "({customer},{district},{warehouse},{district},{warehouse},{DATE},10.00");
        self.text(12, 24);
        self.out.push(')');
    }

    /// A row of `orders`.
    pub fn order(&mut self, warehouse: i64, district: i64, id: i64, customer: i64, lines: i64) {
        let _ = write!(self.out, "({warehouse},{district},{id},{customer},{DATE},");
        if id < UNDELIVERED {
            let carrier = between(self.random, 1, 10);
            let _ = write!(self.out, "{carrier}");
        } else {
            self.out.push_str("NULL");
        }
        let _ = write!(self.out, ",{lines},1)");
    }

    /// A row of `new_order`.
    pub fn new_order(&mut self, warehouse: i64, district: i64, id: i64) {
        let _ = write!(self.out, "({warehouse},{district},{id})");
    }

    /// A row of `order_line`.
    pub fn order_line(&mut self, warehouse: i64, district: i64, order: i64, number: i64, items: i64) {
        let item = between(self.random, 1, items);
        let _ = write!(self.out, "({warehouse},{district},{order},{number},{item},{warehouse},");
        if order < UNDELIVERED {
            let _ = write!(self.out, "{DATE},5,0.00");
        } else {
            let amount = money(between(self.random, 1, 999_999));
            let _ = write!(self.out, "NULL,5,{amount}");
        }
        self.text(24, 24);
        self.out.push(')');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(write: impl Fn(&mut Writer<'_>)) -> Vec<String> {
        let mut out = String::new();
        write(&mut Writer::new(&mut Random::new(1), &mut out));
        let inner = out.strip_prefix('(').unwrap().strip_suffix(')').unwrap();
        inner.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn rows_have_a_value_for_each_column() {
        let columns =
            |name: &str| crate::tpcc::schema::TABLES.iter().find(|t| t.name == name).unwrap().to_compare().len();
        assert_eq!(row(|w| w.item(7)).len(), columns("item"));
        assert_eq!(row(|w| w.warehouse(7)).len(), columns("warehouse"));
        assert_eq!(row(|w| w.district(7, 1)).len(), columns("district"));
        assert_eq!(row(|w| w.stock(7, 1)).len(), columns("stock"));
        assert_eq!(row(|w| w.customer(7, 1, 1)).len(), columns("customer"));
        assert_eq!(row(|w| w.history(7, 1, 1)).len(), columns("history"));
        assert_eq!(row(|w| w.order(7, 1, 3000, 5, 9)).len(), columns("orders"));
        assert_eq!(row(|w| w.new_order(7, 1, 3000)).len(), columns("new_order"));
        assert_eq!(row(|w| w.order_line(7, 1, 3000, 5, 10)).len(), columns("order_line"));
    }

    #[test]
    fn one_in_ten_is_original() {
        let mut random = Random::new(2);
        let original = (0..10_000).filter(|_| {
            let mut out = String::new();
            Writer::new(&mut random, &mut out).item(1);
            assert!(out.ends_with("')") && out.len() < 120);
            out.contains("ORIGINAL")
        });
        assert!((850..1150).contains(&original.count()));
    }

    #[test]
    fn what_is_delivered_has_a_carrier_and_costs_nothing() {
        let order = |id| row(|w| w.order(1, 1, id, 5, 9))[5].clone();
        assert!(order(2100).parse::<u8>().is_ok_and(|carrier| (1..=10).contains(&carrier)));
        assert_eq!(order(2101), "NULL");
        let line = |order| row(|w| w.order_line(1, 1, order, 5, 10))[6..9].join(",");
        assert_eq!(line(2100), format!("{DATE},5,0.00"));
        assert!(line(2101).starts_with("NULL,5,"));
    }
}
