//! Content in a sparse file: a raw image of the disk, beside what snapshots need of the past, in memory.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};

use super::store::{CHUNK_BYTES, Chunk, ContentError, Image, Slot, Store, Usage, ZEROS};

/// What changed since a snapshot was taken, as it was then.
type Before = BTreeMap<usize, Slot>;

/// The live content in a file, and what it was when each snapshot was taken.
pub struct InFile {
    file: Arc<File>,
    size_bytes: u64,
    held_bytes_max: u64,
    held: Usage,
    /// Which chunks take room in the file, as far as this process knows.
    present: Vec<bool>,
    snapshots: BTreeMap<String, Before>,
}

impl InFile {
    /// Opens `path`, or makes it. A file that is there already is the content, if it has the size of the disk.
    pub fn open(path: &Path, size_bytes: u64, held_bytes_max: u64, held: Usage) -> Result<Self, String> {
        let said = |error: std::io::Error| format!("cannot use the content file {}: {error}", path.display());
        let options = || OpenOptions::new().read(true).write(true).clone();
        let file = match options().create_new(true).open(path) {
            Ok(file) => {
                file.set_len(size_bytes).map_err(said)?;
                file
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                let file = options().open(path).map_err(said)?;
                let metadata = file.metadata().map_err(said)?;
                if !metadata.is_file() || metadata.len() != size_bytes {
                    return Err(format!(
                        "the content file {} is there already and is not a file of {size_bytes} bytes; remove it, \
                         name another, or give its size",
                        path.display()
                    ));
                }
                file
            }
            Err(error) => return Err(said(error)),
        };
        let mut image = Self {
            file: Arc::new(file),
            size_bytes,
            held_bytes_max,
            held,
            present: vec![false; size_bytes.div_ceil(CHUNK_BYTES as u64) as usize],
            snapshots: BTreeMap::new(),
        };
        image.find_data().map_err(said)?;
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
            (false, true) => self.held.add_chunk(),
            (true, false) => self.held.remove_chunk(),
            _ => {}
        }
        self.present[index] = present;
    }

    /// Where a chunk lies in the file, and its length, which is shorter at the end of the disk.
    fn place(&self, index: usize) -> (u64, usize) {
        let offset = (index * CHUNK_BYTES) as u64;
        (offset, (self.size_bytes - offset).min(CHUNK_BYTES as u64) as usize)
    }

    fn room_for_one(&self) -> Result<(), ContentError> {
        if self.held.bytes() + CHUNK_BYTES as u64 > self.held_bytes_max {
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
            self.room_for_one()?;
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
        Ok(Some(Arc::new(Chunk::new(bytes, &self.held))))
    }

    fn write(&mut self, index: usize, within: usize, bytes: &[u8]) -> Result<(), ContentError> {
        self.preserve(index)?;
        if !self.present[index] {
            self.room_for_one()?;
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
