//! The order of extents by their start: sorted blocks, each short enough to be searched and shifted within a few cache
//! lines. A cache of thousands of extents is looked up several times for each write; a tree of single keys takes twice as
//! long.

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
    pub(super) fn start_after(&self, place: Place) -> Option<u64> {
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

    use super::*;
    use dbdyno_common::random::Random;

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
                        let victim = tree.range(start..).next().map_or(start, |(found, _)| *found);
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
