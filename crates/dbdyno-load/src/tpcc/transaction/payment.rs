//! Payment (clause 2.5): in 15 % of cases by a customer of another warehouse.

use crate::protocol::encoder::Parameter;
use crate::protocol::kept_rows::KeptRows;
use crate::statements::Statement;

use super::super::draw::{between, money};
use super::super::mix::Type;
use super::super::sql::{Ask, Sender};
use super::parts::{Customer, Place, Transaction};

/// Most characters of a customer's data.
const DATA_MAX: usize = 500;

/// Columns of what is asked for.
const WAREHOUSE_COLUMNS: usize = 6;
const DISTRICT_COLUMNS: usize = 6;
const PAYER_COLUMNS: usize = 14;

/// What comes next, or was asked last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Begin,
    PayWarehouse,
    Warehouse,
    PayDistrict,
    District,
    Named,
    Payer,
    Pay,
    BadCredit,
    PayBadCredit,
    History,
    Commit,
}

/// The transaction.
pub struct Payment {
    warehouse: i64,
    district: i64,
    customer: Customer,
    amount: String,
    step: Step,
    last: Step,
    bad_credit: bool,
    warehouse_name: Vec<u8>,
    district_name: Vec<u8>,
    data: Vec<u8>,
}

impl Payment {
    /// Draws one.
    pub fn draw(place: &mut Place<'_>) -> Self {
        let (warehouse, district) = (place.warehouse, place.any_district());
        let customer = match place.remote(15) {
            Some(other) => {
                let district = place.any_district();
                Customer::draw(place, other, district)
            }
            None => Customer::draw(place, warehouse, district),
        };
        Self {
            warehouse,
            district,
            customer,
            amount: money(between(place.random, 100, 500_000)),
            step: Step::Begin,
            last: Step::Begin,
            bad_credit: false,
            warehouse_name: Vec::new(),
            district_name: Vec::new(),
            data: Vec::new(),
        }
    }

    fn after(&self, step: Step) -> Step {
        match step {
            Step::Begin => Step::PayWarehouse,
            Step::PayWarehouse => Step::Warehouse,
            Step::Warehouse => Step::PayDistrict,
            Step::PayDistrict => Step::District,
            Step::District if self.customer.name.is_some() => Step::Named,
            Step::District | Step::Named => Step::Payer,
            // Decided by the answer.
            Step::Payer if self.bad_credit => Step::BadCredit,
            Step::Payer => Step::Pay,
            Step::BadCredit => Step::PayBadCredit,
            Step::Pay | Step::PayBadCredit => Step::History,
            Step::History | Step::Commit => Step::Commit,
        }
    }

    /// The payment in front of what the data said so far.
    fn renew_data(&mut self, old: &[u8]) {
        let Customer { warehouse, district, id, .. } = self.customer;
        let head = format!("{id} {district} {warehouse} {} {} {} ", self.district, self.warehouse, self.amount);
        self.data = [head.as_bytes(), old].concat();
        self.data.truncate(DATA_MAX);
    }
}

impl Transaction for Payment {
    fn next(&mut self, mut send: Sender<'_, '_>) -> Statement {
        use Parameter::{Integer, Text};
        self.last = self.step;
        let amount = Text(self.amount.as_bytes());
        let [warehouse, district] = [self.warehouse, self.district];
        let key = self.customer.key();
        let [c_warehouse, c_district, c_id] = key.map(Integer);
        let statement = match self.step {
            Step::Begin => send.begin(),
            Step::PayWarehouse => send.ask(Ask::PayWarehouse, &[amount, Integer(warehouse)]),
            Step::Warehouse => send.numbers(Ask::Warehouse, [warehouse]),
            Step::PayDistrict => send.ask(Ask::PayDistrict, &[amount, Integer(warehouse), Integer(district)]),
            Step::District => send.numbers(Ask::District, [warehouse, district]),
            Step::Named => self.customer.ask(self.customer.name.as_deref().unwrap_or_default(), &mut send),
            Step::Payer => send.numbers(Ask::Payer, key),
            Step::Pay => send.ask(Ask::Pay, &[amount, amount, c_warehouse, c_district, c_id]),
            Step::BadCredit => send.numbers(Ask::BadCredit, key),
            Step::PayBadCredit => {
                send.ask(Ask::PayBadCredit, &[amount, amount, Text(&self.data), c_warehouse, c_district, c_id])
            }
            Step::History => {
                let data = [&self.warehouse_name[..], b"    ", &self.district_name].concat();
                let place = [Integer(district), Integer(warehouse)];
                let values = [c_id, c_district, c_warehouse, place[0], place[1], amount, Text(&data)];
                send.ask(Ask::AddHistory, &values)
            }
            Step::Commit => send.commit(),
        };
        self.step = self.after(self.step);
        statement
    }

    fn answered(&mut self, rows: &KeptRows) -> Option<()> {
        match self.last {
            Step::Warehouse => self.warehouse_name = rows.row(0, WAREHOUSE_COLUMNS)?.text()?.to_vec(),
            Step::District => self.district_name = rows.row(0, DISTRICT_COLUMNS)?.text()?.to_vec(),
            Step::Named => self.customer.found(rows)?,
            Step::Payer => {
                self.bad_credit = rows.row(0, PAYER_COLUMNS)?.text()? == b"BC";
                self.step = self.after(Step::Payer);
            }
            Step::BadCredit => {
                let mut row = rows.row(0, 1)?;
                self.renew_data(row.text()?);
            }
            _ => {}
        }
        Some(())
    }

    fn start_over(&mut self) {
        (self.step, self.bad_credit) = (Step::Begin, false);
    }

    fn kind(&self) -> u16 {
        Type::Payment as u16
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_common::random::Random;

    use super::super::super::draw::Constants;
    use super::*;

    #[test]
    fn payments_are_drawn_as_the_standard_says() {
        let mut random = Random::new(1);
        let constants = Constants::new(1);
        let mut draw =
            || Payment::draw(&mut Place { random: &mut random, constants, warehouses: 5, warehouse: 2, district: 1 });
        let drawn: Vec<Payment> = (0..20_000).map(|_| draw()).collect();
        let share = |of: &dyn Fn(&Payment) -> bool| drawn.iter().filter(|one| of(one)).count() as f64 / 20_000.0;
        assert!((0.14..0.16).contains(&share(&|one| one.customer.warehouse != 2)));
        assert!((0.59..0.61).contains(&share(&|one| one.customer.name.is_some())));
        assert!(share(&|one| one.customer.warehouse == 2 && one.customer.district != one.district) == 0.0);
    }

    #[test]
    fn data_keep_their_length() {
        let mut random = Random::new(1);
        let mut place =
            Place { random: &mut random, constants: Constants::new(1), warehouses: 1, warehouse: 1, district: 1 };
        let mut payment = Payment::draw(&mut place);
        payment.renew_data(&[b'x'; 500]);
        assert!(payment.data.len() == 500 && payment.data.ends_with(b"x") && !payment.data.starts_with(b"x"));
    }
}
