//! Random values as the standard draws them (clauses 2.1.6, 4.3.2 and 4.3.3).

use dbdyno_common::random::Random;

use super::schema::{CUSTOMERS, ITEMS};

/// The constant by which the last names of prepared customers were drawn. A run's must be at some distance from it.
pub const LOAD_CONSTANT: i64 = 157;

const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// Uniform in `low..=high`.
#[inline]
pub fn between(random: &mut Random, low: i64, high: i64) -> i64 {
    low + random.below((high - low + 1) as u64) as i64
}

/// NURand: not uniform in `low..=high`.
fn uneven(random: &mut Random, a: i64, constant: i64, low: i64, high: i64) -> i64 {
    let mixed = between(random, 0, a) | between(random, low, high);
    (mixed + constant) % (high - low + 1) + low
}

/// The number of a last name, 0 to 999, drawn with a constant.
pub fn last_name_number(random: &mut Random, constant: i64) -> i64 {
    uneven(random, 255, constant, 0, 999)
}

/// The last name with a number from 0 to 999.
pub fn last_name(number: i64) -> String {
    [number / 100, number / 10 % 10, number % 10].map(|digit| SYLLABLES[digit as usize]).concat()
}

/// The constants of a run, the same for all its terminals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constants {
    last_name: i64,
    customer: i64,
    item: i64,
}

impl Constants {
    /// Those of a seed. That of last names differs from [`LOAD_CONSTANT`] by 65 to 119, but not by 96 or 112 (2.1.6.1).
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let allowed = |constant: &i64| {
            let distance = (constant - LOAD_CONSTANT).abs();
            (65..=119).contains(&distance) && distance != 96 && distance != 112
        };
        let allowed: Vec<i64> = (0..=255).filter(allowed).collect();
        let last_name = allowed[random.below(allowed.len() as u64) as usize];
        Self { last_name, customer: between(&mut random, 0, 1023), item: between(&mut random, 0, 8191) }
    }

    /// A customer's last name.
    pub fn last_name(&self, random: &mut Random) -> String {
        last_name(last_name_number(random, self.last_name))
    }

    /// A customer's number.
    pub fn customer(&self, random: &mut Random) -> i64 {
        uneven(random, 1023, self.customer, 1, CUSTOMERS)
    }

    /// An item's number.
    pub fn item(&self, random: &mut Random) -> i64 {
        uneven(random, 8191, self.item, 1, ITEMS)
    }
}

/// Appends `low` to `high` random letters and digits.
pub fn put_text(random: &mut Random, low: usize, high: usize, out: &mut String) {
    const ALPHABET: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz.-";
    const BITS: usize = 6;
    let mut left = between(random, low as i64, high as i64) as usize;
    while left > 0 {
        let mut bits = random.bits();
        for _ in 0..left.min(64 / BITS) {
            out.push(char::from(ALPHABET[(bits & 63) as usize]));
            bits >>= BITS;
        }
        left -= left.min(64 / BITS);
    }
}

/// Appends random digits.
pub fn put_digits(random: &mut Random, count: usize, out: &mut String) {
    (0..count).for_each(|_| out.push(char::from(b'0' + random.below(10) as u8)));
}

/// 1 to `count` in random order (Fisher and Yates).
pub fn shuffled(random: &mut Random, count: i64) -> Vec<i64> {
    let mut all: Vec<i64> = (1..=count).collect();
    for last in (1..all.len()).rev() {
        all.swap(last, random.below(last as u64 + 1) as usize);
    }
    all
}

/// Hundredths as a DECIMAL.
pub fn money(hundredths: i64) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_standards() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(40), "BARPRESBAR");
        assert_eq!((money(5), money(123_456)), ("0.05".into(), "1234.56".into()));
    }

    #[test]
    fn the_constant_of_a_run_keeps_its_distance() {
        for seed in 0..1000 {
            let distance = (Constants::new(seed).last_name - LOAD_CONSTANT).abs();
            assert!((65..=119).contains(&distance) && ![96, 112].contains(&distance), "{distance}");
        }
    }

    #[test]
    fn uneven_draws_stay_in_range_and_prefer_some() {
        let constants = Constants::new(3);
        let mut random = Random::new(1);
        let mut counts = vec![0_u32; CUSTOMERS as usize + 1];
        for _ in 0..300_000 {
            counts[constants.customer(&mut random) as usize] += 1;
        }
        assert_eq!(counts[0], 0);
        counts.sort_unstable();
        // Of a uniform draw each would come 100 times, give or take 10.
        assert!(*counts.last().unwrap() > 300, "{:?}", counts.last());
        assert!((0..100_000).all(|_| (1..=ITEMS).contains(&constants.item(&mut random))));
    }

    #[test]
    fn an_order_is_shuffled_and_whole() {
        let mut all = shuffled(&mut Random::new(1), 3000);
        assert_ne!(all[..10], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        all.sort_unstable();
        assert!(all.into_iter().eq(1..=3000));
    }

    #[test]
    fn texts_have_their_length() {
        let mut random = Random::new(1);
        for _ in 0..100 {
            let mut text = String::new();
            put_text(&mut random, 26, 50, &mut text);
            assert!((26..=50).contains(&text.len()) && text.is_ascii() && !text.contains(['\'', '\\']));
        }
    }
}
