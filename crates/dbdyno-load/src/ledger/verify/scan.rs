//! Reads all rows, compares each with what was sent, and notes the state of the tables: the answer of CHECK TABLE, and
//! the server's error when a table can't be read.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::book::Book;
use super::super::record::Header;
use super::super::schema::{BALANCE, Tables};
use crate::clock::now_ns;
use crate::dialect::READ_WHOLE_SQL;
use crate::error::Error;
use crate::ledger::record::{Key, PARTS_MAX, Part};
use crate::names::quoted;
use crate::protocol::packet::take_string;
use crate::protocol::reply::ProtocolError;
use crate::protocol::session::Session;

/// What is known of the accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balances {
    /// They are what the transfers made of them.
    Right,
    /// They are not.
    Off,
    /// They could not be read.
    Unknown,
}

/// What reads, and where it goes.
pub struct Scan<'a> {
    /// Of the file.
    pub header: &'a Header,
    /// Where the rows are.
    pub tables: &'a Tables,
    /// Takes what is found.
    pub book: &'a mut Book,
    /// Reads.
    pub inspection: &'a mut Inspection,
}

impl Scan<'_> {
    /// Reads everything, and says whether all transactions could be read.
    ///
    /// # Errors
    /// A request to stop.
    pub fn all(&mut self, seconds: &mut BTreeMap<&'static str, f64>) -> Result<(Balances, bool), Error> {
        let rows = timed(seconds, "rows", || self.rows())?;
        let index = timed(seconds, "index", || self.index())?;
        // Of each account, what the transfers come to.
        let mut sums = vec![0_i64; self.header.content.accounts as usize + 1];
        let read = timed(seconds, "transfers", || self.transfers(&mut sums))?;
        let balances = timed(seconds, "accounts", || self.accounts(read.then_some(&sums)))?;
        Ok((balances, rows && index && read))
    }

    fn rows(&mut self) -> Result<bool, Error> {
        let Self { header, tables, book, inspection } = self;
        let (mut payload, mut blob) = (Vec::new(), Vec::new());
        let sql = format!(
            "SELECT connection, sequence, tag, payload, content FROM {} FORCE INDEX (PRIMARY)",
            tables.qualified("ledger")
        );
        inspection.rows("ledger", &sql, |mut row| {
            let (key, tag) = (key(&mut row)?, number(&mut row)?);
            let (wanted, has_blob) = header.content.row(key);
            header.content.payload(key, &mut payload);
            let mut is_right = text(&mut row)? == Some(&payload[..]);
            let payload = text(&mut row)?;
            if has_blob {
                header.content.blob(key, &mut blob);
                is_right &= payload == Some(&blob[..]);
            } else {
                is_right &= payload.is_none();
            }
            book.row(key, tag, tag != wanted, is_right);
            Ok(())
        })
    }

    fn index(&mut self) -> Result<bool, Error> {
        let Self { header, tables, book, inspection } = self;
        let sql = format!("SELECT connection, sequence, tag FROM {} FORCE INDEX (by_tag)", tables.qualified("ledger"));
        let read = inspection.rows("ledger", &sql, |mut row| {
            let (key, tag) = (key(&mut row)?, number(&mut row)?);
            book.index(key, tag, tag != header.content.row(key).0);
            Ok(())
        })?;
        if read {
            book.index_was_read();
        }
        Ok(read)
    }

    fn transfers(&mut self, sums: &mut [i64]) -> Result<bool, Error> {
        let Self { header, tables, book, inspection } = self;
        let (mut last, mut parts, mut count) = (None, [Part::default(); PARTS_MAX], 0);
        let sql = format!(
            "SELECT connection, sequence, part, account, amount FROM {} FORCE INDEX (PRIMARY)",
            tables.qualified("transfers")
        );
        inspection.rows("transfers", &sql, |mut row| {
            let key = key(&mut row)?;
            if last != Some(key) {
                count = header.content.transfer(key, &mut parts);
                last = Some(key);
            }
            let [part, account, amount] = [number(&mut row)?, number(&mut row)?, number(&mut row)?];
            if let Some(sum) = usize::try_from(account).ok().and_then(|account| sums.get_mut(account)) {
                *sum = sum.wrapping_add(amount);
            }
            let sent = usize::try_from(part).ok().and_then(|part| parts[..count].get(part));
            let is_right = sent.is_some_and(|sent| i64::from(sent.account) == account && sent.amount == amount);
            book.transferred(key, part, is_right);
            Ok(())
        })
    }

    /// Compares the accounts with their transfers, if those could be read, and their sum with what it was.
    fn accounts(&mut self, sums: Option<&Vec<i64>>) -> Result<Balances, Error> {
        let Self { header, tables, inspection, .. } = self;
        let (mut there, mut all, mut differ) = (0_u32, 0_i64, false);
        let sql = format!("SELECT id, balance FROM {} FORCE INDEX (PRIMARY)", tables.qualified("accounts"));
        let read = inspection.rows("accounts", &sql, |mut row| {
            let [id, balance] = [number(&mut row)?, number(&mut row)?];
            there = there.saturating_add(1);
            all = all.wrapping_add(balance);
            if let Some(sums) = sums {
                let sum = usize::try_from(id).ok().and_then(|id| sums.get(id));
                differ |= sum.is_none_or(|sum| balance != BALANCE.wrapping_add(*sum));
            }
            Ok(())
        })?;
        // Where a statement is the unit, an account may have changed whose transfer is lost, or the other way round.
        let differ = differ && header.transactional;
        let expected = BALANCE * i64::from(header.content.accounts);
        Ok(match read {
            false => Balances::Unknown,
            true if differ || all != expected || there != header.content.accounts => Balances::Off,
            true => Balances::Right,
        })
    }
}

