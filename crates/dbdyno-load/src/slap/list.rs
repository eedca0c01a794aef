//! The clients' walk through the list of statements.

use std::sync::Arc;

use dbdyno_common::random::Random;

use crate::protocol::encoder::RequestEncoder;
use crate::protocol::packet;
use crate::statements::{Next, Part, Statement, Statements};

use super::sql::{ListEntry, Operation};

/// A statement ready to send.
#[derive(Debug, Clone)]
struct Encoded {
    operation: Operation,
    /// Whole packets, or for a keyed statement the text before the key.
    bytes: Vec<u8>,
    keyed: bool,
    rows: u32,
}

/// Where a client is.
#[derive(Debug, Clone)]
struct Cursor {
    at: usize,
    done: u64,
    uncommitted: u64,
    /// Statements on the connection.
    connected: u64,
    /// The last COMMIT was sent.
    ended: bool,
    random: Random,
}

/// How much each client says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerClient {
    /// Statements; `None` for as many as time allows.
    pub queries: Option<u64>,
    /// COMMIT after this many, and at the end.
    pub commit_every: Option<u64>,
    /// A new connection after this many.
    pub detach_every: Option<u64>,
}

/// All clients walking one list, each from its top.
#[derive(Debug, Clone)]
pub struct Walk {
    list: Vec<Encoded>,
    commit: Vec<u8>,
    keys: Arc<[String]>,
    cursors: Vec<Cursor>,
    per_client: PerClient,
}

impl Walk {
    /// A walk of `clients` through `statements`, whose keys are drawn uniformly from `keys`.
    /// `first` of them are another thread's.
    pub fn new(
        statements: &[ListEntry],
        keys: Arc<[String]>,
        first: usize,
        clients: usize,
        per_client: PerClient,
        seed: u64,
    ) -> Self {
        let list = statements
            .iter()
            .map(|statement| Encoded {
                operation: statement.operation,
                keyed: statement.keyed,
                rows: statement.rows,
                bytes: if statement.keyed {
                    statement.text.clone().into_bytes()
                } else {
                    packet::query(statement.text.as_bytes())
                },
            })
            .collect();
        let mut seeds = Random::new(seed);
        let cursor =
            |seed| Cursor { at: 0, done: 0, uncommitted: 0, connected: 0, ended: false, random: Random::new(seed) };
        let cursors = (0..first + clients).map(|_| seeds.bits()).skip(first).map(cursor).collect();
        Self { list, commit: packet::query(b"COMMIT"), keys, cursors, per_client }
    }
}

impl Statements for Walk {
    #[inline]
    fn next(&mut self, client: usize, encoder: &mut RequestEncoder<'_>) -> Next {
        let cursor = &mut self.cursors[client];
        let over = self.per_client.queries.is_some_and(|end| cursor.done >= end);
        if let Some(every) = self.per_client.commit_every {
            // The last COMMIT comes though it may have nothing to do, as mysqlslap's.
            let due = cursor.uncommitted >= every;
            let last = over && !due && !std::mem::replace(&mut cursor.ended, true);
            if due || last {
                cursor.uncommitted = 0;
                encoder.packets(&self.commit);
                return Next::Send(Statement { part: Part::Apart, ..Statement::alone(Operation::Commit as u16) });
            }
        }
        if over || self.list.is_empty() {
            return Next::Done;
        }
        if self.per_client.detach_every.is_some_and(|every| cursor.connected >= every) {
            cursor.connected = 0;
            return Next::Reconnect;
        }
        let statement = &self.list[cursor.at];
        cursor.at = (cursor.at + 1) % self.list.len();
        cursor.done += 1;
        cursor.uncommitted += 1;
        cursor.connected += 1;
        if statement.keyed {
            let number = cursor.random.below(self.keys.len() as u64) as usize;
            encoder.query(&[&statement.bytes, self.keys[number].as_bytes(), b"'"]);
        } else {
            encoder.packets(&statement.bytes);
        }
        Next::Send(Statement { rows: statement.rows, ..Statement::alone(statement.operation as u16) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(operation: Operation, text: &str, keyed: bool) -> ListEntry {
        ListEntry { operation, text: text.into(), keyed, rows: u32::from(operation == Operation::Insert) }
    }

    fn sent_by(walk: &mut Walk, client: usize) -> Vec<String> {
        let mut all = Vec::new();
        let mut out = Vec::new();
        loop {
            match walk.next(client, &mut RequestEncoder::new(&mut out, &mut [])) {
                Next::Send(_) => all.push(String::from_utf8_lossy(&out[5..]).into_owned()),
                Next::Reconnect => all.push("(new)".into()),
                Next::Done => return all,
            }
        }
    }

    fn per_client(queries: u64) -> PerClient {
        PerClient { queries: Some(queries), commit_every: None, detach_every: None }
    }

    #[test]
    fn every_client_walks_from_the_top_and_round() {
        let list = [statement(Operation::Insert, "a", false), statement(Operation::Select, "b", false)];
        let mut walk = Walk::new(&list, Arc::from([]), 0, 2, per_client(3), 1);
        assert_eq!(sent_by(&mut walk, 0), ["a", "b", "a"]);
        assert_eq!(sent_by(&mut walk, 1), ["a", "b", "a"]);
    }

    #[test]
    fn commits_come_every_few_and_at_the_end() {
        let list = [statement(Operation::Insert, "a", false)];
        let commit = |queries| PerClient { commit_every: Some(2), ..per_client(queries) };
        let mut walk = Walk::new(&list, Arc::from([]), 0, 1, commit(3), 1);
        assert_eq!(sent_by(&mut walk, 0), ["a", "a", "COMMIT", "a", "COMMIT"]);
        let mut walk = Walk::new(&list, Arc::from([]), 0, 1, commit(2), 1);
        assert_eq!(sent_by(&mut walk, 0), ["a", "a", "COMMIT", "COMMIT"]);
    }

    #[test]
    fn connections_are_left_every_few() {
        let list = [statement(Operation::Insert, "a", false)];
        let detach = PerClient { detach_every: Some(2), ..per_client(5) };
        let mut walk = Walk::new(&list, Arc::from([]), 0, 1, detach, 1);
        assert_eq!(sent_by(&mut walk, 0), ["a", "a", "(new)", "a", "a", "(new)", "a"]);
    }

    #[test]
    fn threads_draw_other_keys() {
        let list = [statement(Operation::Select, "", true)];
        let keys: Arc<[String]> = (0..100).map(|key| key.to_string()).collect();
        let mut whole = Walk::new(&list, Arc::clone(&keys), 0, 2, per_client(20), 1);
        let mut second = Walk::new(&list, keys, 1, 1, per_client(20), 1);
        assert_ne!(sent_by(&mut whole, 0), sent_by(&mut whole.clone(), 1));
        assert_eq!(sent_by(&mut whole, 1), sent_by(&mut second, 0));
    }

    #[test]
    fn keys_are_quoted_and_all_drawn() {
        let list = [statement(Operation::Select, "k = '", true)];
        let keys = Arc::from(["1".to_owned(), "2".to_owned()]);
        let mut walk = Walk::new(&list, keys, 0, 1, per_client(100), 1);
        let mut all = sent_by(&mut walk, 0);
        all.sort();
        all.dedup();
        assert_eq!(all, ["k = '1'", "k = '2'"]);
    }
}
