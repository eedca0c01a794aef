//! The contract of what keeps the content, the chunks in which it is held and counted, and both that keep it: memory,
//! in images that share their chunks until one of them is written to, and a sparse file, which is a raw image of the
//! disk beside what snapshots need of the past, in memory.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};

/// Why content could not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentError {
    /// The room allowed is used up, or that of the filesystem under the content file.
    Full,
    /// The range reaches past the end of the disk.
    PastEnd,
    /// The power is off.
    Off,
    /// The content file could not be read or written.
    Host,
}

impl From<std::io::Error> for ContentError {
    fn from(error: std::io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => Self::Full,
            _ => Self::Host,
        }
    }
}

/// A place for the live content and its snapshots, in chunks.
pub trait Store: Send {
    /// A chunk as it is now.
    fn chunk(&self, index: usize) -> Result<Slot, ContentError>;
    /// Writes a part of a chunk.
    fn write(&mut self, index: usize, within: usize, bytes: &[u8]) -> Result<(), ContentError>;
    /// Replaces a chunk.
    fn put(&mut self, index: usize, content: Slot) -> Result<(), ContentError>;
    /// How many chunks are no holes.
    fn live_chunks(&self) -> u64;
    /// The content of now, which does not change any more; `None` where that is not to be had without copying it.
    fn image(&self) -> Option<Image>;
    /// Makes the content that of an image, where [`Store::image`] gives one.
    fn set_image(&mut self, image: Image) -> Result<(), ContentError>;
    /// Keeps the content of now under a name.
    fn snapshot(&mut self, name: &str);
    /// Makes the content that of a snapshot; false if there is none of that name.
    fn restore(&mut self, name: &str) -> Result<bool, ContentError>;
    /// Drops a snapshot; false if there is none of that name.
    fn forget(&mut self, name: &str) -> bool;
    /// The names of the snapshots.
    fn snapshots(&self) -> Vec<String>;
    /// Makes it all zeros.
    fn clear(&mut self) -> Result<(), ContentError>;
}

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

    /// Writes a part of a chunk, in place if no other image has it. `room` says whether a new chunk may be made; false
    /// if one was needed and may not.
    pub fn write(
        &mut self,
        index: usize,
        within: usize,
        bytes: &[u8],
        usage: &Usage,
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
        let before = slot.replace(Arc::new(Chunk::new(fresh, usage)));
        self.chunks += u64::from(before.is_none());
        true
    }

    fn slot(&mut self, index: usize) -> &mut Slot {
        let group = self.groups[index / GROUP_CHUNKS].get_or_insert_with(|| vec![None; GROUP_CHUNKS].into());
        &mut Arc::make_mut(group)[index % GROUP_CHUNKS]
    }
}

/// Size of a chunk. A larger one makes the first small write after a restore dearer (all of it is copied), a smaller
/// one the large transfers and snapshots. 16 KiB is also the page of `InnoDB`.
pub const CHUNK_BYTES: usize = 16 << 10;

/// The smallest part of a chunk that a drive writes as a whole.
pub const SECTOR_BYTES: usize = 512;

pub static ZEROS: [u8; CHUNK_BYTES] = [0; CHUNK_BYTES];

/// Bytes of memory, or of the content file, that a disk holds; every chunk adds itself.
#[derive(Clone, Default)]
pub struct Usage(Arc<AtomicU64>);

impl Usage {
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
    usage: Usage,
}

impl Chunk {
    pub fn new(bytes: Box<[u8]>, usage: &Usage) -> Self {
        usage.add(bytes.len());
        Self { bytes, usage: usage.clone() }
    }
}

