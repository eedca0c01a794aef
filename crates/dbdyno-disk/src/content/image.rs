//! All of a disk's content in memory at one time; copies share what none of them has changed.

use std::sync::Arc;

use super::chunk::{CHUNK_BYTES, Chunk, Held, Slot, bytes_of};

/// Chunks are found through groups, which copies of an image share as well: so a copy takes a microsecond for each GiB,
/// and an empty disk nothing. The first change of a group after that copies its 256 references.
const GROUP_CHUNKS: usize = 256;

/// The chunks of a disk.
#[derive(Clone)]
pub struct Image {
    groups: Vec<Option<Arc<[Slot]>>>,
    chunks: u64,
}

impl Image {
    pub fn empty(size_bytes: u64) -> Self {
        let groups = size_bytes.div_ceil((CHUNK_BYTES * GROUP_CHUNKS) as u64) as usize;
        Self { groups: vec![None; groups], chunks: 0 }
    }

    /// How many chunks are no holes.
    pub fn chunks(&self) -> u64 {
        self.chunks
    }

    pub fn get(&self, index: usize) -> &Slot {
        const HOLE: &Slot = &None;
        let group = self.groups.get(index / GROUP_CHUNKS).and_then(Option::as_ref);
        group.map_or(HOLE, |group| &group[index % GROUP_CHUNKS])
    }

    /// Replaces a chunk; returns what was there.
    pub fn put(&mut self, index: usize, content: Slot) -> Slot {
        // Looked up first, so that putting a hole into a hole makes no group.
        if content.is_none() && self.get(index).is_none() {
            return None;
        }
        self.chunks += u64::from(content.is_some());
        let before = std::mem::replace(self.slot(index), content);
        self.chunks -= u64::from(before.is_some());
        before
    }

    /// Writes a part of a chunk, in place if no other image has it. `room` says whether a new chunk may be made; false if
    /// one was needed and may not.
    pub fn write(
        &mut self,
        index: usize,
        within: usize,
        bytes: &[u8],
        held: &Held,
        room: impl FnOnce() -> bool,
    ) -> bool {
        let slot = self.slot(index);
        if let Some(chunk) = slot.as_mut().and_then(Arc::get_mut) {
            chunk.bytes[within..within + bytes.len()].copy_from_slice(bytes);
            return true;
        }
        if !room() {
            return false;
        }
        let fresh: Box<[u8]> = if bytes.len() == CHUNK_BYTES {
            bytes.into()
        } else {
            let mut fresh: Box<[u8]> = bytes_of(slot).into();
            fresh[within..within + bytes.len()].copy_from_slice(bytes);
            fresh
        };
        let before = slot.replace(Arc::new(Chunk::new(fresh, held)));
        self.chunks += u64::from(before.is_none());
        true
    }

    fn slot(&mut self, index: usize) -> &mut Slot {
        let group = self.groups[index / GROUP_CHUNKS].get_or_insert_with(|| vec![None; GROUP_CHUNKS].into());
        &mut Arc::make_mut(group)[index % GROUP_CHUNKS]
    }
}
