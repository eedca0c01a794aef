//! What is on the disk, in memory: chunks that snapshots share until one of them is written to.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Size of a chunk. A larger one makes the first small write after a restore dearer (all of it is copied), a smaller one
/// the large transfers and snapshots. 16 KiB is also the page of `InnoDB`.
pub const CHUNK_BYTES: usize = 16 << 10;

/// Chunks are found through groups, so that a large empty disk costs nothing.
const GROUP_CHUNKS: usize = 1024;

static ZEROS: [u8; CHUNK_BYTES] = [0; CHUNK_BYTES];

/// Memory for one chunk, counted while it lives.
struct Chunk {
    bytes: Box<[u8]>,
    held: Arc<AtomicU64>,
}

impl Chunk {
    fn new(bytes: Box<[u8]>, held: &Arc<AtomicU64>) -> Self {
        held.fetch_add(CHUNK_BYTES as u64, Ordering::Relaxed);
        Self { bytes, held: Arc::clone(held) }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.held.fetch_sub(CHUNK_BYTES as u64, Ordering::Relaxed);
    }
}

type Slot = Option<Arc<Chunk>>;

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

    /// Forgets a chunk; returns it so that its memory is given back outside any lock.
    fn take(&mut self, index: usize) -> Slot {
        self.get(index)?;
        self.chunks -= 1;
        self.slot(index).take()
    }
}

/// Why content could not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentError {
    /// The memory allowed is used up.
    Full,
    /// The range reaches past the end of the disk.
    PastEnd,
}

struct Images {
    live: Image,
    snapshots: BTreeMap<String, Image>,
}

/// The content of one disk: a live image and named snapshots of it. Ranges are in bytes; what was never written reads
/// as zeros.
pub struct Content {
    size_bytes: u64,
    held_bytes_max: u64,
    held: Arc<AtomicU64>,
    images: Mutex<Images>,
}