/// What identifies a row, its first two values.
///
/// # Errors
/// They are no numbers.
pub fn key(row: &mut &[u8]) -> Result<Key, ProtocolError> {
    let (connection, sequence) = (number(row)?, number(row)?);
    // What is out of range was never sent, and stays so.
    Ok(Key { connection: u32::try_from(connection).unwrap_or(u32::MAX), sequence: sequence as u64 })
}

/// The next value, of a BIGINT that is not NULL.
///
/// # Errors
/// It is none.
pub fn number(row: &mut &[u8]) -> Result<i64, ProtocolError> {
    let text = text(row)?.and_then(|text| std::str::from_utf8(text).ok());
    text.and_then(|text| text.parse().ok()).ok_or(ProtocolError("no number where a table of ours has one"))
}

/// The next value; `None` for NULL.
///
/// # Errors
/// There is none.
pub fn text<'a>(row: &mut &'a [u8]) -> Result<Option<&'a [u8]>, ProtocolError> {
    take_string(row).ok_or(ProtocolError("a row cut short"))
}

/// Does some work and notes how long it took, s.
pub fn timed<T>(seconds: &mut BTreeMap<&'static str, f64>, name: &'static str, work: impl FnOnce() -> T) -> T {
    let begun_ns = now_ns();
    let done = work();
    seconds.insert(name, (now_ns() - begun_ns) as f64 / 1e9);
    done
}

/// One table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableState {
    /// Its name.
    pub table: String,
    /// Whether it is intact, as far as the server can tell.
    pub ok: bool,
    /// What the server said of it.
    pub text: String,
}

/// Looks at tables over a session that a broken one may end.
pub struct Inspection {
    session: Option<Session>,
    schema: String,
    states: Vec<TableState>,
}

impl Inspection {
    /// Over this session.
    pub fn new(session: Session, schema: &str) -> Self {
        Self { session: Some(session), schema: schema.into(), states: Vec::new() }
    }

    /// CHECK TABLE of one.
    ///
    /// # Errors
    /// A request to stop.
    pub fn check(&mut self, table: &str) -> Result<(), Error> {
        let sql = format!("CHECK TABLE {}.{} EXTENDED", quoted(&self.schema), quoted(table));
        let mut state = TableState { table: table.into(), ok: false, text: String::new() };
        let Some(session) = &mut self.session else {
            state.text = "not looked at: the server is gone".into();
            self.states.push(state);
            return Ok(());
        };
        match session.query(&sql) {
            Ok(rows) => {
                let mut rows = rows.into_iter().map(|row| row.into_iter().map(Option::unwrap_or_default).collect());
                (state.ok, state.text) = parse_check(&rows.by_ref().collect::<Vec<_>>());
            }
            Err(error) => state.text = self.failed(error)?,
        }
        self.states.push(state);
        Ok(())
    }

