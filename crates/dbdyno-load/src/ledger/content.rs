//! What a transaction holds: everything of it follows from the seed, its connection and its number, so that a verifier can
//! tell what must be there without having kept it.

use dbdyno_common::random::Random;
use serde::{Deserialize, Serialize};

/// Most accounts of a transfer.
pub const PARTS_MAX: usize = 16;

/// Which transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Number of the connection, unique over all runs on the same tables.
    pub connection: u32,
    /// Its number on that connection, from 1.
    pub sequence: u64,
}

/// A part of a transfer: what one account gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Part {
    /// From 1.
    pub account: u32,
    /// Less than zero for the account that pays.
    pub amount: i64,
}

/// The sizes and the seed of all transactions of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Of all content.
    pub seed: u64,
    /// Bytes of every row.
    pub payload_bytes: usize,
    /// Bytes of a blob.
    pub blob_bytes: usize,
    /// Percent of the rows that have one.
    pub blob_percent: u64,
    /// How many there are.
    pub accounts: u32,
    /// Accounts that a transfer changes.
    pub parts: usize,
}

/// Streams of random numbers of one transaction.
#[derive(Debug, Clone, Copy)]
enum Stream {
    Row,
    Payload,
    Blob,
    Transfer,
}

impl Content {
    fn random(&self, key: Key, stream: Stream) -> Random {
        let connection = Random::new(self.seed ^ u64::from(key.connection).rotate_left(32)).bits();
        let transaction = Random::new(connection.wrapping_add(key.sequence)).bits();
        Random::new(transaction.wrapping_add(stream as u64))
    }

    /// The indexed number of a row, and whether it has a blob.
    pub fn row(&self, key: Key) -> (i64, bool) {
        let mut random = self.random(key, Stream::Row);
        ((random.bits() >> 1) as i64, random.below(100) < self.blob_percent)
    }

    /// Puts the payload into `out`.
    pub fn payload(&self, key: Key, out: &mut Vec<u8>) {
        put_text(self.random(key, Stream::Payload), self.payload_bytes, out);
    }

    /// Puts the blob into `out`.
    pub fn blob(&self, key: Key, out: &mut Vec<u8>) {
        put_text(self.random(key, Stream::Blob), self.blob_bytes, out);
    }

    /// The parts of the transfer: accounts that differ, amounts that come to nothing.
    pub fn transfer(&self, key: Key, out: &mut [Part; PARTS_MAX]) -> usize {
        let mut random = self.random(key, Stream::Transfer);
        let mut paid = 0;
        for number in 0..self.parts {
            let account = loop {
                let drawn = random.below(u64::from(self.accounts)) as u32 + 1;
                if out[..number].iter().all(|part| part.account != drawn) {
                    break drawn;
                }
            };
            let amount = random.below(100) as i64 + 1;
            paid += if number > 0 { amount } else { 0 };
            out[number] = Part { account, amount };
        }
        out[0].amount = -paid;
        self.parts
    }
}

/// Printable ASCII, which no character set changes, six bits of chance a byte.
fn put_text(mut random: Random, length: usize, out: &mut Vec<u8>) {
    out.clear();
    while out.len() < length {
        let eight = (random.bits() & 0x3f3f_3f3f_3f3f_3f3f) + 0x3030_3030_3030_3030;
        out.extend_from_slice(&eight.to_le_bytes());
    }
    out.truncate(length);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(seed: u64) -> Content {
        Content { seed, payload_bytes: 100, blob_bytes: 20_000, blob_percent: 5, accounts: 50, parts: 4 }
    }

    #[test]
    fn all_follows_from_seed_and_key() {
        let key = Key { connection: 3, sequence: 9 };
        let payload = |seed, key| {
            let mut out = Vec::new();
            content(seed).payload(key, &mut out);
            out
        };
        assert_eq!(payload(1, key), payload(1, key));
        for (seed, other) in [
            (2, key),
            (1, Key { connection: 4, ..key }),
            (1, Key { sequence: 10, ..key }),
            (1, Key { connection: 2, sequence: 10 }),
        ] {
            assert_ne!(payload(1, key), payload(seed, other));
            assert_ne!(content(1).row(key), content(seed).row(other));
        }
        assert!(payload(1, key).len() == 100 && payload(1, key).iter().all(u8::is_ascii_graphic));
    }

    #[test]
    fn transfers_come_to_nothing_and_blobs_to_their_share() {
        let mut blobs = 0;
        for sequence in 1..=10_000 {
            let key = Key { connection: 1, sequence };
            let mut parts = [Part::default(); PARTS_MAX];
            let parts = content(7).transfer(key, &mut parts).min(PARTS_MAX);
            let mut drawn = [Part::default(); PARTS_MAX];
            content(7).transfer(key, &mut drawn);
            assert_eq!(drawn[..parts].iter().map(|part| part.amount).sum::<i64>(), 0);
            let mut accounts: Vec<u32> = drawn[..parts].iter().map(|part| part.account).collect();
            accounts.sort_unstable();
            accounts.dedup();
            assert!(accounts.len() == 4 && accounts[0] >= 1 && accounts[3] <= 50, "{accounts:?}");
            blobs += u64::from(content(7).row(key).1);
        }
        assert!((400..600).contains(&blobs), "{blobs}");
    }
}
