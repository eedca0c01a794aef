//! The five transactions: what each is about, drawn once, and its statements one after the other.
//!
//! New-Order (clause 2.4): 5 to 15 items; one in a hundred asks for an item that is not there, and is rolled back.
//!
//! Payment (clause 2.5): in 15 % of cases by a customer of another warehouse.
//!
//! Order-Status (clause 2.6): a customer's last order.
//!
//! Delivery (clause 2.7): the oldest new order of each district, in one transaction. It is done at once, not queued.
//!
//! Stock-Level (clause 2.8): items of a district's last 20 orders that are running out.
//!
//! Each client sends one transaction after the other.

use dbdyno_common::random::Random;

use super::options::{Options, TERMINALS, Type};
use super::schema::{Constants, DISTRICTS, ITEMS, between, money};
use super::sql::{self, QueryName, Sender};
use crate::dialect::error_codes::TRANSACTION_RETRYABLE;
use crate::protocol::packet::{Parameter, RequestEncoder};
use crate::protocol::reply::KeptRows;
use crate::statements::{After, Next, Part, Statement, Statements};
use crate::workload::Portion;

/// Draws a transaction of a type.
pub fn draw(kind: Type, place: &mut Place<'_>) -> Box<dyn Transaction> {
    match kind {
        Type::NewOrder => Box::new(NewOrder::draw(place)),
        Type::Payment => Box::new(Payment::draw(place)),
        Type::OrderStatus => Box::new(OrderStatus::draw(place)),
        Type::Delivery => Box::new(Delivery::draw(place)),
        Type::StockLevel => Box::new(StockLevel::draw(place)),
    }
}

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
    fn line_statement(&self, number: usize, part: usize, send: &mut Sender<'_, '_>) -> Statement {
        let Line { supply, item, quantity } = self.lines[number];
        let Self { warehouse, district, order, .. } = *self;
        match part {
            0 => send.numbers(QueryName::Item, [item]),
            1 => send.numbers(QueryName::Stock, [district, supply, item]),
            2 => {
                let left = if self.stock >= quantity + 10 { self.stock - quantity } else { self.stock - quantity + 91 };
                send.numbers(QueryName::TakeStock, [left, quantity, i64::from(supply != warehouse), supply, item])
            }
            _ => {
                let amount = money(self.price * quantity);
                let numbers =
                    [warehouse, district, order, number as i64 + 1, item, supply, quantity].map(Parameter::Integer);
                let texts = [Parameter::Text(amount.as_bytes()), Parameter::Text(&self.district_text)];
                let mut values = [Parameter::Null; 9];
                values[..7].copy_from_slice(&numbers);
                values[7..].copy_from_slice(&texts);
                send.ask(QueryName::AddLine, &values)
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
            1 => send.numbers(QueryName::NextOrder, [warehouse, district]),
            2 => send.numbers(QueryName::TakeOrder, [warehouse, district]),
            3 => send.numbers(QueryName::Buyer, [warehouse, district, customer]),
            4 => {
                let is_local = self.lines.iter().all(|line| line.supply == warehouse);
                let values = [warehouse, district, order, customer, lines as i64, i64::from(is_local)];
                send.numbers(QueryName::AddOrder, values)
            }
            5 => send.numbers(QueryName::AddNewOrder, [warehouse, district, order]),
            at if at < HEAD + EACH * lines => self.line_statement((at - HEAD) / EACH, (at - HEAD) % EACH, &mut send),
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

/// Most characters of a customer's data.
const DATA_MAX: usize = 500;

/// Columns of what is asked for.
const WAREHOUSE_COLUMNS: usize = 6;
const DISTRICT_COLUMNS: usize = 6;
const PAYER_COLUMNS: usize = 14;

/// What comes next, or was asked last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PaymentStep {
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
    step: PaymentStep,
    last: PaymentStep,
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
            step: PaymentStep::Begin,
            last: PaymentStep::Begin,
            bad_credit: false,
            warehouse_name: Vec::new(),
            district_name: Vec::new(),
            data: Vec::new(),
        }
    }

    fn after(&self, step: PaymentStep) -> PaymentStep {
        match step {
            PaymentStep::Begin => PaymentStep::PayWarehouse,
            PaymentStep::PayWarehouse => PaymentStep::Warehouse,
            PaymentStep::Warehouse => PaymentStep::PayDistrict,
            PaymentStep::PayDistrict => PaymentStep::District,
            PaymentStep::District if self.customer.name.is_some() => PaymentStep::Named,
            PaymentStep::District | PaymentStep::Named => PaymentStep::Payer,
            // Decided by the answer.
            PaymentStep::Payer if self.bad_credit => PaymentStep::BadCredit,
            PaymentStep::Payer => PaymentStep::Pay,
            PaymentStep::BadCredit => PaymentStep::PayBadCredit,
            PaymentStep::Pay | PaymentStep::PayBadCredit => PaymentStep::History,
            PaymentStep::History | PaymentStep::Commit => PaymentStep::Commit,
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
            PaymentStep::Begin => send.begin(),
            PaymentStep::PayWarehouse => send.ask(QueryName::PayWarehouse, &[amount, Integer(warehouse)]),
            PaymentStep::Warehouse => send.numbers(QueryName::Warehouse, [warehouse]),
            PaymentStep::PayDistrict => {
                send.ask(QueryName::PayDistrict, &[amount, Integer(warehouse), Integer(district)])
            }
            PaymentStep::District => send.numbers(QueryName::District, [warehouse, district]),
            PaymentStep::Named => self.customer.ask(self.customer.name.as_deref().unwrap_or_default(), &mut send),
            PaymentStep::Payer => send.numbers(QueryName::Payer, key),
            PaymentStep::Pay => send.ask(QueryName::Pay, &[amount, amount, c_warehouse, c_district, c_id]),
            PaymentStep::BadCredit => send.numbers(QueryName::BadCredit, key),
            PaymentStep::PayBadCredit => {
                send.ask(QueryName::PayBadCredit, &[amount, amount, Text(&self.data), c_warehouse, c_district, c_id])
            }
            PaymentStep::History => {
                let data = [&self.warehouse_name[..], b"    ", &self.district_name].concat();
                let place = [Integer(district), Integer(warehouse)];
                let values = [c_id, c_district, c_warehouse, place[0], place[1], amount, Text(&data)];
                send.ask(QueryName::AddHistory, &values)
            }
            PaymentStep::Commit => send.commit(),
        };
        self.step = self.after(self.step);
        statement
    }

    fn answered(&mut self, rows: &KeptRows) -> Option<()> {
        match self.last {
            PaymentStep::Warehouse => self.warehouse_name = rows.row(0, WAREHOUSE_COLUMNS)?.text()?.to_vec(),
            PaymentStep::District => self.district_name = rows.row(0, DISTRICT_COLUMNS)?.text()?.to_vec(),
            PaymentStep::Named => self.customer.take_middle(rows)?,
            PaymentStep::Payer => {
                self.bad_credit = rows.row(0, PAYER_COLUMNS)?.text()? == b"BC";
                self.step = self.after(PaymentStep::Payer);
            }
            PaymentStep::BadCredit => {
                let mut row = rows.row(0, 1)?;
                self.renew_data(row.text()?);
            }
            _ => {}
        }
        Some(())
    }

    fn start_over(&mut self) {
        (self.step, self.bad_credit) = (PaymentStep::Begin, false);
    }

    fn kind(&self) -> u16 {
        Type::Payment as u16
    }
}