    /// Reads all rows of a table and says whether it could; one that can't be read is not intact.
    ///
    /// # Errors
    /// A request to stop.
    pub fn rows(
        &mut self,
        table: &str,
        sql: &str,
        take: impl FnMut(&[u8]) -> Result<(), ProtocolError>,
    ) -> Result<bool, Error> {
        let read = self.session.as_mut().map(|session| session.each_row(sql, take));
        let text = match read {
            Some(Ok(())) => return Ok(true),
            Some(Err(error)) => self.failed(error)?,
            None => "not read: the server is gone".into(),
        };
        if let Some(state) = self.states.iter_mut().find(|state| state.table == table) {
            state.ok = false;
            let before = std::mem::take(&mut state.text);
            state.text = if before.is_empty() { text } else { format!("{before}; {text}") };
        }
        Ok(false)
    }

    /// Every table that was looked at.
    pub fn into_tables(self) -> Vec<TableState> {
        if let Some(session) = self.session {
            session.quit();
        }
        self.states
    }

    /// What an error says; after one that ends the session a new one is tried.
    fn failed(&mut self, error: Error) -> Result<String, Error> {
        match error {
            Error::Interrupted => return Err(error),
            Error::Statement { .. } => {}
            _ => self.session = self.session.take().and_then(|session| renewed(&session).ok()),
        }
        Ok(error.to_string())
    }
}

/// Has a session read all that is committed and nothing else. Under READ UNCOMMITTED the rows of a transaction that the
/// server still takes back would count as there, and a limit on rows or on time would hide others.
///
/// # Errors
/// The server is gone, or a request to stop.
pub fn read_whole(session: &mut Session) -> Result<(), Error> {
    READ_WHOLE_SQL.iter().try_for_each(|sql| match session.execute(sql) {
        Err(Error::Statement { .. }) => Ok(()),
        outcome => outcome,
    })
}

fn renewed(session: &Session) -> Result<Session, Error> {
    let mut fresh = session.another()?;
    read_whole(&mut fresh)?;
    Ok(fresh)
}

/// Whether CHECK TABLE found a table intact, and what it said: columns are table, operation, kind of message, message.
fn parse_check(rows: &[Vec<String>]) -> (bool, String) {
    let messages = rows.iter().filter_map(|row| Some((row.get(2)?.to_ascii_lowercase(), row.get(3)?)));
    let messages: Vec<_> = messages.collect();
    let is_bad = messages.iter().any(|(kind, _)| kind == "error");
    let is_good = |text: &str| text == "OK" || text == "Table is already up to date";
    // An engine that has no check says so in a note: nothing is known against the table.
    let ended_well = messages.last().is_some_and(|(kind, text)| kind == "status" && is_good(text) || kind == "note");
    let texts: Vec<&str> = messages.iter().map(|(_, text)| text.as_str()).filter(|text| *text != "OK").collect();
    (ended_well && !is_bad, texts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(rows: &[(&str, &str)]) -> (bool, String) {
        let row = |(kind, text): &(&str, &str)| vec!["s.t".into(), "check".into(), (*kind).into(), (*text).into()];
        parse_check(&rows.iter().map(row).collect::<Vec<_>>())
    }

    #[test]
    fn a_table_is_intact_if_the_last_word_is_ok() {
        assert_eq!(answer(&[("status", "OK")]), (true, String::new()));
        let open = "1 client is using or hasn't closed the table properly";
        assert_eq!(answer(&[("warning", open), ("status", "OK")]), (true, open.into()));
        assert_eq!(answer(&[("error", "Corrupt")]), (false, "Corrupt".into()));
        assert!(!answer(&[("Error", "Table 's.t' doesn't exist"), ("status", "Operation failed")]).0);
        assert!(answer(&[("warning", "Table is marked as crashed"), ("status", "OK")]).0);
        assert!(answer(&[("note", "The storage engine for the table doesn't support check")]).0);
        assert_eq!(answer(&[]), (false, String::new()));
    }
}
