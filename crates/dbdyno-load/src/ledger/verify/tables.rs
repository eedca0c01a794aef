//! The state of the tables: CHECK TABLE, and what the server says when one can't be read.

use serde::Serialize;

use crate::error::Error;
use crate::names::quoted;
use crate::protocol::reply::ProtocolError;
use crate::protocol::session::Session;

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
    found: Vec<TableState>,
}

impl Inspection {
    /// Over this session.
    pub fn new(session: Session, schema: &str) -> Self {
        Self { session: Some(session), schema: schema.into(), found: Vec::new() }
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
            self.found.push(state);
            return Ok(());
        };
        match session.query(&sql) {
            Ok(rows) => {
                let mut rows = rows.into_iter().map(|row| row.into_iter().map(Option::unwrap_or_default).collect());
                (state.ok, state.text) = said(&rows.by_ref().collect::<Vec<_>>());
            }
            Err(error) => state.text = self.failed(error)?,
        }
        self.found.push(state);
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
        if let Some(state) = self.found.iter_mut().find(|state| state.table == table) {
            state.ok = false;
            let before = std::mem::take(&mut state.text);
            state.text = if before.is_empty() { text } else { format!("{before}; {text}") };
        }
        Ok(false)
    }

    /// Every table that was looked at.
    pub fn done(self) -> Vec<TableState> {
        if let Some(session) = self.session {
            session.quit();
        }
        self.found
    }

    /// What an error says; after one that ends the session a new one is tried.
    fn failed(&mut self, error: Error) -> Result<String, Error> {
        match error {
            Error::Interrupted => return Err(error),
            Error::Statement { .. } => {}
            _ => self.session = self.session.take().and_then(|session| session.another().ok()),
        }
        Ok(error.to_string())
    }
}

/// Whether CHECK TABLE found a table intact, and what it said: columns are table, operation, kind of message, message.
fn said(rows: &[Vec<String>]) -> (bool, String) {
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
        said(&rows.iter().map(row).collect::<Vec<_>>())
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