const ORDER_COLUMNS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OrderStatusStep {
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
    step: OrderStatusStep,
    last: OrderStatusStep,
}

impl OrderStatus {
    /// Draws one.
    pub fn draw(place: &mut Place<'_>) -> Self {
        let (warehouse, district) = (place.warehouse, place.any_district());
        let customer = Customer::draw(place, warehouse, district);
        Self { customer, order: 0, step: OrderStatusStep::Begin, last: OrderStatusStep::Begin }
    }
}

impl Transaction for OrderStatus {
    fn next(&mut self, mut send: Sender<'_, '_>) -> Statement {
        self.last = self.step;
        let key = self.customer.key();
        let (statement, next) = match (self.step, &self.customer.name) {
            (OrderStatusStep::Begin, Some(_)) => (send.begin(), OrderStatusStep::Named),
            (OrderStatusStep::Begin, None) => (send.begin(), OrderStatusStep::Balance),
            (OrderStatusStep::Named, name) => {
                (self.customer.ask(name.as_deref().unwrap_or_default(), &mut send), OrderStatusStep::Balance)
            }
            (OrderStatusStep::Balance, _) => (send.numbers(QueryName::Balance, key), OrderStatusStep::LastOrder),
            (OrderStatusStep::LastOrder, _) => (send.numbers(QueryName::LastOrder, key), OrderStatusStep::Lines),
            (OrderStatusStep::Lines, _) => {
                (send.numbers(QueryName::Lines, [key[0], key[1], self.order]), OrderStatusStep::Commit)
            }
            (OrderStatusStep::Commit, _) => (send.commit(), OrderStatusStep::Commit),
        };
        self.step = next;
        statement
    }

