//! Of cases that are too many for every run some are drawn; `DBDYNO_TEST_LONG` tries all.
//!
//! As in `tests/sampled.py`: the seed is always the same, or what `DBDYNO_TEST_SEED` gives.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

fn seed() -> &'static str {
    static SEED: OnceLock<String> = OnceLock::new();
    SEED.get_or_init(|| std::env::var("DBDYNO_TEST_SEED").unwrap_or_else(|_| "1".to_owned()))
}

/// So many of the cases, in their order, for the test of that name.
pub fn drawn<T: Copy>(test: &str, cases: &[T], count: usize) -> Vec<T> {
    let count = if std::env::var_os("DBDYNO_TEST_LONG").is_some() { cases.len() } else { count };
    let mut places: Vec<usize> = (0..cases.len()).collect();
    places.sort_by_cached_key(|place| {
        let mut hasher = DefaultHasher::new();
        (seed(), test, place).hash(&mut hasher);
        hasher.finish()
    });
    places.truncate(count);
    places.sort_unstable();
    places.into_iter().map(|place| cases[place]).collect()
}
