//! The statements of the transactions, and the kinds as which they are counted.

use strum::VariantNames as _;

use super::options::Type;
use crate::protocol::packet::{self, Parameter, RequestEncoder};
use crate::statements::{Kind, Part, Statement};

/// Kinds of statement, after those of the transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    RolledBack,
    Begin,
    Select,
    Update,
    Insert,
    Delete,
    Commit,
    Rollback,
}

impl Verb {
    fn kind(self) -> u16 {
        Type::VARIANTS.len() as u16 + self as u16
    }
}

/// The kind of a New-Order that was rolled back, as it was to be.
pub fn rolled_back() -> u16 {
    Verb::RolledBack.kind()
}

/// All kinds. A transaction is no query, and a ROLLBACK comes in place of some.
pub fn kinds() -> Vec<Kind> {
    let transactions = Type::VARIANTS.iter().map(|name| Kind::apart(name));
    let queries = ["begin", "select", "update", "insert", "delete", "commit"].into_iter().map(Kind::query);
    let rolled_back = std::iter::once(Kind::apart("new_order_rolled_back"));
    transactions.chain(rolled_back).chain(queries).chain([Kind::apart("rollback")]).collect()
}

/// A statement to prepare.
pub struct Query {
    verb: Verb,
    /// What is prepared.
    pub text: &'static str,
}

const fn select(text: &'static str) -> Query {
    Query { verb: Verb::Select, text }
}

const fn update(text: &'static str) -> Query {
    Query { verb: Verb::Update, text }
}

const fn insert(text: &'static str) -> Query {
    Query { verb: Verb::Insert, text }
}

/// Which statement, by its place in [`QUERIES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "QUERIES says it")]
pub enum QueryName {
    NextOrder,
    TakeOrder,
    Buyer,
    AddOrder,
    AddNewOrder,
    Item,
    Stock,
    TakeStock,
    AddLine,
    PayWarehouse,
    Warehouse,
    PayDistrict,
    District,
    Named,
    Payer,
    Pay,
    BadCredit,
    PayBadCredit,
    AddHistory,
    Balance,
    LastOrder,
    Lines,
    Oldest,
    Deliver,
    Carrier,
    OrderOf,
    DeliverLines,
    Amount,
    Credit,
    OrdersSoFar,
    LowStock,
}