    fn answered(&mut self, rows: &KeptRows) -> Option<()> {
        match self.last {
            OrderStatusStep::Named => self.customer.take_middle(rows),
            OrderStatusStep::LastOrder => {
                self.order = rows.row(0, ORDER_COLUMNS)?.int()?.into();
                Some(())
            }
            _ => Some(()),
        }
    }

    fn start_over(&mut self) {
        self.step = OrderStatusStep::Begin;
    }

    fn kind(&self) -> u16 {
        Type::OrderStatus as u16
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeliveryStep {
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
    step: DeliveryStep,
    last: DeliveryStep,
}

impl Delivery {
    /// Draws one.
    pub fn draw(place: &mut Place<'_>) -> Self {
        let carrier = between(place.random, 1, 10);
        let (district, order, customer, amount) = (1, 0, 0, 0);
        let (step, last) = (DeliveryStep::Begin, DeliveryStep::Begin);
        Self { warehouse: place.warehouse, carrier, district, order, customer, amount, step, last }
    }

    /// Goes on to the next district, or ends.
    fn next_district(&mut self) {
        self.district += 1;
        self.step = if self.district > DISTRICTS { DeliveryStep::Commit } else { DeliveryStep::Oldest };
    }
}

impl Transaction for Delivery {
    fn next(&mut self, mut send: Sender<'_, '_>) -> Statement {
        self.last = self.step;
        let Self { warehouse, carrier, district, order, customer, .. } = *self;
        let key = [warehouse, district, order];
        // An order that was changed is seen, whatever a snapshot holds: so it is asked for after that.
        let (statement, next) = match self.step {
            DeliveryStep::Begin => (send.begin(), DeliveryStep::Oldest),
            DeliveryStep::Oldest => (send.numbers(QueryName::Oldest, [warehouse, district]), DeliveryStep::Delete),
            DeliveryStep::Delete => (send.numbers(QueryName::Deliver, key), DeliveryStep::Carrier),
            DeliveryStep::Carrier => {
                (send.numbers(QueryName::Carrier, [carrier, warehouse, district, order]), DeliveryStep::OrderOf)
            }
            DeliveryStep::OrderOf => (send.numbers(QueryName::OrderOf, key), DeliveryStep::Deliver),
            DeliveryStep::Deliver => (send.numbers(QueryName::DeliverLines, key), DeliveryStep::Amount),
            DeliveryStep::Amount => (send.numbers(QueryName::Amount, key), DeliveryStep::Credit),
            DeliveryStep::Credit => {
                let amount = money(self.amount);
                let key = [warehouse, district, customer].map(Parameter::Integer);
                let values = [Parameter::Text(amount.as_bytes()), key[0], key[1], key[2]];
                (send.ask(QueryName::Credit, &values), DeliveryStep::Oldest)
            }
            DeliveryStep::Commit => (send.commit(), DeliveryStep::Commit),
        };
        self.step = next;
        if self.last == DeliveryStep::Credit {
            self.next_district();
        }
        statement
    }

    fn answered(&mut self, rows: &KeptRows) -> Option<()> {
        match self.last {
            // A district may have none left.
            DeliveryStep::Oldest if rows.is_empty() => self.next_district(),
            DeliveryStep::Oldest => self.order = rows.row(0, 1)?.int()?.into(),
            DeliveryStep::OrderOf => self.customer = rows.row(0, 1)?.int()?.into(),
            DeliveryStep::Amount => self.amount = rows.row(0, 1)?.hundredths()?,
            _ => {}
        }
        Some(())
    }

    fn start_over(&mut self) {
        (self.step, self.district) = (DeliveryStep::Begin, 1);
    }

    fn kind(&self) -> u16 {
        Type::Delivery as u16
    }
}

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
            1 => send.numbers(QueryName::OrdersSoFar, [warehouse, district]),
            2 => send.numbers(QueryName::LowStock, [warehouse, district, next_order - ORDERS, next_order, threshold]),
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
        send.ask(QueryName::Named, &[key[0], key[1], Parameter::Text(name.as_bytes())])
    }

