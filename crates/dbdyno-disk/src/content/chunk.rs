//! The unit in which content is held, shared and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Size of a chunk. A larger one makes the first small write after a restore dearer (all of it is copied), a smaller one
/// the large transfers and snapshots. 16 KiB is also the page of `InnoDB`.
pub const CHUNK_BYTES: usize = 16 << 10;

/// The smallest part of a chunk that a drive writes as a whole.
pub const SECTOR_BYTES: usize = 512;

pub static ZEROS: [u8; CHUNK_BYTES] = [0; CHUNK_BYTES];

/// Bytes of memory, or of the content file, that a disk holds; every chunk adds itself.
#[derive(Clone, Default)]
pub struct Held(Arc<AtomicU64>);

impl Held {
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub fn add_chunk(&self) {
        self.add(CHUNK_BYTES);
    }

    pub fn remove_chunk(&self) {
        self.remove(CHUNK_BYTES);
    }

    fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn remove(&self, bytes: usize) {
        self.0.fetch_sub(bytes as u64, Ordering::Relaxed);
    }
}

/// Memory for one chunk, or for the data of one logged write, counted while it lives.
pub struct Chunk {
    pub bytes: Box<[u8]>,
    held: Held,
}

impl Chunk {
    pub fn new(bytes: Box<[u8]>, held: &Held) -> Self {
        held.add(bytes.len());
        Self { bytes, held: held.clone() }
    }
}

impl Clone for Chunk {
    fn clone(&self) -> Self {
        Self::new(self.bytes.clone(), &self.held)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.held.remove(self.bytes.len());
    }
}

/// A chunk, or a hole that reads as zeros.
pub type Slot = Option<Arc<Chunk>>;

/// The bytes of a slot.
pub fn bytes_of(slot: &Slot) -> &[u8] {
    slot.as_deref().map_or(&ZEROS, |chunk| &chunk.bytes)
}

/// The chunk a byte lies in, and where in it.
pub fn split(offset: u64) -> (usize, usize) {
    ((offset / CHUNK_BYTES as u64) as usize, (offset % CHUNK_BYTES as u64) as usize)
}

/// A range cut at chunk boundaries: chunk, offset within it, length.
pub fn parts(offset: u64, length: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == length {
            return None;
        }
        let (index, within) = split(offset + done as u64);
        let part = (CHUNK_BYTES - within).min(length - done);
        done += part;
        Some((index, within, part))
    })
}

/// Which sectors of its chunk a part touches, one bit each.
pub fn sectors(within: usize, length: usize) -> u32 {
    if length == 0 {
        return 0;
    }
    let (first, last) = (within / SECTOR_BYTES, (within + length - 1) / SECTOR_BYTES);
    (u32::MAX >> (31 - (last - first))) << first
}
