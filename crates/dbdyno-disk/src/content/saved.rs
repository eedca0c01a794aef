//! The content of now in a sparse file of its own, and back: how prepared data outlives its disk.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use super::Content;
use super::chunk::{CHUNK_BYTES, Slot, ZEROS, bytes_of};

impl Content {
    /// Writes the content to a new sparse file and syncs it; returns the bytes written. What is written to the disk
    /// meanwhile may be in it or not, so the disk should be idle.
    pub fn save(&self, path: &Path) -> Result<u64, String> {
        self.save_to(path).map_err(|error| format!("cannot save to {}: {error}", path.display()))
    }

    fn save_to(&self, path: &Path) -> io::Result<u64> {
        let chunk = |index| self.lock().store.chunk(index);
        write_sparse(path, self.size_bytes(), |index| {
            chunk(index).map_err(|error| io::Error::other(crate::steer::said(error)))
        })
    }

    /// Makes the content that of a saved file; all of it is durable. Returns the bytes read. After an error the content
    /// is partly loaded.
    pub fn load(&self, path: &Path) -> Result<u64, String> {
        let file = open_sparse(path, self.size_bytes())?;
        let failed = |error| crate::steer::said(error).to_owned();
        self.clear().map_err(failed)?;
        let store = |index, bytes: &[u8]| self.lock().store.write(index, 0, bytes).map_err(failed);
        let read = read_sparse(&file, self.size_bytes(), store)
            .map_err(|why| format!("cannot load {}: {why}", path.display()));
        let mut inner = self.lock();
        let logged = inner.rebase(&self.held);
        drop(inner);
        drop(logged);
        read
    }
}

/// Writes chunks to a new sparse file and syncs it; returns the bytes written.
pub fn write_sparse(path: &Path, size_bytes: u64, chunk: impl Fn(usize) -> io::Result<Slot>) -> io::Result<u64> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.set_len(size_bytes)?;
    let mut written = 0;
    for (index, start) in (0..size_bytes).step_by(CHUNK_BYTES).enumerate() {
        let slot = chunk(index)?;
        let length = (CHUNK_BYTES as u64).min(size_bytes - start) as usize;
        let bytes = &bytes_of(&slot)[..length];
        if slot.is_some() && bytes != &ZEROS[..length] {
            file.write_all_at(bytes, start)?;
            written += length as u64;
        }
    }
    file.sync_all()?;
    Ok(written)
}

/// Opens a saved file for a disk of this size.
pub fn open_sparse(path: &Path, size_bytes: u64) -> Result<File, String> {
    let failed = |error: io::Error| format!("cannot load {}: {error}", path.display());
    let file = File::open(path).map_err(failed)?;
    match file.metadata().map_err(failed)?.len() {
        length if length == size_bytes => Ok(file),
        length => Err(format!("{} has {length} bytes, the disk {size_bytes}", path.display())),
    }
}

/// Gives `store` each chunk of a saved file that is not all zeros; returns the bytes read.
pub fn read_sparse(
    file: &File,
    size_bytes: u64,
    mut store: impl FnMut(usize, &[u8]) -> Result<(), String>,
) -> Result<u64, String> {
    let failed = |error: io::Error| error.to_string();
    let mut chunk = [0; CHUNK_BYTES];
    let (mut read, mut at) = (0, 0);
    while let Some(data) = next(file, SeekFrom::Data(at)).map_err(failed)? {
        at = next(file, SeekFrom::Hole(data)).map_err(failed)?.unwrap_or(size_bytes);
        for index in data / CHUNK_BYTES as u64..at.div_ceil(CHUNK_BYTES as u64) {
            let start = index * CHUNK_BYTES as u64;
            let length = (CHUNK_BYTES as u64).min(size_bytes - start) as usize;
            file.read_exact_at(&mut chunk[..length], start).map_err(failed)?;
            if chunk[..length] != ZEROS[..length] {
                store(index as usize, &chunk[..length])?;
                read += length as u64;
            }
        }
    }
    Ok(read)
}

/// Where the next data or hole begins; nothing behind the last.
fn next(file: &File, from: SeekFrom) -> io::Result<Option<u64>> {
    match seek(file, from) {
        Ok(at) => Ok(Some(at)),
        Err(Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZE: u64 = 5 * CHUNK_BYTES as u64 + 4096;

    fn all_of(content: &Content) -> Vec<u8> {
        content.read(0, SIZE as usize, |bytes| bytes.expect("in memory").to_vec())
    }

    fn place(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("dbdyno-saved-{name}-{}", std::process::id()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn what_was_saved_is_what_is_loaded(
            writes in prop::collection::vec((0..SIZE, 1..40_000_usize, any::<u8>()), 0..12)
        ) {
            let content = Content::in_memory(SIZE, 4 * SIZE);
            for (offset, length, byte) in writes {
                let length = length.min((SIZE - offset) as usize);
                content.write(offset, &vec![byte; length]).expect("there is room");
            }
            let path = place("any");
            let written = content.save(&path).expect("a file can be written");
            let other = Content::in_memory(SIZE, 4 * SIZE);
            other.write(7, b"what was there before").expect("there is room");
            let read = other.load(&path).expect("it was saved");
            std::fs::remove_file(&path).expect("it was saved");
            prop_assert_eq!(written, read);
            prop_assert!(all_of(&content) == all_of(&other));
        }
    }

    #[test]
    fn a_file_of_another_size_or_none_is_refused() {
        let path = place("size");
        Content::in_memory(SIZE, SIZE).save(&path).expect("a file can be written");
        let other = Content::in_memory(2 * SIZE, SIZE);
        assert!(other.load(&path).is_err_and(|error| error.contains("bytes, the disk")));
        assert!(Content::in_memory(SIZE, SIZE).save(&path).is_err_and(|error| error.contains("exists")));
        std::fs::remove_file(&path).expect("it was saved");
        assert!(other.load(&path).is_err());
    }

    #[test]
    fn what_is_loaded_survives_a_power_cut() {
        let path = place("cut");
        let content = Content::in_memory(SIZE, 4 * SIZE);
        content.write(0, &[9; CHUNK_BYTES]).expect("there is room");
        content.save(&path).expect("a file can be written");
        let other = Content::in_memory(SIZE, 4 * SIZE);
        other.set_volatile(true);
        other.load(&path).expect("it was saved");
        other.power_cut(1, 512).expect("in memory");
        std::fs::remove_file(&path).expect("it was saved");
        assert!(all_of(&content) == all_of(&other));
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let path = place("room");
        let content = Content::in_memory(SIZE, 4 * SIZE);
        content.write(0, &vec![9; SIZE as usize]).expect("there is room");
        content.save(&path).expect("a file can be written");
        let refused = Content::in_memory(SIZE, CHUNK_BYTES as u64).load(&path);
        std::fs::remove_file(&path).expect("it was saved");
        assert!(refused.is_err_and(|error| error.contains("--limit")));
    }
}
