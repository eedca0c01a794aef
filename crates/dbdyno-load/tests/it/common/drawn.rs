//! Of cases that are too many for every run some are drawn; `DBDYNO_TEST_LONG` tries all.
//!
//! As in `tests/sampled.py`: the seed is the commit's, so each commit tries others and a checkout always the same;
//! `DBDYNO_TEST_SEED` gives it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::Command;
use std::sync::OnceLock;

fn seed() -> &'static str {
    static SEED: OnceLock<String> = OnceLock::new();
    SEED.get_or_init(|| {
        std::env::var("DBDYNO_TEST_SEED").unwrap_or_else(|_| {
            let here = env!("CARGO_MANIFEST_DIR");
            let commit = Command::new("git").args(["-c", "safe.directory=*", "-C", here, "rev-parse", "HEAD"]).output();
            commit.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default()
        })
    })
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