    /// Takes the customer in the middle of all with the name.
    pub fn take_middle(&mut self, rows: &KeptRows) -> Option<()> {
        let middle = rows.len().checked_sub(1)? / 2;
        self.id = rows.row(middle, 1)?.int()?.into();
        Some(())
    }

    /// As its table is keyed.
    pub fn key(&self) -> [i64; 3] {
        [self.warehouse, self.district, self.id]
    }
}

/// The clients.
pub struct Terminals<'a> {
    options: &'a Options,
    constants: Constants,
    terminals: Vec<Terminal>,
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
        let terminals = (portion.first..).zip(portion.generators()).map(terminal).collect();
        Self { options, constants: Constants::new(portion.seed), terminals }
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
        let terminal = &mut self.terminals[client];
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
        let terminal = &mut self.terminals[client];
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
        let terminal = &mut self.terminals[client];
        if terminal.rollback == Rollback::InFlight {
            return After::GoOn;
        }
        terminal.start_over(Rollback::Due, Some(code))
    }

    fn reconnected(&mut self, client: usize) -> After {
        self.terminals[client].start_over(Rollback::No, None)
    }

    fn event_kind(&self, client: usize) -> Option<u16> {
        self.terminals[client].ended
    }

    fn pause_ns(&mut self, client: usize) -> Option<u64> {
        if !self.options.keying {
            return None;
        }
        let terminal = &mut self.terminals[client];
        let next = self.options.mix.draw(&mut terminal.random);
        terminal.planned = Some(next);
        Some(terminal.done.pause_ns(next, &mut terminal.random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpcc::schema::Constants;

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

    #[test]
    fn payments_are_drawn_as_the_standard_says() {
        let mut random = Random::new(1);
        let constants = Constants::new(1);
        let mut draw =
            || Payment::draw(&mut Place { random: &mut random, constants, warehouses: 5, warehouse: 2, district: 1 });
        let drawn: Vec<Payment> = (0..20_000).map(|_| draw()).collect();
        let share =
            |of: &dyn Fn(&Payment) -> bool| drawn.iter().filter(|payment| of(payment)).count() as f64 / 20_000.0;
        assert!((0.14..0.16).contains(&share(&|payment| payment.customer.warehouse != 2)));
        assert!((0.59..0.61).contains(&share(&|payment| payment.customer.name.is_some())));
        assert!(
            share(&|payment| payment.customer.warehouse == 2 && payment.customer.district != payment.district) == 0.0
        );
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

    #[test]
    fn each_warehouse_has_ten_terminals() {
        assert_eq!([home(0), home(9), home(10), home(25)], [[1, 1], [1, 10], [2, 1], [3, 6]]);
    }
}
