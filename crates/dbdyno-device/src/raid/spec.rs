//! `[raid]` of a drive file.

use serde::Deserialize;

use crate::info::{above_zero, fields, within};

/// What is meant where a file or name gives no stripe.
const STRIPE_BYTES: u64 = 64 << 10;

/// An array. Each field's unit is in its name.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RaidSpec {
    /// 0: striped; 1: each member has everything; 10: striped over pairs of mirrors.
    pub level: u32,
    /// The drives: names, or paths of drive files relative to this one.
    pub members: Vec<String>,
    /// What lies on one member before the next begins, bytes; without meaning at level 1.
    #[serde(default = "default_stripe_bytes")]
    pub stripe_bytes: u64,
    /// Rate of the one bus that all members share, MB/s; none: each has its own.
    pub bus_mb_s: Option<f64>,
    /// The controller's write-back cache, kept by a battery, bytes; 0: none.
    #[serde(default)]
    pub write_cache_bytes: u64,
    /// How many pieces of the cache are written to the members at once.
    #[serde(default = "default_destage_depth")]
    pub destage_depth: usize,
    /// What a command costs that the cache answers, us.
    #[serde(default = "default_cache_us")]
    pub cache_us: f64,
    /// Rate at which the cache takes and gives data, MB/s.
    #[serde(default = "default_cache_mb_s")]
    pub cache_mb_s: f64,
}

fn default_stripe_bytes() -> u64 {
    STRIPE_BYTES
}

fn default_destage_depth() -> usize {
    32
}

fn default_cache_us() -> f64 {
    50.0
}

fn default_cache_mb_s() -> f64 {
    1500.0
}

impl RaidSpec {
    /// Refuses numbers the model cannot work with, naming the first.
    pub(crate) fn check(&self) -> Result<(), String> {
        let members = self.members.len();
        match self.level {
            0 | 1 if members < 2 => return Err(format!("members are {members}; an array needs at least 2")),
            10 if members < 4 || members % 2 == 1 => {
                return Err(format!("members are {members}; level 10 needs an even number, at least 4"));
            }
            0 | 1 | 10 => {}
            level => return Err(format!("level = {level} is not 0, 1 or 10")),
        }
        if members > 64 {
            return Err(format!("members are {members}; at most 64 are possible"));
        }
        if self.stripe_bytes < 4096 || !self.stripe_bytes.is_power_of_two() {
            return Err(format!("stripe_bytes = {} is not a power of two of at least 4096", self.stripe_bytes));
        }
        above_zero(&fields! { self; destage_depth })?;
        within(&(0.0..=1e9), &fields! { self; cache_us })?;
        within(&(0.001..=1e9), &fields! { self; cache_mb_s })?;
        self.bus_mb_s.map_or(Ok(()), |mb_s| within(&(0.001..=1e9), &[("bus_mb_s", mb_s)]))
    }

    pub(super) fn layout(&self) -> Layout {
        let mirrors = match self.level {
            0 => 1,
            1 => self.members.len(),
            _ => 2,
        };
        Layout { sets: self.members.len() as u64 / mirrors as u64, mirrors, stripe_bytes: self.stripe_bytes }
    }

    /// What an array of members of `member_bytes` holds.
    pub(crate) fn capacity_bytes(&self, member_bytes: u64) -> u64 {
        let layout = self.layout();
        if layout.sets == 1 {
            return member_bytes;
        }
        (member_bytes - member_bytes % layout.stripe_bytes).saturating_mul(layout.sets)
    }

    /// What each member must hold for an array of `size_bytes`.
    pub(crate) fn member_bytes(&self, size_bytes: u64) -> u64 {
        let layout = self.layout();
        if layout.sets == 1 { size_bytes } else { size_bytes.div_ceil(layout.row_bytes()) * layout.stripe_bytes }
    }
}

/// Where a byte of the array lies: stripes go over the *sets* in turn; the members of a set are mirrors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub sets: u64,
    pub mirrors: usize,
    pub stripe_bytes: u64,
}

/// The part of a command that one set serves; always one range, as neighbouring stripes of a set are adjacent on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub set: u64,
    pub offset_bytes: u64,
    pub length_bytes: u64,
}

impl Layout {
    fn row_bytes(&self) -> u64 {
        self.stripe_bytes * self.sets
    }

    /// The parts of a range of at least one byte.
    pub(super) fn parts(&self, offset_bytes: u64, length_bytes: u64) -> impl Iterator<Item = Part> + use<> {
        let layout = *self;
        let end_bytes = offset_bytes + length_bytes;
        // From the set that has the first byte; a short range does not reach them all.
        let first = offset_bytes / self.stripe_bytes % self.sets;
        (first..first + self.sets).map(move |set| set % layout.sets).filter_map(move |set| {
            let start = layout.held_before(set, offset_bytes);
            let length_bytes = layout.held_before(set, end_bytes) - start;
            (length_bytes > 0).then_some(Part { set, offset_bytes: start, length_bytes })
        })
    }

    /// How much of the array's first `end_bytes` a set holds.
    fn held_before(&self, set: u64, end_bytes: u64) -> u64 {
        if self.sets == 1 {
            return end_bytes;
        }
        let (rows, rest) = (end_bytes / self.row_bytes(), end_bytes % self.row_bytes());
        rows * self.stripe_bytes + rest.saturating_sub(set * self.stripe_bytes).min(self.stripe_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(sets: u64) -> Layout {
        Layout { sets, mirrors: 1, stripe_bytes: 65_536 }
    }

    #[test]
    fn a_range_within_a_stripe_is_one_part() {
        let parts: Vec<Part> = layout(3).parts(4 * 65_536 + 100, 4096).collect();
        assert_eq!(parts, [Part { set: 1, offset_bytes: 65_536 + 100, length_bytes: 4096 }]);
    }

    #[test]
    fn every_byte_is_in_one_place_of_its_own() {
        for sets in 1..5 {
            let layout = layout(sets);
            let mut places = std::collections::BTreeSet::new();
            for block in 0..16 * 40 {
                let parts: Vec<Part> = layout.parts(block * 4096, 4096).collect();
                assert_eq!(parts.iter().map(|part| part.length_bytes).sum::<u64>(), 4096);
                assert!(parts.iter().all(|part| places.insert((part.set, part.offset_bytes))), "{parts:?}");
            }
            // A long range is the sum of its blocks.
            for part in layout.parts(0, 4096 * 16 * 40) {
                assert_eq!(part.offset_bytes, 0);
                assert_eq!(part.length_bytes, 4096 * places.iter().filter(|(set, _)| *set == part.set).count() as u64);
            }
        }
    }
}
