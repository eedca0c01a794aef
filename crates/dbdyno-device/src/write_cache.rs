//! Dirty data of a write-back cache: extents, by place and by age.

use slab::Slab;

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

/// The oldest extents, kept as the cache's owner needs them to choose among them.
pub(crate) trait Window {
    /// Where an extent lies.
    type Place: Copy;
    /// An extent has become one of the oldest. `slot` names it until it is taken out of the cache.
    fn add(&mut self, slot: u32, start: u64, place: Self::Place);
    /// It is not any more; what was added is given.
    fn remove(&mut self, slot: u32, place: Self::Place);
}

/// No window.
impl Window for () {
    type Place = ();
    fn add(&mut self, _: u32, _: u64, (): ()) {}
    fn remove(&mut self, _: u32, (): ()) {}
}

/// No slot.
const NONE: u32 = u32::MAX;

/// A dirty extent, in a list by age.
#[derive(Debug)]
struct Entry<Place> {
    extent: Extent,
    place: Place,
    in_window: bool,
    older: u32,
    younger: u32,
}

/// Extents not yet on the medium, and the window of the oldest of them, each with where it lies.
#[derive(Debug)]
pub(crate) struct DirtyExtents<W: Window> {
    entries: Slab<Entry<W::Place>>,
    by_start: Starts,
    oldest: u32,
    youngest: u32,
    window: W,
    in_window: usize,
    window_max: usize,
    /// The oldest that is not in the window; all that are older are.
    next_in: u32,
    /// Dirty sectors, and those being written to the medium now.
    used_sectors: u64,
    room_sectors: u64,
    extent_sectors: u64,
}

impl<W: Window> DirtyExtents<W> {
    /// An empty cache of `cache_bytes`, with a window of `window_max` extents.
    pub(crate) fn new(cache_bytes: u64, sector_bytes: u64, window: W, window_max: usize) -> Self {
        Self {
            entries: Slab::new(),
            by_start: Starts::new(),
            oldest: NONE,
            youngest: NONE,
            window,
            in_window: 0,
            window_max,
            next_in: NONE,
            used_sectors: 0,
            room_sectors: cache_bytes / sector_bytes,
            extent_sectors: (EXTENT_BYTES / sector_bytes).max(1),
        }
    }

    pub(crate) fn enabled(&self) -> bool {
        self.room_sectors > 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_start.len() == 0
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
    pub(crate) fn insert(&mut self, new: Extent, place_of: impl Fn(u64) -> W::Place) {
        if new.sectors == 0 {
            return;
        }
        self.used_sectors += new.sectors;
        let mut at = self.by_start.from(new.start);
        let end_before = self.by_start.before(at).map(|slot| self.entries[slot as usize].extent.end());
        let start_after = self.by_start.start_after(at);
        if end_before.is_some_and(|end| end > new.start) || start_after.is_some_and(|start| start < new.end()) {
            self.discard(new, &place_of);
            at = self.by_start.from(new.start);
        }
        if let Some(slot) = self.by_start.before(at) {
            let before = &mut self.entries[slot as usize].extent;
            if before.end() == new.start && before.sectors + new.sectors <= self.extent_sectors {
                before.sectors += new.sectors;
                before.partial |= new.partial;
                return;
            }
        }
        let slot = self.append(new, place_of(new.start));
        self.by_start.insert(at, new.start, slot);
        self.fill_window();
    }

    /// Forgets what a write makes stale.
    pub(crate) fn discard(&mut self, stale: Extent, place_of: impl Fn(u64) -> W::Place) {
        self.cut_out(stale.start, stale.end(), &place_of);
        self.fill_window();
    }

    /// True if dirty sectors end where `sector` begins.
    pub(crate) fn ends_at(&self, sector: u64) -> bool {
        let before = self.by_start.before(self.by_start.from(sector));
        before.is_some_and(|slot| self.entries[slot as usize].extent.end() == sector)
    }

    /// The oldest extents, as many as the window takes.
    pub(crate) fn window(&self) -> &W {
        &self.window
    }

    /// The first extent that starts at `sector` or later.
    pub(crate) fn first_from(&self, sector: u64) -> Option<u32> {
        self.by_start.after(self.by_start.from(sector))
    }

    /// The extent that starts here.
    pub(crate) fn starting_at(&self, sector: u64) -> Option<u32> {
        self.by_start.at(sector)
    }

    /// An extent and where it lies.
    pub(crate) fn at(&self, slot: u32) -> Option<(Extent, W::Place)> {
        self.entries.get(slot as usize).map(|entry| (entry.extent, entry.place))
    }

    /// Takes an extent out to be written to the medium; its room is free only after [`DirtyExtents::written`].
    pub(crate) fn take(&mut self, slot: u32) -> Option<Extent> {
        let extent = self.remove(slot);
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
            let holds = self.by_start.before(self.by_start.from(at + 1));
            match holds.map(|slot| self.entries[slot as usize].extent.end()) {
                Some(next) if next > at => at = next,
                _ => return false,
            }
        }
        true
    }

