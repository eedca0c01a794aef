//! The volatile write cache: dirty extents, by place and by age.

use std::collections::BTreeMap;

/// Neighbouring writes grow into one extent up to this many bytes, then a new one begins.
const EXTENT_BYTES: u64 = 1 << 20;

/// A run of dirty sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub start: u64,
    pub sectors: u64,
    /// True if part of a sector was written, so that the drive must read it first.
    pub partial: bool,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    sectors: u64,
    partial: bool,
    age: u64,
}

#[derive(Debug)]
pub(super) struct DirtyExtents<Place> {
    by_start: BTreeMap<u64, Entry>,
    /// Start and place of each extent, the place kept because the choice of the next move looks at many.
    by_age: BTreeMap<u64, (u64, Place)>,
    next_age: u64,
    /// Dirty sectors, and those being written to the medium now.
    used_sectors: u64,
    room_sectors: u64,
    extent_sectors: u64,
}

impl<Place: Copy> DirtyExtents<Place> {
    pub(super) fn new(cache_bytes: u64, sector_bytes: u64) -> Self {
        Self {
            by_start: BTreeMap::new(),
            by_age: BTreeMap::new(),
            next_age: 0,
            used_sectors: 0,
            room_sectors: cache_bytes / sector_bytes,
            extent_sectors: (EXTENT_BYTES / sector_bytes).max(1),
        }
    }

    pub(super) fn enabled(&self) -> bool {
        self.room_sectors > 0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// A write larger than the whole cache gets in when the cache is empty.
    pub(super) fn has_room(&self, sectors: u64) -> bool {
        self.used_sectors == 0 || self.used_sectors + sectors <= self.room_sectors
    }

    /// Takes a write in. What it overwrites is gone; if it continues an extent it grows that one.
    pub(super) fn insert(&mut self, new: Extent, place_of: impl Fn(u64) -> Place) {
        if new.sectors == 0 {
            return;
        }
        self.cut_out(new.start, new.start + new.sectors, &place_of);
        self.used_sectors += new.sectors;
        if let Some((&start, entry)) = self.by_start.range_mut(..new.start).next_back() {
            if start + entry.sectors == new.start && entry.sectors + new.sectors <= self.extent_sectors {
                entry.sectors += new.sectors;
                entry.partial |= new.partial;
                return;
            }
        }
        self.next_age += 1;
        self.add(new, self.next_age, &place_of);
    }

    /// Forgets what a write that goes to the medium by itself makes stale.
    pub(super) fn discard(&mut self, stale: Extent, place_of: impl Fn(u64) -> Place) {
        self.cut_out(stale.start, stale.start + stale.sectors, &place_of);
    }

    /// Start and place of the `window` oldest extents.
    pub(super) fn oldest(&self, window: usize) -> impl Iterator<Item = &(u64, Place)> {
        self.by_age.values().take(window)
    }

    /// Takes an extent out to be written to the medium; its room is free only after [`DirtyExtents::written`].
    pub(super) fn take(&mut self, start: u64) -> Option<Extent> {
        let entry = self.by_start.remove(&start)?;
        self.by_age.remove(&entry.age);
        Some(Extent { start, sectors: entry.sectors, partial: entry.partial })
    }

    pub(super) fn written(&mut self, sectors: u64) {
        self.used_sectors -= sectors;
    }

    /// True if all of the range is dirty, so that a read needs no medium.
    pub(super) fn covers(&self, start: u64, end: u64) -> bool {
        let mut at = start;
        while at < end {
            match self.by_start.range(..=at).next_back() {
                Some((first, entry)) if first + entry.sectors > at => at = first + entry.sectors,
                _ => return false,
            }
        }
        true
    }

    fn add(&mut self, extent: Extent, age: u64, place_of: impl Fn(u64) -> Place) {
        self.by_start.insert(extent.start, Entry { sectors: extent.sectors, partial: extent.partial, age });
        self.by_age.insert(age, (extent.start, place_of(extent.start)));
    }

    fn cut_out(&mut self, from: u64, to: u64, place_of: impl Fn(u64) -> Place) {
        while let Some((&start, &entry)) = self.by_start.range(..to).next_back() {
            let end = start + entry.sectors;
            if end <= from {
                return;
            }
            self.take(start);
            self.used_sectors -= end.min(to) - start.max(from);
            // What sticks out on either side stays; the right-hand piece of a split extent counts as new.
            if end > to {
                self.next_age += 1;
                let age = if start < from { self.next_age } else { entry.age };
                self.add(Extent { start: to, sectors: end - to, partial: entry.partial }, age, &place_of);
            }
            if start < from {
                self.add(Extent { start, sectors: from - start, partial: entry.partial }, entry.age, &place_of);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(start: u64, sectors: u64) -> Extent {
        Extent { start, sectors, partial: false }
    }

    fn nowhere(_: u64) {}

    #[test]
    fn neighbours_merge_and_overwrites_cost_no_room() {
        let mut cache = DirtyExtents::new(64 * 4096, 4096);
        cache.insert(extent(10, 4), nowhere);
        cache.insert(extent(14, 4), nowhere);
        cache.insert(extent(12, 2), nowhere);
        assert!(cache.covers(10, 18) && !cache.covers(10, 19) && !cache.covers(9, 11));
        assert_eq!(cache.used_sectors, 8);
        assert!(cache.has_room(56) && !cache.has_room(57));
    }

    #[test]
    fn every_sector_is_written_out_once() {
        let mut cache = DirtyExtents::new(1 << 30, 4096);
        for step in 0..1000_u64 {
            cache.insert(extent(step * 7919 % 500, 1 + step % 9), nowhere);
        }
        let mut seen = std::collections::BTreeSet::new();
        while let Some(&(start, ())) = cache.oldest(8).last() {
            let oldest = cache.take(start).unwrap();
            cache.written(oldest.sectors);
            assert!((oldest.start..oldest.start + oldest.sectors).all(|sector| seen.insert(sector)));
        }
        assert!(cache.is_empty());
        assert_eq!((cache.used_sectors, seen.len()), (0, seen.iter().next_back().map_or(0, |last| *last as usize + 1)));
    }
}
