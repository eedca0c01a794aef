//! The current content in a sparse file of its own, and a cut in a folder of its own, and back: prepared data and
//! evidence outlive their disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write as _};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::Content;
use super::cut_recorder::{CutRecord, Fork};
use super::log::{Write, Writes};
use super::store::{CHUNK_BYTES, Chunk, ContentError, Image, Slot, ZEROS, bytes_of};

impl Content {
    /// Writes the content to a new sparse file and syncs it; returns the bytes written. What is written to the disk
    /// meanwhile may be in it or not, so the disk should be idle.
    pub fn save(&self, path: &Path) -> Result<u64, String> {
        self.save_to(path).map_err(|error| format!("cannot save to {}: {error}", path.display()))
    }

    fn save_to(&self, path: &Path) -> io::Result<u64> {
        let chunk = |index| self.lock().store.chunk(index);
        write_sparse(path, self.size_bytes(), |index| {
            chunk(index).map_err(|error| io::Error::other(crate::steer::refusal(error)))
        })
    }

    /// Makes the content that of a saved file; all of it is durable. Returns the bytes read. After an error the content
    /// is partly loaded.
    pub fn load(&self, path: &Path) -> Result<u64, String> {
        let file = open_sparse(path, self.size_bytes())?;
        let failed = |error| crate::steer::refusal(error).to_owned();
        self.clear().map_err(failed)?;
        let store = |index, bytes: &[u8]| self.lock().store.write(index, 0, bytes).map_err(failed);
        let read = read_sparse(&file, self.size_bytes(), store)
            .map_err(|why| format!("cannot load {}: {why}", path.display()));
        let mut inner = self.lock();
        let logged = inner.rebase(&self.usage);
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

/// What is durable, as a sparse file; the data of the writes, one after another; and all else.
const BASE: &str = "base.img";
const WRITES: &str = "writes.bin";
const CUT: &str = "cut.json";

#[derive(Serialize, Deserialize)]
struct SavedCut {
    format: u32,
    size_bytes: u64,
    hold_ns: u64,
    taken: CutRecord,
    writes: Vec<SavedWrite>,
}

#[derive(Serialize, Deserialize)]
struct SavedWrite {
    offset_bytes: u64,
    length_bytes: u64,
    is_discard: bool,
    arrived_ns: u64,
    durable_ns: Option<u64>,
}

const FORMAT: u32 = 1;

impl Content {
    /// Writes a cut to a new folder. The load may go on meanwhile.
    pub fn save_cut(&self, name: &str, folder: &Path) -> Result<(), String> {
        let fork = self.fork(name)?;
        self.save_fork(&fork, folder).map_err(|error| format!("cannot save to {}: {error}", folder.display()))
    }

    fn save_fork(&self, fork: &Fork, folder: &Path) -> io::Result<()> {
        fs::create_dir(folder)?;
        write_sparse(&folder.join(BASE), self.size_bytes(), |index| Ok(fork.base.get(index).clone()))?;
        let mut data = BufWriter::new(create(&folder.join(WRITES))?);
        for write in fork.writes.iter().filter_map(|write| write.data.as_ref()) {
            data.write_all(&write.bytes)?;
        }
        data.into_inner()?.sync_all()?;
        let writes = fork.writes.iter().map(SavedWrite::from_write).collect();
        let (size_bytes, hold_ns, taken) = (self.size_bytes(), fork.hold_ns, fork.taken.clone());
        let mut cut = BufWriter::new(create(&folder.join(CUT))?);
        serde_json::to_writer(&mut cut, &SavedCut { format: FORMAT, size_bytes, hold_ns, taken, writes })?;
        cut.into_inner()?.sync_all()
    }

    /// Makes a cut `name` of a saved one, as if it had been taken on this disk.
    pub fn load_cut(&self, name: &str, folder: &Path) -> Result<(), String> {
        let fork = self.load_fork(name, folder)?;
        let mut inner = self.lock();
        inner.recording.check_free(name)?;
        inner.recording.forks.insert(name.to_owned(), Arc::new(fork));
        Ok(())
    }

    fn load_fork(&self, name: &str, folder: &Path) -> Result<Fork, String> {
        let failed =
            |what: &str, why: &dyn std::fmt::Display| format!("cannot load {}: {why}", folder.join(what).display());
        let cut = File::open(folder.join(CUT)).map_err(|error| failed(CUT, &error))?;
        let cut: SavedCut = serde_json::from_reader(BufReader::new(cut)).map_err(|error| failed(CUT, &error))?;
        if cut.format != FORMAT {
            return Err(failed(CUT, &format!("its format is {}, this program reads {FORMAT}", cut.format)));
        }
        let mut base = Image::empty(self.size_bytes());
        let file = open_sparse(&folder.join(BASE), self.size_bytes())?;
        let room = || self.usage.bytes() + CHUNK_BYTES as u64 <= self.held_bytes_max;
        let store = |index, bytes: &[u8]| {
            let is_stored = base.write(index, 0, bytes, &self.usage, room);
            if is_stored { Ok(()) } else { Err(crate::steer::refusal(ContentError::Full).to_owned()) }
        };
        read_sparse(&file, self.size_bytes(), store).map_err(|why| failed(BASE, &why))?;
        let data = File::open(folder.join(WRITES)).map_err(|error| failed(WRITES, &error))?;
        let mut data = BufReader::new(data);
        let writes = cut.writes.iter().map(|write| self.load_write(write, &mut data));
        let writes = writes.collect::<io::Result<Writes>>().map_err(|error| failed(WRITES, &error))?;
        if data.read(&mut [0]).map_err(|error| failed(WRITES, &error))? != 0 {
            return Err(failed(WRITES, &"it is longer than its writes"));
        }
        Ok(Fork { taken: CutRecord { name: name.to_owned(), ..cut.taken }, base, writes, hold_ns: cut.hold_ns })
    }

    fn load_write(&self, saved: &SavedWrite, data: &mut impl Read) -> io::Result<Write> {
        let SavedWrite { offset_bytes, length_bytes, .. } = *saved;
        if offset_bytes.checked_add(length_bytes).is_none_or(|end| end > self.size_bytes()) {
            return Err(io::Error::other("a write reaches past the end of the disk"));
        }
        let read = |data: &mut dyn Read| {
            let mut bytes = vec![0; length_bytes as usize];
            data.read_exact(&mut bytes)?;
            Ok::<_, io::Error>(Arc::new(Chunk::new(bytes.into(), &self.usage)))
        };
        let data = if saved.is_discard { None } else { Some(read(data)?) };
        Ok(Write::new(offset_bytes, length_bytes, data, saved.arrived_ns, saved.durable_ns))
    }
}

impl SavedWrite {
    fn from_write(write: &Write) -> Self {
        let Write { offset_bytes, length_bytes, arrived_ns, durable_ns, .. } = *write;
        Self { offset_bytes, length_bytes, is_discard: write.data.is_none(), arrived_ns, durable_ns }
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::content::cut_recorder::Survivors;

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

    fn cut_of_all_sorts() -> Content {
        let content = Content::in_memory(SIZE, 8 * SIZE);
        content.set_volatile(true);
        content.write(1000, &vec![1; 30_000]).unwrap();
        content.arm_cuts(1 << 40).unwrap();
        for (at, value) in (2..40).enumerate() {
            content.answered(content.write(at as u64 * 2048, &[value; 4096]).unwrap(), value % 5 == 0);
        }
        content.answered(content.discard(16_384, 20_000).unwrap(), false);
        content.cut("c").unwrap();
        content
    }

    #[test]
    fn a_saved_cut_gives_the_same_bytes_on_another_disk() {
        let (content, folder) = (cut_of_all_sorts(), place("cut-saved"));
        content.save_cut("c", &folder).unwrap();
        let other = Content::in_memory(SIZE, 8 * SIZE);
        other.load_cut("again", &folder).unwrap();
        assert!(other.load_cut("again", &folder).is_err_and(|why| why.contains("already a cut")));
        assert!(content.save_cut("c", &folder).is_err_and(|why| why.contains("exists")));
        for survivors in
            [Survivors::None, Survivors::Random512, Survivors::Versions, Survivors::Requests, Survivors::Lying]
        {
            for seed in 0..5 {
                let survived = content.restore_cut("c", survivors, seed).unwrap();
                assert_eq!(other.restore_cut("again", survivors, seed).unwrap(), survived);
                assert!(all_of(&content) == all_of(&other), "{survivors:?}, seed {seed}");
            }
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_saved_cut_that_is_spoiled_is_refused_by_the_name_of_its_file() {
        let (content, folder) = (cut_of_all_sorts(), place("cut-spoiled"));
        content.save_cut("c", &folder).unwrap();
        let refused = |content: &Content, part: &str| {
            let why = content.load_cut("x", &folder).unwrap_err();
            assert!(why.contains(part), "{why}");
        };
        refused(&Content::in_memory(2 * SIZE, 8 * SIZE), "base.img has 86016 bytes, the disk 172032");
        refused(&Content::in_memory(SIZE, CHUNK_BYTES as u64), "--limit");
        let writes = folder.join(WRITES);
        let data = fs::read(&writes).unwrap();
        fs::write(&writes, &data[1..]).unwrap();
        refused(&content, "writes.bin: failed to fill whole buffer");
        fs::write(&writes, [&data[..], &[0]].concat()).unwrap();
        refused(&content, "writes.bin: it is longer than its writes");
        let cut = fs::read_to_string(folder.join(CUT)).unwrap();
        fs::write(folder.join(CUT), cut.replace("\"format\":1", "\"format\":9")).unwrap();
        refused(&content, "cut.json: its format is 9");
        fs::write(folder.join(CUT), cut.replace("\"length_bytes\":4096", "\"length_bytes\":99999999")).unwrap();
        refused(&content, "past the end");
        fs::remove_dir_all(&folder).unwrap();
        refused(&content, "cut.json: No such file");
    }
}
