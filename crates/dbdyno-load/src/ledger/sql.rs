//! The statements of a transaction, and the kinds as which they are counted.

use crate::protocol::encoder::{Parameter, RequestEncoder};
use crate::protocol::packet;
use crate::statements::{Kind, Part, Statement};

use super::content::{Content, Key, PARTS_MAX, Part as Transferred};

/// Kinds of statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Begin,
    Insert,
    Update,
    Commit,
    Rollback,
}

/// All kinds; a ROLLBACK comes in place of some.
pub fn kinds() -> Vec<Kind> {
    let queries = ["begin", "insert", "update", "commit"].into_iter().map(Kind::query);
    queries.chain([Kind::apart("rollback")]).collect()
}

/// Which prepared statement, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    Row,
    RowWithBlob,
    Transfers,
    Accounts,
}

/// What the clients prepare.
pub fn prepared(parts: usize) -> Vec<String> {
    let rows = vec!["(?, ?, ?, ?, ?)"; parts].join(", ");
    let cases = vec!["WHEN ? THEN ?"; parts].join(" ");
    let ids = vec!["?"; parts].join(", ");
    vec![
        "INSERT INTO ledger (connection, sequence, tag, payload) VALUES (?, ?, ?, ?)".into(),
        "INSERT INTO ledger (connection, sequence, tag, payload, content) VALUES (?, ?, ?, ?, ?)".into(),
        format!("INSERT INTO transfers (connection, sequence, part, account, amount) VALUES {rows}"),
        // One statement, so that an engine without transactions keeps the sum, too.
        format!("UPDATE accounts SET balance = balance + CASE id {cases} END WHERE id IN ({ids})"),
    ]
}

/// Writes statements; keeps what it makes them of.
#[derive(Debug, Default)]
pub struct Writer {
    payload: Vec<u8>,
    blob: Vec<u8>,
}

impl Writer {
    /// The row of the ledger.
    pub fn row(&mut self, content: &Content, key: Key, encoder: &mut RequestEncoder<'_>) -> Statement {
        let (tag, has_blob) = content.row(key);
        content.payload(key, &mut self.payload);
        let head = [i64::from(key.connection), key.sequence as i64, tag].map(Parameter::Integer);
        let payload = Parameter::Text(&self.payload);
        if has_blob {
            content.blob(key, &mut self.blob);
            let values = [head[0], head[1], head[2], payload, Parameter::Text(&self.blob)];
            encoder.execute(Ask::RowWithBlob as usize, &values);
        } else {
            encoder.execute(Ask::Row as usize, &[head[0], head[1], head[2], payload]);
        }
        statement(Verb::Insert, Part::Inner, 1)
    }
}

/// What accounts get, row by row.
pub fn transfers(key: Key, parts: &[Transferred], encoder: &mut RequestEncoder<'_>) -> Statement {
    let mut values = [Parameter::Null; 5 * PARTS_MAX];
    for (number, (part, place)) in parts.iter().zip(values.chunks_exact_mut(5)).enumerate() {
        let row = [i64::from(key.connection), key.sequence as i64, number as i64, part.account.into(), part.amount];
        place.copy_from_slice(&row.map(Parameter::Integer));
    }
    encoder.execute(Ask::Transfers as usize, &values[..5 * parts.len()]);
    statement(Verb::Insert, Part::Inner, parts.len() as u32)
}

/// The change of the accounts.
pub fn accounts(parts: &[Transferred], place: Part, encoder: &mut RequestEncoder<'_>) -> Statement {
    let mut values = [Parameter::Null; 3 * PARTS_MAX];
    let (cases, ids) = values[..3 * parts.len()].split_at_mut(2 * parts.len());
    for ((part, case), id) in parts.iter().zip(cases.chunks_exact_mut(2)).zip(ids) {
        let account = Parameter::Integer(part.account.into());
        case.copy_from_slice(&[account, Parameter::Integer(part.amount)]);
        *id = account;
    }
    encoder.execute(Ask::Accounts as usize, &values[..3 * parts.len()]);
    statement(Verb::Update, place, 0)
}

/// BEGIN; not every server prepares it.
pub fn begin(encoder: &mut RequestEncoder<'_>) -> Statement {
    plain(b"BEGIN", Verb::Begin, Part::Inner, encoder)
}

/// COMMIT, which ends the event.
pub fn commit(encoder: &mut RequestEncoder<'_>) -> Statement {
    plain(b"COMMIT", Verb::Commit, Part::Last, encoder)
}

/// ROLLBACK, before a transaction is tried again.
pub fn rollback(encoder: &mut RequestEncoder<'_>) -> Statement {
    plain(b"ROLLBACK", Verb::Rollback, Part::Apart, encoder)
}

fn plain(sql: &[u8], verb: Verb, part: Part, encoder: &mut RequestEncoder<'_>) -> Statement {
    encoder.packets(&packet::query(sql));
    statement(verb, part, 0)
}

fn statement(verb: Verb, part: Part, rows: u32) -> Statement {
    Statement { kind: verb as u16, part, rows, phase: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_statements_fit_together() {
        let kinds = kinds();
        assert_eq!(kinds[Verb::Rollback as usize].name, "rollback");
        assert_eq!(kinds[Verb::Update as usize].name, "update");
        let prepared = prepared(3);
        assert_eq!(prepared[Ask::Transfers as usize].matches('?').count(), 15);
        assert!(
            prepared[Ask::Accounts as usize].starts_with("UPDATE")
                && prepared[Ask::Accounts as usize].matches('?').count() == 9
        );
        assert!(prepared[Ask::RowWithBlob as usize].contains("content"));
    }
}
