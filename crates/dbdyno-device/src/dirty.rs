//! Dirty data of a write-back cache: extents, by place and by age.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// Neighbouring writes grow into one extent up to this many bytes, then a new one begins.
const EXTENT_BYTES: u64 = 1 << 20;

/// A run of dirty sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub start: u64,
    pub sectors: u64,
    /// True if part of a sector was written, so that the drive must read it first.
    pub partial: bool,
}

impl Extent {
    /// The sectors that a byte range touches.
    pub(crate) fn touched(offset_bytes: u64, length_bytes: u64, sector_bytes: u64) -> Self {
        let start = offset_bytes / sector_bytes;
        let end = (offset_bytes + length_bytes).div_ceil(sector_bytes);
        let partial = !offset_bytes.is_multiple_of(sector_bytes) || !length_bytes.is_multiple_of(sector_bytes);
        Self { start, sectors: if length_bytes == 0 { 0 } else { end - start }, partial }
    }

    /// First sector after it.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.sectors
    }
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    sectors: u64,
    partial: bool,
    age: u64,
}

/// Extents not yet on the medium, and the window of the oldest of them, each with where it lies. `Position` is what the
/// cache's owner needs to choose among the window.
#[derive(Debug)]
pub(crate) struct DirtyExtents<Position> {
    by_start: BTreeMap<u64, Entry>,
    /// Start and place of each extent.
    by_age: BTreeMap<u64, (u64, Position)>,
    next_age: u64,
    /// The extents of age up to `window_age`, in order of their start.
    window: Vec<(u64, Position)>,
    window_age: u64,
    window_max: usize,
    /// Dirty sectors, and those being written to the medium now.
    used_sectors: u64,
    room_sectors: u64,
    extent_sectors: u64,
}

impl<Position: Copy> DirtyExtents<Position> {
    /// An empty cache of `cache_bytes`, with a window of `window_max` extents.
    pub(crate) fn new(cache_bytes: u64, sector_bytes: u64, window_max: usize) -> Self {
        Self {
            by_start: BTreeMap::new(),
            by_age: BTreeMap::new(),
            next_age: 0,
            window: Vec::new(),
            window_age: 0,
            window_max,
            used_sectors: 0,
            room_sectors: cache_bytes / sector_bytes,
            extent_sectors: (EXTENT_BYTES / sector_bytes).max(1),
        }
    }

