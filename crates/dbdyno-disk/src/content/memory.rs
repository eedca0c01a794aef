//! Content in memory: images that share their chunks until one of them is written to.

use std::collections::BTreeMap;

use super::chunk::{CHUNK_BYTES, Held, Slot};
use super::image::Image;
use super::store::{ContentError, Store};

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
        Ok(self.live.get(index).clone())
    }

    fn write(&mut self, index: usize, within: usize, bytes: &[u8]) -> Result<(), ContentError> {
        let Self { live, held, held_bytes_max, .. } = self;
        let room = || held.bytes() + CHUNK_BYTES as u64 <= *held_bytes_max;
        if live.write(index, within, bytes, held, room) { Ok(()) } else { Err(ContentError::Full) }
    }

    fn put(&mut self, index: usize, content: Slot) -> Result<(), ContentError> {
        self.live.put(index, content);
        Ok(())
    }

    fn live_chunks(&self) -> u64 {
        self.live.chunks()
    }

    fn image(&self) -> Option<Image> {
        Some(self.live.clone())
    }

    fn set_image(&mut self, image: Image) -> Result<(), ContentError> {
        self.live = image;
        Ok(())
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