    /// Adds the youngest extent to the list by age.
    fn append(&mut self, extent: Extent, place: W::Place) -> u32 {
        let entry = Entry { extent, place, in_window: false, older: self.youngest, younger: NONE };
        let slot = self.entries.insert(entry) as u32;
        match self.entries.get_mut(self.youngest as usize) {
            Some(before) => before.younger = slot,
            None => self.oldest = slot,
        }
        self.youngest = slot;
        if self.next_in == NONE {
            self.next_in = slot;
        }
        slot
    }

    fn remove(&mut self, slot: u32) -> Option<Extent> {
        let entry = self.entries.try_remove(slot as usize)?;
        self.by_start.remove(entry.extent.start);
        match self.entries.get_mut(entry.older as usize) {
            Some(older) => older.younger = entry.younger,
            None => self.oldest = entry.younger,
        }
        match self.entries.get_mut(entry.younger as usize) {
            Some(younger) => younger.older = entry.older,
            None => self.youngest = entry.older,
        }
        if self.next_in == slot {
            self.next_in = entry.younger;
        }
        if entry.in_window {
            self.in_window -= 1;
            self.window.remove(slot, entry.place);
        }
        Some(entry.extent)
    }

    fn fill_window(&mut self) {
        while self.in_window < self.window_max
            && let Some(entry) = self.entries.get_mut(self.next_in as usize)
        {
            entry.in_window = true;
            self.window.add(self.next_in, entry.extent.start, entry.place);
            self.in_window += 1;
            self.next_in = entry.younger;
        }
    }

    fn cut_out(&mut self, from: u64, to: u64, place_of: impl Fn(u64) -> W::Place) {
        while let Some(slot) = self.by_start.before(self.by_start.from(to)) {
            let Extent { start, partial, .. } = self.entries[slot as usize].extent;
            let end = self.entries[slot as usize].extent.end();
            if end <= from {
                return;
            }
            self.used_sectors -= end.min(to) - start.max(from);
            // What sticks out on either side stays; the right-hand piece of a split extent counts as new.
            let right = Extent { start: to, sectors: end.saturating_sub(to), partial };
            if start < from {
                self.entries[slot as usize].extent.sectors = from - start;
                if right.sectors > 0 {
                    let slot = self.append(right, place_of(to));
                    self.by_start.insert(self.by_start.from(to), to, slot);
                }
                return;
            }
            if right.sectors > 0 {
                self.move_to(slot, right, place_of(to));
            } else {
                self.remove(slot);
            }
        }
    }

    /// Puts another extent in the place of one, of the same age.
    fn move_to(&mut self, slot: u32, extent: Extent, place: W::Place) {
        let entry = &mut self.entries[slot as usize];
        let (start, before) = (entry.extent.start, entry.place);
        (entry.extent, entry.place) = (extent, place);
        if entry.in_window {
            self.window.remove(slot, before);
            self.window.add(slot, extent.start, place);
        }
        self.by_start.remove(start);
        self.by_start.insert(self.by_start.from(extent.start), extent.start, slot);
    }
}

/// Entries a block has room for.
const BLOCK_MAX: usize = 64;
/// A block with fewer joins its neighbour where both have room together.
const BLOCK_MIN: usize = BLOCK_MAX / 4;
const JOINED_MAX: usize = BLOCK_MAX / 4 * 3;

/// Starts and slots, one for one, in order of the starts.
#[derive(Debug)]
struct Block {
    starts: Vec<u64>,
    slots: Vec<u32>,
}

impl Block {
    fn new() -> Self {
        Self { starts: Vec::with_capacity(BLOCK_MAX), slots: Vec::with_capacity(BLOCK_MAX) }
    }
}

