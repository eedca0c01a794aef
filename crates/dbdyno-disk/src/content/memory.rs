//! Content in memory: images that share their chunks until one of them is written to.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::chunk::{CHUNK_BYTES, Chunk, Held, Slot, bytes_of};
use super::store::{ContentError, Store};

/// Chunks are found through groups, so that a large empty disk costs nothing.
const GROUP_CHUNKS: usize = 1024;

/// All of a disk's content at one time.
#[derive(Clone)]
struct Image {
    groups: Vec<Option<Box<[Slot]>>>,
    chunks: u64,
}

impl Image {
    fn empty(size_bytes: u64) -> Self {
        let groups = size_bytes.div_ceil((CHUNK_BYTES * GROUP_CHUNKS) as u64) as usize;
        Self { groups: vec![None; groups], chunks: 0 }
    }

    fn get(&self, index: usize) -> Option<&Arc<Chunk>> {
        self.groups.get(index / GROUP_CHUNKS)?.as_ref()?[index % GROUP_CHUNKS].as_ref()
    }

    fn slot(&mut self, index: usize) -> &mut Slot {
        let group = self.groups[index / GROUP_CHUNKS].get_or_insert_with(|| vec![None; GROUP_CHUNKS].into());
        &mut group[index % GROUP_CHUNKS]
    }
}

/// A live image and named snapshots of it.
pub struct Memory {
    size_bytes: u64,
    held_bytes_max: u64,
    held: Held,
    live: Image,
    snapshots: BTreeMap<String, Image>,
}

impl Memory {
    pub fn new(size_bytes: u64, held_bytes_max: u64, held: Held) -> Self {
        Self { size_bytes, held_bytes_max, held, live: Image::empty(size_bytes), snapshots: BTreeMap::new() }
    }
}

impl Store for Memory {
    fn chunk(&self, index: usize) -> Result<Slot, ContentError> {
        Ok(self.live.get(index).cloned())
    }

    fn write(&mut self, index: usize, within: usize, bytes: &[u8]) -> Result<(), ContentError> {
        let slot = self.live.slot(index);
        if let Some(chunk) = slot.as_mut().and_then(Arc::get_mut) {
            chunk.bytes[within..within + bytes.len()].copy_from_slice(bytes);
            return Ok(());
        }
        if self.held.bytes() + CHUNK_BYTES as u64 > self.held_bytes_max {
            return Err(ContentError::Full);
        }
        let fresh: Box<[u8]> = if bytes.len() == CHUNK_BYTES {
            bytes.into()
        } else {
            let mut fresh: Box<[u8]> = bytes_of(slot).into();
            fresh[within..within + bytes.len()].copy_from_slice(bytes);
            fresh
        };
        let before = slot.replace(Arc::new(Chunk::new(fresh, &self.held)));
        self.live.chunks += u64::from(before.is_none());
        Ok(())
    }

    fn put(&mut self, index: usize, content: Slot) -> Result<(), ContentError> {
        // Looked up first, so that putting a hole into a hole makes no group.
        if content.is_none() && self.live.get(index).is_none() {
            return Ok(());
        }
        let added = u64::from(content.is_some());
        let removed = u64::from(std::mem::replace(self.live.slot(index), content).is_some());
        self.live.chunks = self.live.chunks + added - removed;
        Ok(())
    }

    fn live_chunks(&self) -> u64 {
        self.live.chunks
    }

    fn snapshot(&mut self, name: &str) {
        self.snapshots.insert(name.to_owned(), self.live.clone());
    }

    fn restore(&mut self, name: &str) -> Result<bool, ContentError> {
        let Some(image) = self.snapshots.get(name).cloned() else { return Ok(false) };
        self.live = image;
        Ok(true)
    }

    fn forget(&mut self, name: &str) -> bool {
        self.snapshots.remove(name).is_some()
    }

    fn snapshots(&self) -> Vec<String> {
        self.snapshots.keys().cloned().collect()
    }

    fn clear(&mut self) -> Result<(), ContentError> {
        self.live = Image::empty(self.size_bytes);
        Ok(())
    }
}