/// What the clients prepare. Amounts come as text, which is exact as a DECIMAL.
///
/// Rows that a transaction will change are read FOR UPDATE, and before others where that is possible. MariaDB 11.6 and
/// newer roll back a transaction whose rows have changed since it read them; this way they have fewer to roll back.
pub const QUERIES: &[Query] = &[
    // New-Order, clause 2.4.
    select("SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE"),
    update("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?"),
    select(
        "SELECT c_discount, c_last, c_credit, w_tax FROM customer JOIN warehouse ON w_id = c_w_id \
         WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
    ),
    insert(
        "INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
         VALUES (?, ?, ?, ?, NOW(), ?, ?)",
    ),
    insert("INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (?, ?, ?)"),
    select("SELECT i_price, i_name, i_data FROM item WHERE i_id = ?"),
    select(
        "SELECT s_quantity, ELT(?, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, s_dist_07, s_dist_08, \
         s_dist_09, s_dist_10), s_data FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE",
    ),
    update(
        "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ? \
         WHERE s_w_id = ? AND s_i_id = ?",
    ),
    insert(
        "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, \
         ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    // Payment, clause 2.5.
    update("UPDATE warehouse SET w_ytd = w_ytd + CAST(? AS DECIMAL(12,2)) WHERE w_id = ?"),
    select("SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = ?"),
    update("UPDATE district SET d_ytd = d_ytd + CAST(? AS DECIMAL(12,2)) WHERE d_w_id = ? AND d_id = ?"),
    select("SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district WHERE d_w_id = ? AND d_id = ?"),
    select("SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first"),
    select(
        "SELECT c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, \
         c_credit_lim, c_discount, c_balance FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE",
    ),
    update(
        "UPDATE customer SET c_balance = c_balance - CAST(? AS DECIMAL(12,2)), c_ytd_payment = c_ytd_payment + \
         CAST(? AS DECIMAL(12,2)), c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
    ),
    select("SELECT c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"),
    update(
        "UPDATE customer SET c_balance = c_balance - CAST(? AS DECIMAL(12,2)), c_ytd_payment = c_ytd_payment + \
         CAST(? AS DECIMAL(12,2)), c_payment_cnt = c_payment_cnt + 1, c_data = ? \
         WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
    ),
    insert(
        "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
         VALUES (?, ?, ?, ?, ?, NOW(), ?, ?)",
    ),
    // Order-Status, clause 2.6.
    select("SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"),
    select(
        "SELECT o_id, o_entry_d, COALESCE(o_carrier_id, 0) FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? \
         ORDER BY o_id DESC LIMIT 1",
    ),
    select(
        "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
         WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
    ),
    // Delivery, clause 2.7.
    select("SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1 FOR UPDATE"),
    Query { verb: Verb::Delete, text: "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?" },
    update("UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?"),
    select("SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?"),
    update("UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"),
    select("SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"),
    update(
        "UPDATE customer SET c_balance = c_balance + CAST(? AS DECIMAL(12,2)), c_delivery_cnt = c_delivery_cnt + 1 \
         WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
    ),
    // Stock-Level, clause 2.8.
    select("SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?"),
    select(
        "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id \
         WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id >= ? AND ol_o_id < ? AND s_quantity < ?",
    ),
];

/// Writes the statements of a transaction.
pub struct Sender<'e, 'r>(pub &'e mut RequestEncoder<'r>);

impl Sender<'_, '_> {
    /// BEGIN; not every server prepares it.
    pub fn begin(&mut self) -> Statement {
        self.plain(b"BEGIN", Verb::Begin, Part::Inner)
    }

    /// COMMIT, which ends the event.
    pub fn commit(&mut self) -> Statement {
        self.plain(b"COMMIT", Verb::Commit, Part::Last)
    }

    /// ROLLBACK, which ends the event or comes before it is tried again.
    pub fn rollback(&mut self, part: Part) -> Statement {
        self.plain(b"ROLLBACK", Verb::Rollback, part)
    }

    fn plain(&mut self, sql: &[u8], verb: Verb, part: Part) -> Statement {
        self.0.packets(&packet::query(sql));
        Statement { kind: verb.kind(), part, rows: 0, phase: 0 }
    }

    /// A prepared statement.
    pub fn ask(&mut self, ask: QueryName, values: &[Parameter<'_>]) -> Statement {
        self.0.execute(ask as usize, values);
        let verb = QUERIES[ask as usize].verb;
        Statement { kind: verb.kind(), part: Part::Inner, rows: u32::from(verb == Verb::Insert), phase: 0 }
    }

    /// A prepared statement whose values are whole numbers.
    pub fn numbers<const N: usize>(&mut self, ask: QueryName, values: [i64; N]) -> Statement {
        self.ask(ask, &values.map(Parameter::Integer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_statements_fit_together() {
        let kinds = kinds();
        assert_eq!(kinds[usize::from(Verb::Rollback.kind())].name, "rollback");
        assert_eq!(kinds[usize::from(Verb::Begin.kind())].name, "begin");
        assert_eq!(kinds[usize::from(rolled_back())].name, "new_order_rolled_back");
        assert_eq!(QUERIES.len(), QueryName::LowStock as usize + 1);
        for query in QUERIES {
            let name = &kinds[usize::from(query.verb.kind())].name;
            assert!(query.text.to_lowercase().starts_with(name.as_str()), "{name}: {}", query.text);
        }
        assert!(QUERIES[QueryName::LastOrder as usize].text.contains("o_id DESC"));
        assert!(QUERIES[QueryName::AddHistory as usize].text.contains("INTO history"));
    }
}
