//! Rows as sysbench makes them, fast: one thread writes gigabytes of INSERTs per second.

use dbdyno_common::random::Random;

use crate::distribution::{Distribution, Sampler};

use super::tables::Tables;

/// Bytes of a statement that fills a table, as sysbench's.
pub const BATCH_BYTES: usize = 512 << 10;

/// Least bytes of such a statement: a head and a row always fit.
pub const BATCH_BYTES_MIN: usize = 1 << 10;

/// Characters of the two texts of a row.
const C_LENGTH: usize = 119;
const PAD_LENGTH: usize = 59;

/// No row is longer: two integers of 20 characters, both texts, and what stands between.
const ROW_BYTES_MAX: usize = 2 * 20 + C_LENGTH + PAD_LENGTH + 16;

/// Digits of a group; between groups stands a dash.
const GROUP: usize = 11;

/// `00`, `01`, ... `99`.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// The two texts of a row, made anew in place.
#[derive(Debug, Clone)]
pub struct Texts {
    /// Ten groups of 11 digits.
    pub c: [u8; C_LENGTH],
    /// Five groups of 11 digits.
    pub pad: [u8; PAD_LENGTH],
}

impl Texts {
    /// Texts without digits yet.
    pub fn blank() -> Self {
        Self { c: [b'-'; C_LENGTH], pad: [b'-'; PAD_LENGTH] }
    }

    /// A new `c`.
    #[inline]
    pub fn renew_c(&mut self, random: &mut Random) {
        renew(&mut self.c, random);
    }

    /// A new `pad`.
    #[inline]
    pub fn renew_pad(&mut self, random: &mut Random) {
        renew(&mut self.pad, random);
    }
}

/// Writes random digits into every group of `text`. One draw makes a group: it is a fraction of 64 bits whose leading
/// decimal digits come out by multiplication. 10^11 values are so few beside 2^64 that no digit is favoured measurably.
#[inline]
fn renew(text: &mut [u8], random: &mut Random) {
    for group in text.chunks_mut(GROUP + 1) {
        let mut fraction = random.bits();
        let mut leading = |base: u128| {
            let product = u128::from(fraction) * base;
            fraction = product as u64;
            (product >> 64) as usize
        };
        for pair in group[..GROUP - 1].chunks_exact_mut(2) {
            pair.copy_from_slice(&PAIRS[leading(100)]);
        }
        group[GROUP - 1] = b'0' + leading(10) as u8;
    }
}

/// Writes the INSERTs that fill one table.
#[derive(Debug, Clone)]
pub struct Filler {
    head: Vec<u8>,
    next_id: i64,
    last_id: i64,
    auto_inc: bool,
    batch_bytes: usize,
    random: Random,
    keys: Sampler,
    texts: Texts,
}

impl Filler {
    /// Fills table `number` with statements of at most `batch_bytes`. The same seed gives the same rows, whoever fills
    /// the table; keys `k` are drawn as ids are.
    pub fn new(tables: &Tables, number: u32, distribution: Distribution, seed: u64, batch_bytes: usize) -> Self {
        let table_seed = Random::new(seed).bits() ^ Random::new(number.into()).bits();
        Self {
            head: tables.insert_head(number).into_bytes(),
            next_id: 1,
            last_id: tables.size,
            auto_inc: tables.auto_inc,
            batch_bytes: batch_bytes.max(BATCH_BYTES_MIN),
            random: Random::new(table_seed),
            keys: Sampler::new(distribution, 1, tables.size),
            texts: Texts::blank(),
        }
    }

    /// Replaces what `out` holds with the next statement, and gives its rows; 0 when the table is full.
    pub fn write(&mut self, out: &mut Vec<u8>) -> u32 {
        out.clear();
        let mut rows = 0;
        while self.next_id <= self.last_id && (rows == 0 || out.len() + ROW_BYTES_MAX <= self.batch_bytes) {
            out.extend_from_slice(if rows == 0 { &self.head } else { b"," });
            self.write_row(out);
            self.next_id += 1;
            rows += 1;
        }
        rows
    }