thread_local! {
    /// Where a read of several chunks is put together, one for each replying thread.
    static GATHERED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Content {
    /// A disk of `size_bytes` that holds at most `held_bytes_max` of memory, snapshots included.
    pub fn new(size_bytes: u64, held_bytes_max: u64) -> Self {
        let images = Images { live: Image::empty(size_bytes), snapshots: BTreeMap::new() };
        Self { size_bytes, held_bytes_max, held: Arc::new(AtomicU64::new(0)), images: Mutex::new(images) }
    }

    /// Size of the disk.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Memory that may be held.
    pub fn held_bytes_max(&self) -> u64 {
        self.held_bytes_max
    }

    /// Memory held by the live image and all snapshots together.
    pub fn held_bytes(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Bytes of the live image that are not holes.
    pub fn live_bytes(&self) -> u64 {
        self.lock().live.chunks * CHUNK_BYTES as u64
    }

    /// Calls `then` with the bytes of a range, cut at the end of the disk. No lock is held meanwhile, and within one
    /// chunk nothing is copied.
    pub fn read<R>(&self, offset: u64, length: usize, then: impl FnOnce(&[u8]) -> R) -> R {
        let start = offset.min(self.size_bytes);
        let length = length.min((self.size_bytes - start) as usize);
        let (index, within) = split(start);
        if within + length <= CHUNK_BYTES {
            let chunk = self.lock().live.get(index).cloned();
            let bytes: &[u8] = chunk.as_deref().map_or(&ZEROS, |chunk| &chunk.bytes);
            return then(&bytes[within..within + length]);
        }
        GATHERED.with_borrow_mut(|gathered| {
            gathered.clear();
            for (index, within, part) in parts(start, length) {
                let chunk = self.lock().live.get(index).cloned();
                let bytes: &[u8] = chunk.as_deref().map_or(&ZEROS, |chunk| &chunk.bytes);
                gathered.extend_from_slice(&bytes[within..within + part]);
            }
            then(gathered)
        })
    }

    /// Writes. The lock is taken chunk by chunk, so that a long write does not hold up short reads; with concurrent
    /// writes to the same range either may win in each chunk, as on a real disk.
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<(), ContentError> {
        if offset.checked_add(data.len() as u64).is_none_or(|end| end > self.size_bytes) {
            return Err(ContentError::PastEnd);
        }
        let mut rest = data;
        for (index, within, part) in parts(offset, data.len()) {
            let (bytes, after) = rest.split_at(part);
            rest = after;
            self.write_chunk(index, within, bytes)?;
        }
        Ok(())
    }

    fn write_chunk(&self, index: usize, within: usize, bytes: &[u8]) -> Result<(), ContentError> {
        let mut images = self.lock();
        let slot = images.live.slot(index);
        if let Some(chunk) = slot.as_mut().and_then(Arc::get_mut) {
            chunk.bytes[within..within + bytes.len()].copy_from_slice(bytes);
            return Ok(());
        }
        if self.held_bytes() + CHUNK_BYTES as u64 > self.held_bytes_max {
            return Err(ContentError::Full);
        }
        let fresh: Box<[u8]> = if bytes.len() == CHUNK_BYTES {
            bytes.into()
        } else {
            let mut fresh: Box<[u8]> = match slot {
                Some(shared) => shared.bytes.clone(),
                None => vec![0; CHUNK_BYTES].into(),
            };
            fresh[within..within + bytes.len()].copy_from_slice(bytes);
            fresh
        };
        let before = slot.replace(Arc::new(Chunk::new(fresh, &self.held)));
        images.live.chunks += u64::from(before.is_none());
        drop(images);
        Ok(())
    }

    /// Makes a range read as zeros. Whole chunks give their memory back.
    pub fn discard(&self, offset: u64, length: u64) -> Result<(), ContentError> {
        let start = offset.min(self.size_bytes);
        let end = start + length.min(self.size_bytes - start);
        let mut at = start;
        while at < end {
            let (index, within) = split(at);
            let part = (CHUNK_BYTES - within).min((end - at) as usize);
            if part == CHUNK_BYTES {
                let freed = self.lock().live.take(index);
                drop(freed);
            } else if self.lock().live.get(index).is_some() {
                self.write_chunk(index, within, &ZEROS[..part])?;
            }
            at += part as u64;
        }
        Ok(())
    }

    /// Keeps the content of now under `name`, instead of what was there under that name.
    pub fn snapshot(&self, name: &str) {
        let mut images = self.lock();
        let image = images.live.clone();
        let before = images.snapshots.insert(name.to_owned(), image);
        drop(images);
        drop(before);
    }

    /// Makes the live content that of a snapshot; false if there is none of that name.
    pub fn restore(&self, name: &str) -> bool {
        let mut images = self.lock();
        let Some(image) = images.snapshots.get(name).cloned() else { return false };
        let before = std::mem::replace(&mut images.live, image);
        drop(images);
        drop(before);
        true
    }

    /// Forgets a snapshot; false if there is none of that name.
    pub fn forget(&self, name: &str) -> bool {
        let before = self.lock().snapshots.remove(name);
        before.is_some()
    }

    /// Empties the live image. Snapshots stay.
    pub fn clear(&self) {
        let before = std::mem::replace(&mut self.lock().live, Image::empty(self.size_bytes));
        drop(before);
    }

    /// The names of the snapshots.
    pub fn snapshots(&self) -> Vec<String> {
        self.lock().snapshots.keys().cloned().collect()
    }

    /// A thread that panicked while holding the lock left at most a half-written chunk, as a failing disk would.
    fn lock(&self) -> MutexGuard<'_, Images> {
        self.images.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The chunk a byte lies in, and where in it.
fn split(offset: u64) -> (usize, usize) {
    ((offset / CHUNK_BYTES as u64) as usize, (offset % CHUNK_BYTES as u64) as usize)
}

/// A range cut at chunk boundaries: chunk, offset within it, length.
fn parts(offset: u64, length: usize) -> impl Iterator<Item = (usize, usize, usize)> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 64 << 20;

    fn bytes(content: &Content, offset: u64, length: usize) -> Vec<u8> {
        content.read(offset, length, <[u8]>::to_vec)
    }

    #[test]
    fn unwritten_reads_as_zeros_and_the_end_cuts() {
        let content = Content::new(SIZE, SIZE);
        assert_eq!(bytes(&content, SIZE - 10, 100), [0; 10]);
        assert!(bytes(&content, SIZE + 10, 100).is_empty());
        assert_eq!(content.write(SIZE - 1, &[1, 2]), Err(ContentError::PastEnd));
        assert_eq!(content.write(u64::MAX, &[1, 2]), Err(ContentError::PastEnd));
    }

    #[test]
    fn a_range_over_several_chunks_comes_back() {
        let content = Content::new(SIZE, SIZE);
        let data: Vec<u8> = (0..100_000_u32).map(|i| (i % 251) as u8).collect();
        content.write(12_345, &data).unwrap();
        assert_eq!(bytes(&content, 12_345, data.len()), data);
        assert_eq!(bytes(&content, 12_344, 2), [0, 0]);
        assert_eq!(content.live_bytes(), 7 * CHUNK_BYTES as u64);
    }

    #[test]
    fn snapshots_share_memory_and_come_back() {
        let content = Content::new(SIZE, SIZE);
        content.write(0, &vec![1; 1 << 20]).unwrap();
        content.snapshot("before");
        assert_eq!(content.held_bytes(), 1 << 20);
        content.write(0, &[2; 4096]).unwrap();
        assert_eq!(content.held_bytes(), (1 << 20) + CHUNK_BYTES as u64);
        assert!(content.restore("before") && !content.restore("other"));
        assert_eq!(bytes(&content, 0, 4097), vec![1; 4097]);
        assert_eq!(content.held_bytes(), 1 << 20);
        content.clear();
        assert_eq!((content.live_bytes(), content.held_bytes()), (0, 1 << 20));
        assert!(content.forget("before"));
        assert_eq!(content.held_bytes(), 0);
    }

    #[test]
    fn discard_frees_whole_chunks_and_zeroes_parts() {
        let content = Content::new(SIZE, SIZE);
        content.write(0, &vec![7; 4 * CHUNK_BYTES]).unwrap();
        content.discard(100, 3 * CHUNK_BYTES as u64).unwrap();
        assert_eq!(content.live_bytes(), 2 * CHUNK_BYTES as u64);
        assert_eq!(bytes(&content, 99, 3), [7, 0, 0]);
        assert_eq!(bytes(&content, 3 * CHUNK_BYTES as u64 + 99, 2), [0, 7]);
        content.discard(0, u64::MAX).unwrap();
        assert_eq!(content.held_bytes(), 0);
    }

    #[test]
    fn the_limit_holds_with_snapshots() {
        let content = Content::new(SIZE, 2 * CHUNK_BYTES as u64);
        content.write(0, &vec![1; 2 * CHUNK_BYTES]).unwrap();
        assert_eq!(content.write(1 << 20, &[1]), Err(ContentError::Full));
        content.write(5, &[9]).unwrap();
        content.snapshot("full");
        assert_eq!(content.write(5, &[8]), Err(ContentError::Full));
        assert_eq!(bytes(&content, 5, 1), [9]);
    }
}
