//! Which keys were drawn for DELETE, a bit each, shared by all threads.

use std::sync::atomic::{AtomicU64, Ordering};

/// The keys 1 to some last one.
#[derive(Debug)]
pub struct Gone(Vec<AtomicU64>);

impl Gone {
    /// None gone of the keys up to `last`.
    pub fn new(last: i64) -> Self {
        let words = last as usize / 64 + 1;
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    /// Marks `key`; whether it was marked before.
    #[inline]
    pub fn mark(&self, key: i64) -> bool {
        let (word, bit) = self.place(key);
        word.fetch_or(bit, Ordering::Relaxed) & bit != 0
    }

    /// Whether `key` is marked.
    pub fn has(&self, key: i64) -> bool {
        let (word, bit) = self.place(key);
        word.load(Ordering::Relaxed) & bit != 0
    }

    /// Takes the mark of `key` back.
    pub fn unmark(&self, key: i64) {
        let (word, bit) = self.place(key);
        word.fetch_and(!bit, Ordering::Relaxed);
    }

    fn place(&self, key: i64) -> (&AtomicU64, u64) {
        (&self.0[key as usize / 64], 1 << (key % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_a_mark_of_its_own() {
        let gone = Gone::new(128);
        assert!((1..=128).all(|key| !gone.mark(key)));
        assert!((1..=128).all(|key| gone.has(key) && gone.mark(key)));
        gone.unmark(64);
        assert!(!gone.has(64));
        assert!(!gone.mark(64) && gone.mark(63) && gone.mark(65));
    }
}
