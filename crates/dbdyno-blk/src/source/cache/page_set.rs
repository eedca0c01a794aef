//! An ordered set of pages.

/// Levels of words: the lowest has a bit a page, each other a bit for every word beneath that is not 0.
const LEVELS: usize = 5;
/// Pages that there is room for.
pub(super) const PAGES_MOST: u64 = 1 << (6 * LEVELS as u64);

/// Pages of a file, in order. Millions cost a bit each, and finding the next one a few words.
#[derive(Debug, Clone, Default)]
pub struct PageSet {
    levels: [Vec<u64>; LEVELS],
    count: u64,
}

impl PageSet {
    /// It has none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether it has a page.
    #[inline]
    pub fn contains(&self, page: u32) -> bool {
        self.levels[0].get(page as usize / 64).is_some_and(|word| word >> (page % 64) & 1 == 1)
    }

    /// Adds a page; whether it is new.
    #[inline]
    pub fn insert(&mut self, page: u32) -> bool {
        if self.contains(page) {
            return false;
        }
        let mut at = page as usize;
        for level in &mut self.levels {
            if level.len() <= at / 64 {
                level.resize(at / 64 + 1, 0);
            }
            let word = &mut level[at / 64];
            let was_empty = *word == 0;
            *word |= 1 << (at % 64);
            if !was_empty {
                break;
            }
            at /= 64;
        }
        self.count += 1;
        true
    }

    /// Takes a page out; whether it was there.
    #[inline]
    pub fn remove(&mut self, page: u32) -> bool {
        if !self.contains(page) {
            return false;
        }
        let mut at = page as usize;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                break;
            }
            at /= 64;
        }
        self.count -= 1;
        true
    }

    /// The first page from `page` on.
    pub fn next_from(&self, page: u32) -> Option<u32> {
        let mut at = page as usize;
        for (height, level) in self.levels.iter().enumerate() {
            let word = level.get(at / 64)? & (!0 << (at % 64));
            if word != 0 {
                return Some(self.lowest_beneath(height, at / 64 * 64 + word.trailing_zeros() as usize));
            }
            at = at / 64 + 1;
        }
        None
    }

    fn lowest_beneath(&self, height: usize, mut at: usize) -> u32 {
        for level in self.levels[..height].iter().rev() {
            at = at * 64 + level[at].trailing_zeros() as usize;
        }
        at as u32
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_an_ordered_set(changes in prop::collection::vec((any::<bool>(), prop_oneof![0..300_u32, 0..20_000_000_u32]), 0..300)) {
            let (mut set, mut expected) = (PageSet::default(), BTreeSet::new());
            for (adds, page) in changes {
                if adds {
                    prop_assert_eq!(set.insert(page), expected.insert(page));
                } else {
                    prop_assert_eq!(set.remove(page), expected.remove(&page));
                }
                prop_assert_eq!(set.count, expected.len() as u64);
                for from in [0, page.saturating_sub(1), page, page + 1] {
                    prop_assert_eq!(set.next_from(from), expected.range(from..).next().copied());
                }
            }
        }
    }
}