impl Clone for Chunk {
    fn clone(&self) -> Self {
        Self::new(self.bytes.clone(), &self.usage)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.usage.remove(self.bytes.len());
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

/// A live image and named snapshots of it.
pub struct Memory {
    size_bytes: u64,
    held_bytes_max: u64,
    usage: Usage,
    live: Image,
    snapshots: BTreeMap<String, Image>,
}

impl Memory {
    pub fn new(size_bytes: u64, held_bytes_max: u64, usage: Usage) -> Self {
        Self { size_bytes, held_bytes_max, usage, live: Image::empty(size_bytes), snapshots: BTreeMap::new() }
    }
}

impl Store for Memory {
    fn chunk(&self, index: usize) -> Result<Slot, ContentError> {
        Ok(self.live.get(index).clone())
    }

    fn write(&mut self, index: usize, within: usize, bytes: &[u8]) -> Result<(), ContentError> {
        let Self { live, usage, held_bytes_max, .. } = self;
        let room = || usage.bytes() + CHUNK_BYTES as u64 <= *held_bytes_max;
        if live.write(index, within, bytes, usage, room) { Ok(()) } else { Err(ContentError::Full) }
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

/// What changed since a snapshot was taken, as it was then.
type Before = BTreeMap<usize, Slot>;

/// The live content in a file, and what it was when each snapshot was taken.
pub struct InFile {
    file: Arc<File>,
    size_bytes: u64,
    held_bytes_max: u64,
    usage: Usage,
    /// Which chunks take room in the file, as far as this process knows.
    present: Vec<bool>,
    snapshots: BTreeMap<String, Before>,
}

impl InFile {
    /// Opens `path`, or makes it. A file that is there already is the content, if it has the size of the disk.
    pub fn open(path: &Path, size_bytes: u64, held_bytes_max: u64, usage: Usage) -> Result<Self, String> {
        let message = |error: std::io::Error| format!("cannot use the content file {}: {error}", path.display());
        let options = || OpenOptions::new().read(true).write(true).clone();
        let file = match options().create_new(true).open(path) {
            Ok(file) => {
                file.set_len(size_bytes).map_err(message)?;
                file
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                let file = options().open(path).map_err(message)?;
                let metadata = file.metadata().map_err(message)?;
                if !metadata.is_file() || metadata.len() != size_bytes {
                    return Err(format!(
                        "the content file {} is there already and is not a file of {size_bytes} bytes; remove it, \
                         name another, or give its size",
                        path.display()
                    ));
                }
                file
            }
            Err(error) => return Err(message(error)),
        };
        let mut image = Self {
            file: Arc::new(file),
            size_bytes,
            held_bytes_max,
            usage,
            present: vec![false; size_bytes.div_ceil(CHUNK_BYTES as u64) as usize],
            snapshots: BTreeMap::new(),
        };
        image.find_data().map_err(message)?;
        Ok(image)
    }

    /// The file, for reading without a lock.
    pub fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    fn find_data(&mut self) -> std::io::Result<()> {
        let mut at = 0;
        while at < self.size_bytes {
            let start = match seek(&self.file, SeekFrom::Data(at)) {
                Ok(start) => start,
                Err(rustix::io::Errno::NXIO) => break,
                Err(error) => return Err(error.into()),
            };
            at = seek(&self.file, SeekFrom::Hole(start))?;
            for index in start as usize / CHUNK_BYTES..(at as usize).div_ceil(CHUNK_BYTES) {
                self.set_present(index, true);
            }
        }
        Ok(())
    }

    fn set_present(&mut self, index: usize, present: bool) {
        match (self.present[index], present) {
            (false, true) => self.usage.add_chunk(),
            (true, false) => self.usage.remove_chunk(),
            _ => {}
        }
        self.present[index] = present;
    }

    /// Where a chunk lies in the file, and its length, which is shorter at the end of the disk.
    fn place(&self, index: usize) -> (u64, usize) {
        let offset = (index * CHUNK_BYTES) as u64;
        (offset, (self.size_bytes - offset).min(CHUNK_BYTES as u64) as usize)
    }

    fn room_for_chunk(&self) -> Result<(), ContentError> {
        if self.usage.bytes() + CHUNK_BYTES as u64 > self.held_bytes_max {
            return Err(ContentError::Full);
        }
        Ok(())
    }

    /// Keeps a chunk for every snapshot that still shares it with the file.
    fn preserve(&mut self, index: usize) -> Result<(), ContentError> {
        if self.snapshots.values().all(|before| before.contains_key(&index)) {
            return Ok(());
        }
        if self.present[index] {
            self.room_for_chunk()?;
        }
        let chunk = self.chunk(index)?;
        for before in self.snapshots.values_mut() {
            before.entry(index).or_insert_with(|| chunk.clone());
        }
        Ok(())
    }
}

impl Store for InFile {
    fn chunk(&self, index: usize) -> Result<Slot, ContentError> {
        if !self.present[index] {
            return Ok(None);
        }
        let (offset, length) = self.place(index);
        let mut bytes: Box<[u8]> = ZEROS.into();
        self.file.read_exact_at(&mut bytes[..length], offset)?;
        Ok(Some(Arc::new(Chunk::new(bytes, &self.usage))))
    }

    fn write(&mut self, index: usize, within: usize, bytes: &[u8]) -> Result<(), ContentError> {
        self.preserve(index)?;
        if !self.present[index] {
            self.room_for_chunk()?;
        }
        self.file.write_all_at(bytes, self.place(index).0 + within as u64)?;
        self.set_present(index, true);
        Ok(())
    }

    fn put(&mut self, index: usize, content: Slot) -> Result<(), ContentError> {
        let (offset, length) = self.place(index);
        if let Some(chunk) = content {
            return self.write(index, 0, &chunk.bytes[..length]);
        }
        if self.present[index] {
            self.preserve(index)?;
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&self.file, hole, offset, length as u64).map_err(std::io::Error::from)?;
            self.set_present(index, false);
        }
        Ok(())
    }

    fn live_chunks(&self) -> u64 {
        self.present.iter().filter(|present| **present).count() as u64
    }

    fn image(&self) -> Option<Image> {
        None
    }

    fn set_image(&mut self, _image: Image) -> Result<(), ContentError> {
        Err(ContentError::Host)
    }

    fn snapshot(&mut self, name: &str) {
        self.snapshots.insert(name.to_owned(), Before::new());
    }

    fn restore(&mut self, name: &str) -> Result<bool, ContentError> {
        let Some(before) = self.snapshots.get(name).cloned() else { return Ok(false) };
        for (index, content) in before {
            self.put(index, content)?;
        }
        // The file is the snapshot again, so nothing differs from it.
        self.snapshot(name);
        Ok(true)
    }

    fn forget(&mut self, name: &str) -> bool {
        self.snapshots.remove(name).is_some()
    }

    fn snapshots(&self) -> Vec<String> {
        self.snapshots.keys().cloned().collect()
    }

    fn clear(&mut self) -> Result<(), ContentError> {
        for index in 0..self.present.len() {
            self.put(index, None)?;
        }
        Ok(())
    }
}
