//! What transactions have in common.

use dbdyno_common::random::Random;

use crate::protocol::encoder::Parameter;
use crate::protocol::kept_rows::KeptRows;
use crate::statements::Statement;

use super::super::draw::{Constants, between};
use super::super::schema::DISTRICTS;
use super::super::sql::{Ask, Sender};

/// Where a terminal stands, and what it draws by.
pub struct Place<'a> {
    /// Of the terminal.
    pub random: &'a mut Random,
    /// Of the run.
    pub constants: Constants,
    /// How many warehouses there are.
    pub warehouses: i64,
    /// The terminal's own.
    pub warehouse: i64,
    /// Of Stock-Level.
    pub district: i64,
}

impl Place<'_> {
    /// One of the ten.
    pub fn any_district(&mut self) -> i64 {
        between(self.random, 1, DISTRICTS)
    }

    /// Another warehouse than the terminal's in `percent` of cases, if there is one.
    pub fn remote(&mut self, percent: u64) -> Option<i64> {
        if self.random.below(100) >= percent || self.warehouses == 1 {
            return None;
        }
        let other = between(self.random, 1, self.warehouses - 1);
        Some(if other >= self.warehouse { other + 1 } else { other })
    }
}

/// A transaction.
pub trait Transaction: Send {
    /// Writes its next statement; the one with [`crate::statements::Part::Last`] ends it.
    fn next(&mut self, send: Sender<'_, '_>) -> Statement;

    /// Takes what its statement was answered with; `None` where that can't be.
    fn answered(&mut self, rows: &KeptRows) -> Option<()>;

    /// It starts over, with the same values.
    fn start_over(&mut self);

    /// As what it counts when it has ended.
    fn kind(&self) -> u16;
}

/// A customer, in 60 % of cases by name (clauses 2.5.1.2 and 2.6.1.2).
pub struct Customer {
    /// Where it is one.
    pub warehouse: i64,
    /// See `warehouse`.
    pub district: i64,
    /// Its last name, where it is asked for by that.
    pub name: Option<String>,
    /// 0 where it is not known yet.
    pub id: i64,
}

impl Customer {
    /// Draws one of a district.
    pub fn draw(place: &mut Place<'_>, warehouse: i64, district: i64) -> Self {
        let constants = place.constants;
        if place.random.below(100) < 60 {
            return Self { warehouse, district, name: Some(constants.last_name(place.random)), id: 0 };
        }
        Self { warehouse, district, name: None, id: constants.customer(place.random) }
    }

    /// Asks for all with the name.
    pub fn ask(&self, name: &str, send: &mut Sender<'_, '_>) -> Statement {
        let key = [Parameter::Integer(self.warehouse), Parameter::Integer(self.district)];
        send.ask(Ask::Named, &[key[0], key[1], Parameter::Text(name.as_bytes())])
    }

    /// Of all with the name it is the one in the middle.
    pub fn found(&mut self, rows: &KeptRows) -> Option<()> {
        let middle = rows.len().checked_sub(1)? / 2;
        self.id = rows.row(middle, 1)?.int()?.into();
        Some(())
    }

    /// As its table is keyed.
    pub fn key(&self) -> [i64; 3] {
        [self.warehouse, self.district, self.id]
    }
}