    pub(crate) fn enabled(&self) -> bool {
        self.room_sectors > 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// Extents that wait to be written.
    pub(crate) fn len(&self) -> usize {
        self.by_start.len()
    }

    /// Dirty sectors, and those being written to the medium now.
    pub(crate) fn used_sectors(&self) -> u64 {
        self.used_sectors
    }

    /// A write larger than the whole cache gets in when the cache is empty.
    pub(crate) fn has_room(&self, sectors: u64) -> bool {
        self.used_sectors == 0 || self.used_sectors + sectors <= self.room_sectors
    }

    /// Takes a write in. What it overwrites is gone; if it continues an extent it grows that one.
    pub(crate) fn insert(&mut self, new: Extent, place_of: impl Fn(u64) -> Position) {
        if new.sectors == 0 {
            return;
        }
        self.discard(new, &place_of);
        self.used_sectors += new.sectors;
        if let Some((&start, entry)) = self.by_start.range_mut(..new.start).next_back()
            && start + entry.sectors == new.start
            && entry.sectors + new.sectors <= self.extent_sectors
        {
            entry.sectors += new.sectors;
            entry.partial |= new.partial;
            return;
        }
        self.next_age += 1;
        self.add(new, self.next_age, &place_of);
        self.fill_window();
    }

    /// Forgets what a write makes stale.
    pub(crate) fn discard(&mut self, stale: Extent, place_of: impl Fn(u64) -> Position) {
        self.cut_out(stale.start, stale.end(), &place_of);
        self.fill_window();
    }

    /// True if dirty sectors end where `sector` begins.
    pub(crate) fn ends_at(&self, sector: u64) -> bool {
        self.by_start.range(..sector).next_back().is_some_and(|(start, entry)| start + entry.sectors == sector)
    }

    /// Start and place of the oldest extents, as many as the window takes, in order of their start.
    pub(crate) fn window(&self) -> &[(u64, Position)] {
        &self.window
    }

    /// The start of the first extent that starts at `sector` or later.
    pub(crate) fn first_from(&self, sector: u64) -> Option<u64> {
        self.by_start.range(sector..).next().map(|(&start, _)| start)
    }

    /// The extent that starts here.
    pub(crate) fn at(&self, start: u64) -> Option<Extent> {
        self.by_start.get(&start).map(|entry| Extent { start, sectors: entry.sectors, partial: entry.partial })
    }

    /// Takes an extent out to be written to the medium; its room is free only after [`DirtyExtents::written`].
    pub(crate) fn take(&mut self, start: u64) -> Option<Extent> {
        let extent = self.remove(start);
        self.fill_window();
        extent
    }

    pub(crate) fn written(&mut self, sectors: u64) {
        self.used_sectors -= sectors;
    }

    /// True if all of the range is dirty, so that a read needs no medium.
    pub(crate) fn covers(&self, start: u64, end: u64) -> bool {
        let mut at = start;
        while at < end {
            match self.by_start.range(..=at).next_back() {
                Some((first, entry)) if first + entry.sectors > at => at = first + entry.sectors,
                _ => return false,
            }
        }
        true
    }

    fn add(&mut self, extent: Extent, age: u64, place_of: impl Fn(u64) -> Position) {
        let candidate = (extent.start, place_of(extent.start));
        self.by_start.insert(extent.start, Entry { sectors: extent.sectors, partial: extent.partial, age });
        self.by_age.insert(age, candidate);
        if age <= self.window_age {
            self.add_to_window(candidate);
        }
    }

    fn remove(&mut self, start: u64) -> Option<Extent> {
        let entry = self.by_start.remove(&start)?;
        self.by_age.remove(&entry.age);
        if entry.age <= self.window_age
            && let Ok(index) = self.window.binary_search_by_key(&start, |(start, _)| *start)
        {
            self.window.remove(index);
        }
        Some(Extent { start, sectors: entry.sectors, partial: entry.partial })
    }

    fn fill_window(&mut self) {
        while self.window.len() < self.window_max {
            let younger = (Excluded(self.window_age), Unbounded);
            let Some((&age, &candidate)) = self.by_age.range(younger).next() else { return };
            self.window_age = age;
            self.add_to_window(candidate);
        }
    }

    fn add_to_window(&mut self, candidate: (u64, Position)) {
        let index = self.window.partition_point(|(start, _)| *start < candidate.0);
        self.window.insert(index, candidate);
    }

    fn cut_out(&mut self, from: u64, to: u64, place_of: impl Fn(u64) -> Position) {
        while let Some((&start, &entry)) = self.by_start.range(..to).next_back() {
            let end = start + entry.sectors;
            if end <= from {
                return;
            }
            self.remove(start);
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
        let mut cache = DirtyExtents::new(64 * 4096, 4096, 8);
        cache.insert(extent(10, 4), nowhere);
        cache.insert(extent(14, 4), nowhere);
        cache.insert(extent(12, 2), nowhere);
        assert!(cache.covers(10, 18) && !cache.covers(10, 19) && !cache.covers(9, 11));
        assert_eq!(cache.used_sectors, 8);
        assert!(cache.has_room(56) && !cache.has_room(57));
    }

    #[test]
    fn every_sector_is_written_out_once() {
        let mut cache = DirtyExtents::new(1 << 30, 4096, 8);
        for step in 0..1000_u64 {
            cache.insert(extent(step * 7919 % 500, 1 + step % 9), nowhere);
            let mut oldest: Vec<u64> = cache.by_age.values().take(8).map(|(start, ())| *start).collect();
            oldest.sort_unstable();
            assert!(cache.window().iter().map(|(start, ())| *start).eq(oldest), "the window at step {step}");
        }
        let mut seen = std::collections::BTreeSet::new();
        while let Some(&(start, ())) = cache.window().last() {
            let oldest = cache.take(start).unwrap();
            cache.written(oldest.sectors);
            assert!((oldest.start..oldest.start + oldest.sectors).all(|sector| seen.insert(sector)));
        }
        assert!(cache.is_empty());
        assert_eq!((cache.used_sectors, seen.len()), (0, seen.iter().next_back().map_or(0, |last| *last as usize + 1)));
    }
}
