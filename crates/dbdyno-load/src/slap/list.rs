//! The clients' walk through the list of statements.

use std::sync::Arc;

use crate::drive::Statements;
use crate::measure::Operation;
use crate::protocol::packet;
use crate::random::Random;

use super::sql::Statement;

/// A statement ready to send.
#[derive(Debug)]
struct Encoded {
    operation: Operation,
    /// Whole packets, or for a keyed statement the text before the key.
    bytes: Vec<u8>,
    keyed: bool,
}

/// Where a client is.
#[derive(Debug, Clone)]
struct Place {
    at: usize,
    done: u64,
    uncommitted: u64,
    /// The last COMMIT was said.
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
}

/// All clients walking one list, each from its top.
#[derive(Debug)]
pub struct Walk {
    list: Vec<Encoded>,
    commit: Vec<u8>,
    keys: Arc<[String]>,
    places: Vec<Place>,
    per_client: PerClient,
}

impl Walk {
    /// A walk of `clients` through `statements`, whose keys are drawn uniformly from `keys`.
    pub fn new(
        statements: &[Statement],
        keys: Arc<[String]>,
        clients: usize,
        per_client: PerClient,
        seed: u64,
    ) -> Self {
        let list = statements
            .iter()
            .map(|statement| Encoded {
                operation: statement.operation,
                keyed: statement.keyed,
                bytes: if statement.keyed {
                    statement.text.clone().into_bytes()
                } else {
                    packet::query(statement.text.as_bytes())
                },
            })
            .collect();
        let mut seeds = Random::new(seed);
        let places = (0..clients)
            .map(|_| Place { at: 0, done: 0, uncommitted: 0, ended: false, random: Random::new(seeds.bits()) })
            .collect();
        Self { list, commit: packet::query(b"COMMIT"), keys, places, per_client }
    }
}

impl Statements for Walk {
    #[inline]
    fn next<'a>(&'a mut self, client: usize, scratch: &'a mut Vec<u8>) -> Option<(Operation, &'a [u8])> {
        let place = self.places.get_mut(client)?;
        let over = self.per_client.queries.is_some_and(|end| place.done >= end);
        if let Some(every) = self.per_client.commit_every {
            // The last COMMIT comes though it may have nothing to do, as mysqlslap's.
            let due = place.uncommitted >= every;
            let last = over && !due && !std::mem::replace(&mut place.ended, true);
            if due || last {
                place.uncommitted = 0;
                return Some((Operation::Commit, &self.commit));
            }
        }
        if over {
            return None;
        }
        let statement = self.list.get(place.at)?;
        place.at = (place.at + 1) % self.list.len();
        place.done += 1;
        place.uncommitted += 1;
        if !statement.keyed {
            return Some((statement.operation, &statement.bytes));
        }
        let number = place.random.below(self.keys.len() as u64) as usize;
        let key = self.keys.get(number)?;
        packet::encode_query(&[&statement.bytes, key.as_bytes(), b"'"], scratch);
        Some((statement.operation, scratch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(operation: Operation, text: &str, keyed: bool) -> Statement {
        Statement { operation, text: text.into(), keyed }
    }

    fn said(walk: &mut Walk, client: usize) -> Vec<String> {
        let mut all = Vec::new();
        let mut scratch = Vec::new();
        while let Some((_, bytes)) = walk.next(client, &mut scratch) {
            all.push(String::from_utf8_lossy(&bytes[5..]).into_owned());
        }
        all
    }

    #[test]
    fn every_client_walks_from_the_top_and_round() {
        let list = [statement(Operation::Insert, "a", false), statement(Operation::Select, "b", false)];
        let per_client = PerClient { queries: Some(3), commit_every: None };
        let mut walk = Walk::new(&list, Arc::from([]), 2, per_client, 1);
        assert_eq!(said(&mut walk, 0), ["a", "b", "a"]);
        assert_eq!(said(&mut walk, 1), ["a", "b", "a"]);
    }

    #[test]
    fn commits_come_every_few_and_at_the_end() {
        let list = [statement(Operation::Insert, "a", false)];
        let per_client = PerClient { queries: Some(3), commit_every: Some(2) };
        let mut walk = Walk::new(&list, Arc::from([]), 1, per_client, 1);
        assert_eq!(said(&mut walk, 0), ["a", "a", "COMMIT", "a", "COMMIT"]);
        let per_client = PerClient { queries: Some(2), commit_every: Some(2) };
        let mut walk = Walk::new(&list, Arc::from([]), 1, per_client, 1);
        assert_eq!(said(&mut walk, 0), ["a", "a", "COMMIT", "COMMIT"]);
    }

    #[test]
    fn keys_are_quoted_and_all_drawn() {
        let list = [statement(Operation::Select, "k = '", true)];
        let per_client = PerClient { queries: Some(100), commit_every: None };
        let keys = Arc::from(["1".to_owned(), "2".to_owned()]);
        let mut walk = Walk::new(&list, keys, 1, per_client, 1);
        let mut all = said(&mut walk, 0);
        all.sort();
        all.dedup();
        assert_eq!(all, ["k = '1'", "k = '2'"]);
    }
}