/// A place in the order: before an entry, or at the end of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    block: usize,
    index: usize,
}

/// Sorted blocks, each short enough to be searched and shifted within a few cache lines: a cache of thousands of
/// extents is looked up several times for each write, and a tree of single keys takes twice as long.
///
/// Slots by the start of the extent that is there; no two starts are equal. There is always a block; only the first may
/// be empty, and only if it is alone.
#[derive(Debug)]
pub(super) struct Starts {
    blocks: Vec<Block>,
    /// The first start of each block but the first.
    firsts: Vec<u64>,
    count: usize,
}

impl Starts {
    pub(super) fn new() -> Self {
        Self { blocks: vec![Block::new()], firsts: Vec::new(), count: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The place of the first entry that starts at `sector` or later; all before it start earlier.
    pub(super) fn from(&self, sector: u64) -> Place {
        let block = self.firsts.partition_point(|first| *first <= sector);
        Place { block, index: self.blocks[block].starts.partition_point(|start| *start < sector) }
    }

    /// The slot of the entry behind a place.
    pub(super) fn after(&self, place: Place) -> Option<u32> {
        let slot = self.blocks[place.block].slots.get(place.index);
        slot.or_else(|| self.blocks.get(place.block + 1)?.slots.first()).copied()
    }

    /// Where the entry behind a place starts.
    fn start_after(&self, place: Place) -> Option<u64> {
        let start = self.blocks[place.block].starts.get(place.index);
        start.or_else(|| self.blocks.get(place.block + 1)?.starts.first()).copied()
    }

    /// The slot of the entry in front of a place.
    pub(super) fn before(&self, place: Place) -> Option<u32> {
        match place.index.checked_sub(1) {
            Some(index) => self.blocks[place.block].slots.get(index).copied(),
            None => self.blocks.get(place.block.checked_sub(1)?)?.slots.last().copied(),
        }
    }

    /// The slot of what starts exactly here.
    pub(super) fn at(&self, start: u64) -> Option<u32> {
        let place = self.from(start);
        let block = &self.blocks[place.block];
        (*block.starts.get(place.index)? == start).then(|| block.slots[place.index])
    }

    /// Adds an entry at the place that [`Starts::from`] gave for its start.
    pub(super) fn insert(&mut self, place: Place, start: u64, slot: u32) {
        let Place { block: mut at, mut index } = place;
        if self.blocks[at].starts.len() == BLOCK_MAX {
            let mut upper = Block::new();
            upper.starts.extend(self.blocks[at].starts.drain(BLOCK_MAX / 2..));
            upper.slots.extend(self.blocks[at].slots.drain(BLOCK_MAX / 2..));
            self.firsts.insert(at, upper.starts[0]);
            self.blocks.insert(at + 1, upper);
            if index > BLOCK_MAX / 2 {
                (at, index) = (at + 1, index - BLOCK_MAX / 2);
            }
        }
        self.blocks[at].starts.insert(index, start);
        self.blocks[at].slots.insert(index, slot);
        self.count += 1;
    }

    /// Takes out the entry of a start.
    pub(super) fn remove(&mut self, start: u64) {
        let Place { block: at, index } = self.from(start);
        let block = &mut self.blocks[at];
        if block.starts.get(index) != Some(&start) {
            return;
        }
        block.starts.remove(index);
        block.slots.remove(index);
        self.count -= 1;
        if block.starts.len() < BLOCK_MIN {
            self.join(at);
        }
    }

    /// Moves a block into the one before it, or the one behind into it, if that has room.
    fn join(&mut self, at: usize) {
        for lower in [at.checked_sub(1), Some(at)].into_iter().flatten() {
            let Some(upper) = self.blocks.get(lower + 1) else { continue };
            let (below, above) = (self.blocks[lower].starts.len(), upper.starts.len());
            if below + above <= JOINED_MAX || below == 0 || above == 0 {
                let upper = self.blocks.remove(lower + 1);
                self.firsts.remove(lower);
                self.blocks[lower].starts.extend(upper.starts);
                self.blocks[lower].slots.extend(upper.slots);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use dbdyno_common::random::Random;

    use super::*;

    /// The starts of the window.
    impl Window for std::collections::BTreeMap<u32, u64> {
        type Place = ();
        fn add(&mut self, slot: u32, start: u64, (): ()) {
            assert_eq!(self.insert(slot, start), None);
        }
        fn remove(&mut self, slot: u32, (): ()) {
            assert!(self.remove(&slot).is_some());
        }
    }

    type Cache = DirtyExtents<std::collections::BTreeMap<u32, u64>>;

    fn cache(cache_bytes: u64) -> Cache {
        Cache::new(cache_bytes, 4096, std::collections::BTreeMap::new(), 8)
    }

    fn extent(start: u64, sectors: u64) -> Extent {
        Extent { start, sectors, partial: false }
    }

    fn nowhere(_: u64) {}

    /// Starts by age.
    fn oldest(cache: &Cache, count: usize) -> Vec<u64> {
        let list = std::iter::successors(cache.entries.get(cache.oldest as usize), |entry| {
            cache.entries.get(entry.younger as usize)
        });
        list.take(count).map(|entry| entry.extent.start).collect()
    }

    #[test]
    fn neighbours_merge_and_overwrites_cost_no_room() {
        let mut cache = cache(64 * 4096);
        cache.insert(extent(10, 4), nowhere);
        cache.insert(extent(14, 4), nowhere);
        cache.insert(extent(12, 2), nowhere);
        assert!(cache.covers(10, 18) && !cache.covers(10, 19) && !cache.covers(9, 11));
        assert_eq!(cache.used_sectors, 8);
        assert!(cache.has_room(56) && !cache.has_room(57));
    }

    #[test]
    fn every_sector_is_written_out_once() {
        let mut cache = cache(1 << 30);
        for step in 0..1000_u64 {
            cache.insert(extent(step * 7919 % 500, 1 + step % 9), nowhere);
            let mut window: Vec<u64> = cache.window().values().copied().collect();
            let mut wanted = oldest(&cache, 8);
            window.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(window, wanted, "the window at step {step}");
        }
        let mut seen = std::collections::BTreeSet::new();
        while let Some((&slot, _)) = cache.window().last_key_value() {
            let oldest = cache.take(slot).unwrap();
            cache.written(oldest.sectors);
            assert!((oldest.start..oldest.start + oldest.sectors).all(|sector| seen.insert(sector)));
        }
        assert!(cache.is_empty());
        assert_eq!((cache.used_sectors, seen.len()), (0, seen.iter().next_back().map_or(0, |last| *last as usize + 1)));
    }

    #[test]
    fn what_is_left_of_an_extent_keeps_its_age() {
        let mut cache = cache(1 << 30);
        cache.insert(extent(100, 10), nowhere);
        cache.insert(extent(200, 10), nowhere);
        cache.discard(extent(98, 4), nowhere);
        assert_eq!(oldest(&cache, 8), [102, 200], "its end");
        cache.discard(extent(104, 2), nowhere);
        assert_eq!(oldest(&cache, 8), [102, 200, 106], "what lies behind the gap counts as new");
        assert_eq!(cache.used_sectors, 16);
    }

    #[test]
    fn it_keeps_what_a_tree_keeps() {
        for (below, steps) in [(50, 2_000), (3_000, 30_000), (1 << 40, 30_000)] {
            let (mut starts, mut tree, mut random) = (Starts::new(), BTreeMap::new(), Random::new(below));
            for step in 0..steps {
                // It grows to some hundreds of entries, and shrinks again to few.
                let (start, grows) = (random.below(below), random.chance(if step / 900 % 2 == 0 { 0.9 } else { 0.2 }));
                match (tree.contains_key(&start), grows) {
                    (false, true) => {
                        starts.insert(starts.from(start), start, step);
                        tree.insert(start, step);
                    }
                    (_, false) => {
                        let victim = tree.range(start..).next().map_or(start, |(next, _)| *next);
                        starts.remove(victim);
                        tree.remove(&victim);
                    }
                    (true, true) => {}
                }
                let sector = random.below(below);
                let place = starts.from(sector);
                assert_eq!(starts.start_after(place), tree.range(sector..).next().map(|(start, _)| *start));
                assert_eq!(starts.after(place), tree.range(sector..).next().map(|(_, slot)| *slot));
                assert_eq!(starts.before(place), tree.range(..sector).next_back().map(|(_, slot)| *slot));
                assert_eq!((starts.at(start), starts.len()), (tree.get(&start).copied(), tree.len()));
            }
        }
    }
}
