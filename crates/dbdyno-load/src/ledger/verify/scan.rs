//! Reads all rows and compares each with what was sent.

use std::collections::BTreeMap;

use crate::error::Error;

use super::super::book::Book;
use super::super::content::{PARTS_MAX, Part};
use super::super::record::Header;
use super::super::schema::{BALANCE, Tables};
use super::row::{key, number, text};
use super::tables::Inspection;
use super::timing::timed;

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
            let found = text(&mut row)?;
            if has_blob {
                header.content.blob(key, &mut blob);
                is_right &= found == Some(&blob[..]);
            } else {
                is_right &= found.is_none();
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