    #[inline]
    fn write_row(&mut self, out: &mut Vec<u8>) {
        let mut buffer = itoa::Buffer::new();
        out.push(b'(');
        if !self.auto_inc {
            out.extend_from_slice(buffer.format(self.next_id).as_bytes());
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(buffer.format(self.keys.draw(&mut self.random)).as_bytes());
        self.texts.renew_c(&mut self.random);
        self.texts.renew_pad(&mut self.random);
        out.extend_from_slice(b", '");
        out.extend_from_slice(&self.texts.c);
        out.extend_from_slice(b"', '");
        out.extend_from_slice(&self.texts.pad);
        out.extend_from_slice(b"')");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Values;
    use std::collections::BTreeMap;

    fn tables(flags: &[(&'static str, &'static str)]) -> Tables {
        Tables::read(&Values::of(flags)).unwrap()
    }

    fn filled(tables: &Tables, seed: u64, batch_bytes: usize) -> (Vec<String>, u32) {
        let mut filler = Filler::new(tables, 1, Distribution::Uniform, seed, batch_bytes);
        let (mut statements, mut rows) = (Vec::new(), 0);
        let mut out = Vec::new();
        loop {
            match filler.write(&mut out) {
                0 => return (statements, rows),
                more => rows += more,
            }
            statements.push(String::from_utf8(out.clone()).unwrap());
        }
    }

    #[test]
    fn a_row_has_sysbenchs_shape() {
        let shape = |flags: &[_]| {
            let (statements, _) = filled(&tables(flags), 1, BATCH_BYTES);
            statements[0].chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect::<String>()
        };
        let c = ["###########"; 10].join("-");
        let pad = ["###########"; 5].join("-");
        let row = format!("'{c}', '{pad}'");
        let two = [("table-size", "2")];
        assert_eq!(shape(&two), format!("INSERT INTO sbtest#(k, c, pad) VALUES(#, {row}),(#, {row})"));
        let own_ids = [("table-size", "1"), ("auto-inc", "off")];
        assert_eq!(shape(&own_ids), format!("INSERT INTO sbtest#(id, k, c, pad) VALUES(#, #, {row})"));
    }

    #[test]
    fn statements_are_filled_to_their_limit_and_hold_every_row_once() {
        let tables = tables(&[("table-size", "20000"), ("auto-inc", "off")]);
        for limit in [BATCH_BYTES_MIN, 100_000, BATCH_BYTES] {
            let (statements, rows) = filled(&tables, 1, limit);
            assert_eq!(rows, 20_000);
            let ids = statements.iter().flat_map(|s| s.split('(').skip(2));
            let ids: Vec<i64> = ids.map(|row| row.split(',').next().unwrap().parse().unwrap()).collect();
            assert!(ids.into_iter().eq(1..=20_000));
            let (last, full) = statements.split_last().unwrap();
            assert!(last.len() <= limit);
            assert!(full.iter().all(|s| s.len() <= limit && s.len() + 2 * ROW_BYTES_MAX > limit));
        }
    }

    #[test]
    fn a_seed_repeats_its_rows_and_tables_differ() {
        let tables = tables(&[("table-size", "50")]);
        assert_eq!(filled(&tables, 3, BATCH_BYTES), filled(&tables, 3, BATCH_BYTES));
        assert_ne!(filled(&tables, 3, BATCH_BYTES), filled(&tables, 4, BATCH_BYTES));
        let row_of = |number| {
            let mut out = Vec::new();
            Filler::new(&tables, number, Distribution::Uniform, 3, BATCH_BYTES).write(&mut out);
            String::from_utf8(out).unwrap().split_once("VALUES").unwrap().1.to_owned()
        };
        assert_ne!(row_of(1), row_of(2));
    }

    #[test]
    fn digits_are_uniform_in_every_place() {
        let mut counts = BTreeMap::new();
        let (mut texts, mut random) = (Texts::blank(), Random::new(5));
        for _ in 0..10_000 {
            texts.renew_c(&mut random);
            for (place, digit) in texts.c[..GROUP].iter().enumerate() {
                *counts.entry((place, *digit)).or_insert(0_u32) += 1;
            }
        }
        assert_eq!(counts.len(), GROUP * 10);
        // Within five standard deviations of 1000.
        assert!(counts.values().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
