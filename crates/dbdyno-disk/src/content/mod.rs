//! What is on the disk: in memory or in a file, with snapshots, and with what a power cut would take.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dbdyno_common::random::Random;
use store::Store;

use self::cut_recorder::Recording;
use self::power_cut::Unflushed;
use self::store::{CHUNK_BYTES, Usage, ZEROS, bytes_of, parts, sectors, split};

mod cut_recorder;
mod cuts;
mod log;
mod power_cut;
mod saved;
mod store;

pub use self::cut_recorder::{Survivors, Ticket};
pub use self::power_cut::Lost;
pub use cut_recorder::{CutOn, Trigger};
pub use store::ContentError;

struct Inner {
    store: Box<dyn Store>,
    unflushed: Unflushed,
    recording: Recording,
    /// Whether a power cut takes what was not flushed; else nothing need be remembered.
    volatile: bool,
    /// Whether a FLUSH is acknowledged and makes nothing durable.
    flush_ignored: bool,
    powered: bool,
    /// The first FLUSH that arrived after the last power cut; an earlier one cannot make anything durable.
    sealed_min: u64,
}

impl Inner {
    /// All that is there counts as durable for cuts to come. Returned so that memory is given back outside any lock.
    fn rebase(&mut self, usage: &Usage) -> Option<log::Log> {
        self.recording.rebase(self.store.as_ref(), self.volatile, usage)
    }
}

/// The content of one disk. Ranges are in bytes; what was never written reads as zeros.
pub struct Content {
    size_bytes: u64,
    held_bytes_max: u64,
    usage: Usage,
    /// The content file, read without the lock.
    file: Option<Arc<File>>,
    inner: Mutex<Inner>,
}

thread_local! {
    /// Where a read of several chunks is put together, one for each replying thread.
    static GATHERED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Content {
    /// A disk of `size_bytes` in memory that holds at most `held_bytes_max`, snapshots included.
    pub fn in_memory(size_bytes: u64, held_bytes_max: u64) -> Self {
        let usage = Usage::default();
        let store = store::Memory::new(size_bytes, held_bytes_max, usage.clone());
        Self::new(size_bytes, held_bytes_max, usage, None, Box::new(store))
    }

    /// A disk in a sparse file, which is made if need be. `held_bytes_max` is for the file and the memory that
    /// snapshots take. The error is for people.
    pub fn in_file(path: &Path, size_bytes: u64, held_bytes_max: u64) -> Result<Self, String> {
        let usage = Usage::default();
        let store = store::InFile::open(path, size_bytes, held_bytes_max, usage.clone())?;
        let file = store.file();
        Ok(Self::new(size_bytes, held_bytes_max, usage, Some(file), Box::new(store)))
    }

    fn new(size_bytes: u64, held_bytes_max: u64, usage: Usage, file: Option<Arc<File>>, store: Box<dyn Store>) -> Self {
        let inner = Inner {
            store,
            unflushed: Unflushed::new(),
            recording: Recording::default(),
            volatile: false,
            flush_ignored: false,
            powered: true,
            sealed_min: 0,
        };
        Self { size_bytes, held_bytes_max, usage, file, inner: Mutex::new(inner) }
    }

    /// Size of the disk.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// What may be held.
    pub fn held_bytes_max(&self) -> u64 {
        self.held_bytes_max
    }

    /// What the live content, all snapshots and what a power cut needs hold together, in memory and file.
    pub fn held_bytes(&self) -> u64 {
        self.usage.bytes()
    }

    /// Bytes of the live content that are not holes.
    pub fn live_bytes(&self) -> u64 {
        self.lock().store.live_chunks() * CHUNK_BYTES as u64
    }

    /// Bytes of the chunks in which something is unflushed.
    pub fn unflushed_bytes(&self) -> u64 {
        (self.lock().unflushed.chunks() * CHUNK_BYTES) as u64
    }

    /// Calls `then` with the bytes of a range, cut at the end of the disk. No lock is held meanwhile, and within one
    /// chunk of memory nothing is copied.
    pub fn read<R>(&self, offset: u64, length: usize, then: impl FnOnce(Result<&[u8], ContentError>) -> R) -> R {
        let start = offset.min(self.size_bytes);
        let length = length.min((self.size_bytes - start) as usize);
        let (index, within) = split(start);
        if self.file.is_none() && within + length <= CHUNK_BYTES {
            let chunk = self.lock().store.chunk(index);
            return then(chunk.as_ref().map(|chunk| &bytes_of(chunk)[within..within + length]).map_err(|error| *error));
        }
        GATHERED.with_borrow_mut(|gathered| {
            let outcome = self.gather(start, length, gathered);
            then(outcome.map(|()| gathered.as_slice()))
        })
    }

    fn gather(&self, start: u64, length: usize, gathered: &mut Vec<u8>) -> Result<(), ContentError> {
        gathered.clear();
        if let Some(file) = &self.file {
            gathered.resize(length, 0);
            return Ok(file.read_exact_at(gathered, start)?);
        }
        for (index, within, part) in parts(start, length) {
            let chunk = self.lock().store.chunk(index)?;
            gathered.extend_from_slice(&bytes_of(&chunk)[within..within + part]);
        }
        Ok(())
    }

    /// Writes; returns what to give [`Content::answered`]. The lock is taken chunk by chunk, so that a long write does
    /// not hold up short reads; with concurrent writes to the same range either may win in each chunk, as on a real
    /// disk.
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<Ticket, ContentError> {
        if offset.checked_add(data.len() as u64).is_none_or(|end| end > self.size_bytes) {
            return Err(ContentError::PastEnd);
        }
        let (mut ticket, mut at, mut rest) = (Ticket::default(), offset, data);
        for (index, within, part) in parts(offset, data.len()) {
            let left = (rest.len() as u64, Some(rest));
            let bytes = &rest[..part];
            self.change((at, left), part, &mut ticket, |store| store.write(index, within, bytes))?;
            at += part as u64;
            rest = &rest[part..];
        }
        Ok(ticket)
    }

    /// Makes a range read as zeros; returns what to give [`Content::answered`]. Whole chunks give their room back.
    pub fn discard(&self, offset: u64, length: u64) -> Result<Ticket, ContentError> {
        let start = offset.min(self.size_bytes);
        let end = start + length.min(self.size_bytes - start);
        let (mut ticket, mut at) = (Ticket::default(), start);
        while at < end {
            let (index, within) = split(at);
            let part = (CHUNK_BYTES - within).min((end - at) as usize);
            self.change((at, (end - at, None)), part, &mut ticket, |store| match store.chunk(index)? {
                None => Ok(()),
                Some(_) if part == CHUNK_BYTES => store.put(index, None),
                Some(_) => store.write(index, within, &ZEROS[..part]),
            })?;
            at += part as u64;
        }
        Ok(ticket)
    }

    /// Changes a part of one chunk, and remembers what was there if a power cut may take the change. What is remembered
    /// yields to new content where room is short. `left` is where the part begins, and what of its write is still to be
    /// made: bytes, and data but of a discard.
    fn change(
        &self,
        left: (u64, (u64, Option<&[u8]>)),
        length: usize,
        ticket: &mut Ticket,
        how: impl Fn(&mut dyn Store) -> Result<(), ContentError>,
    ) -> Result<(), ContentError> {
        let (offset, rest) = left;
        let (index, within) = split(offset);
        let mut inner = self.lock();
        let Inner { store, unflushed, recording, volatile, powered, .. } = &mut *inner;
        if !*powered {
            return Err(ContentError::Off);
        }
        let durable =
            if *volatile { unflushed.note(index, sectors(within, length), || store.chunk(index))? } else { None };
        recording.arrived(&mut ticket.logged, offset, rest, store.as_ref());
        let mut outcome = how(store.as_mut());
        while outcome == Err(ContentError::Full) && (unflushed.destage().is_some() || recording.destage(store.as_ref()))
        {
            outcome = how(store.as_mut());
        }
        if outcome.is_err() {
            recording.answered(ticket.logged, false, store.as_ref());
        }
        drop(inner);
        drop(durable);
        outcome
    }

    /// A write or discard is about to be answered, `forced` if that makes it durable on any drive.
    pub fn answered(&self, ticket: Ticket, forced: bool) {
        if ticket.logged != 0 {
            let mut inner = self.lock();
            let Inner { store, recording, .. } = &mut *inner;
            recording.answered(ticket.logged, forced, store.as_ref());
        }
    }

    /// Says whether a power cut takes what is not flushed. What was written so far counts as durable.
    pub fn set_volatile(&self, volatile: bool) {
        let mut inner = self.lock();
        inner.volatile = volatile;
        let durable = (inner.unflushed.forget(), inner.rebase(&self.usage));
        drop(inner);
        drop(durable);
    }

    /// Sets whether FLUSH is ignored: acknowledged without making anything durable.
    pub fn set_flush_ignored(&self, ignored: bool) {
        self.lock().flush_ignored = ignored;
    }

    /// A FLUSH has arrived; returns what to give [`Content::flushed`] when it completes.
    pub fn seal(&self) -> Ticket {
        let mut inner = self.lock();
        let layer = if inner.flush_ignored { inner.unflushed.latest() } else { inner.unflushed.seal() };
        Ticket { layer, logged: inner.recording.flush_arrived() }
    }

    /// A FLUSH is about to be answered; false if the power was cut meanwhile, so that it must not be acknowledged.
    pub fn flushed(&self, sealed: Ticket) -> bool {
        let mut inner = self.lock();
        if sealed.layer < inner.sealed_min {
            return false;
        }
        let Inner { store, unflushed, recording, flush_ignored, .. } = &mut *inner;
        recording.flushed(sealed.logged, *flush_ignored, store.as_ref());
        if *flush_ignored {
            return true;
        }
        let durable = unflushed.flushed(sealed.layer);
        drop(inner);
        drop(durable);
        true
    }

    /// A FLUSH is about to fail.
    pub fn flush_failed(&self, sealed: Ticket) {
        let mut inner = self.lock();
        let Inner { store, recording, .. } = &mut *inner;
        recording.flushed(sealed.logged, true, store.as_ref());
    }

    /// A forced write has completed; false if the power is off, so that it must not be acknowledged.
    pub fn forced(&self, offset: u64, length: usize) -> Result<(), ContentError> {
        for (index, within, part) in parts(offset, length) {
            let mut inner = self.lock();
            let Inner { store, unflushed, powered, .. } = &mut *inner;
            if !*powered {
                return Err(ContentError::Off);
            }
            unflushed.forced(index, within, part, &store.chunk(index)?, &self.usage);
        }
        Ok(())
    }

    /// Cuts the power: a random subset of the unflushed sectors is lost, and nothing is written until
    /// [`Content::power_on`]. `sector_bytes` divides a chunk and is a multiple of 512.
    pub fn power_cut(&self, seed: u64, sector_bytes: usize) -> Result<Lost, ContentError> {
        let mut inner = self.lock();
        let Inner { store, unflushed, powered, sealed_min, .. } = &mut *inner;
        *powered = false;
        let lost = unflushed.cut(&mut Random::new(seed), sector_bytes, store.as_mut(), &self.usage);
        *sealed_min = unflushed.seal();
        let logged = inner.rebase(&self.usage);
        drop(inner);
        drop(logged);
        lost
    }

    /// Lets content change again.
    pub fn power_on(&self) {
        self.lock().powered = true;
    }

    /// Keeps the content of now under `name`, instead of what was there under that name.
    pub fn snapshot(&self, name: &str) {
        self.lock().store.snapshot(name);
    }

    /// Makes the live content that of a snapshot; false if there is none of that name. All of it is durable.
    pub fn restore(&self, name: &str) -> Result<bool, ContentError> {
        self.replace(|store| store.restore(name))
    }

    /// Empties the live content. Snapshots stay.
    pub fn clear(&self) -> Result<(), ContentError> {
        self.replace(|store| store.clear())
    }

    fn replace<R>(&self, how: impl FnOnce(&mut dyn Store) -> Result<R, ContentError>) -> Result<R, ContentError> {
        let mut inner = self.lock();
        let outcome = how(inner.store.as_mut());
        let durable = (inner.unflushed.forget(), inner.rebase(&self.usage));
        drop(inner);
        drop(durable);
        outcome
    }

    /// Forgets a snapshot; false if there is none of that name.
    pub fn forget(&self, name: &str) -> bool {
        self.lock().store.forget(name)
    }

    /// The names of the snapshots.
    pub fn snapshots(&self) -> Vec<String> {
        self.lock().store.snapshots()
    }

    /// A thread that panicked while holding the lock left at most a half-written chunk, as a failing disk would.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 64 << 20;

    fn bytes(content: &Content, offset: u64, length: usize) -> Vec<u8> {
        content.read(offset, length, |data| data.unwrap().to_vec())
    }

    #[test]
    fn unwritten_reads_as_zeros_and_the_end_cuts() {
        let content = Content::in_memory(SIZE, SIZE);
        assert_eq!(bytes(&content, SIZE - 10, 100), [0; 10]);
        assert!(bytes(&content, SIZE + 10, 100).is_empty());
        assert_eq!(content.write(SIZE - 1, &[1, 2]), Err(ContentError::PastEnd));
        assert_eq!(content.write(u64::MAX, &[1, 2]), Err(ContentError::PastEnd));
    }

    #[test]
    fn a_range_over_several_chunks_comes_back() {
        let content = Content::in_memory(SIZE, SIZE);
        let data: Vec<u8> = (0..100_000_u32).map(|i| (i % 251) as u8).collect();
        content.write(12_345, &data).unwrap();
        assert_eq!(bytes(&content, 12_345, data.len()), data);
        assert_eq!(bytes(&content, 12_344, 2), [0, 0]);
        assert_eq!(content.live_bytes(), 7 * CHUNK_BYTES as u64);
    }

    #[test]
    fn snapshots_share_memory_and_come_back() {
        let content = Content::in_memory(SIZE, SIZE);
        content.write(0, &vec![1; 1 << 20]).unwrap();
        content.snapshot("before");
        assert_eq!(content.held_bytes(), 1 << 20);
        content.write(0, &[2; 4096]).unwrap();
        assert_eq!(content.held_bytes(), (1 << 20) + CHUNK_BYTES as u64);
        assert_eq!((content.restore("before"), content.restore("other")), (Ok(true), Ok(false)));
        assert_eq!(bytes(&content, 0, 4097), vec![1; 4097]);
        assert_eq!(content.held_bytes(), 1 << 20);
        content.clear().unwrap();
        assert_eq!((content.live_bytes(), content.held_bytes()), (0, 1 << 20));
        assert!(content.forget("before"));
        assert_eq!(content.held_bytes(), 0);
    }

    #[test]
    fn discard_frees_whole_chunks_and_zeroes_parts() {
        let content = Content::in_memory(SIZE, SIZE);
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
        let content = Content::in_memory(SIZE, 2 * CHUNK_BYTES as u64);
        content.write(0, &vec![1; 2 * CHUNK_BYTES]).unwrap();
        assert_eq!(content.write(1 << 20, &[1]), Err(ContentError::Full));
        content.write(5, &[9]).unwrap();
        content.snapshot("full");
        assert_eq!(content.write(5, &[8]), Err(ContentError::Full));
        assert_eq!(bytes(&content, 5, 1), [9]);
    }

    /// A content file, removed in the end.
    struct Scratch(std::path::PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("dbdyno-content-{}-{name}", std::process::id())))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    /// In memory and in a file alike.
    fn both(name: &str, held_bytes_max: u64, check: impl Fn(&Content)) {
        check(&Content::in_memory(SIZE, held_bytes_max));
        let file = Scratch::new(name);
        check(&Content::in_file(&file.0, SIZE, held_bytes_max).unwrap());
    }

    #[test]
    fn a_content_file_is_the_disk_and_is_found_again() {
        let file = Scratch::new("again");
        let content = Content::in_file(&file.0, SIZE, SIZE).unwrap();
        content.write(5 << 20, &[7; 5000]).unwrap();
        content.discard((5 << 20) + 4096, 100).unwrap();
        drop(content);
        assert_eq!(std::fs::metadata(&file.0).unwrap().len(), SIZE);
        let content = Content::in_file(&file.0, SIZE, SIZE).unwrap();
        assert_eq!(bytes(&content, (5 << 20) + 4095, 102), [&[7][..], &[0; 100], &[7]].concat());
        assert_eq!(content.live_bytes(), CHUNK_BYTES as u64);
        content.clear().unwrap();
        assert_eq!((content.held_bytes(), bytes(&content, 5 << 20, 1)[0]), (0, 0));
        let refused = Content::in_file(&file.0, SIZE / 2, SIZE).err().unwrap();
        assert!(refused.contains("not a file of 33554432 bytes"), "{refused}");
    }

    #[test]
    fn snapshots_of_a_file_keep_what_is_overwritten() {
        let file = Scratch::new("snapshots");
        let content = Content::in_file(&file.0, SIZE, SIZE).unwrap();
        content.write(0, &vec![1; 100_000]).unwrap();
        content.snapshot("one");
        content.write(50_000, &[2; 100]).unwrap();
        content.snapshot("two");
        content.write(0, &vec![3; 100_000]).unwrap();
        content.write(1 << 20, &[4; 10]).unwrap();
        assert_eq!(content.restore("two"), Ok(true));
        assert_eq!(bytes(&content, 49_999, 102), [&[1][..], &[2; 100], &[1]].concat());
        assert_eq!(bytes(&content, 1 << 20, 10), [0; 10]);
        assert_eq!(content.restore("one"), Ok(true));
        assert_eq!(bytes(&content, 0, 100_000), vec![1; 100_000]);
        assert_eq!(content.restore("two"), Ok(true));
        assert_eq!(bytes(&content, 50_000, 1), [2]);
        assert!(content.forget("one") && content.forget("two"));
        assert_eq!(content.held_bytes(), content.live_bytes());
    }

    #[test]
    fn a_limit_holds_in_a_file_too() {
        both("limit", 2 * CHUNK_BYTES as u64, |content| {
            content.write(0, &vec![1; 2 * CHUNK_BYTES]).unwrap();
            assert_eq!(content.write(1 << 20, &[1]), Err(ContentError::Full));
            content.discard(0, CHUNK_BYTES as u64).unwrap();
            content.write(1 << 20, &[1]).unwrap();
        });
    }

    #[test]
    fn only_what_was_flushed_is_sure_to_survive_a_power_cut() {
        both("cut", SIZE, |content| {
            content.set_volatile(true);
            content.write(0, &vec![1; 40_000]).unwrap();
            let sealed = content.seal();
            content.write(8192, &vec![2; 16_384]).unwrap();
            assert!(content.flushed(sealed));
            let (mut lost_some, mut kept_some, mut torn) = (false, false, false);
            content.snapshot("before");
            for seed in 0..40 {
                content.write(8192, &vec![2; 16_384]).unwrap();
                let counted = content.power_cut(seed, 512).unwrap();
                assert_eq!(content.write(0, &[9]), Err(ContentError::Off));
                content.power_on();
                let after = bytes(content, 0, 40_000);
                for (sector, data) in after.chunks(512).enumerate() {
                    let written = (16..48).contains(&sector);
                    assert!(data.iter().all(|byte| *byte == data[0]), "torn within a sector");
                    assert!(data[0] == 1 || (written && data[0] == 2), "sector {sector} holds {}", data[0]);
                }
                let lost = after[8192..24_576].chunks(512).filter(|sector| sector[0] == 1).count() as u64;
                if seed > 0 {
                    // The first time it is overwritten twice, and so counted in two layers.
                    assert_eq!((counted.unflushed_sectors, counted.lost_sectors), (32, lost), "seed {seed}");
                }
                (lost_some, kept_some) = (lost_some || lost > 0, kept_some || lost < 32);
                torn |= !lost.is_multiple_of(8);
                content.restore("before").unwrap();
                content.write(8192, &vec![1; 16_384]).unwrap();
                content.set_volatile(true);
            }
            assert!(lost_some && kept_some && torn);
        });
    }

    #[test]
    fn a_power_cut_takes_what_an_ignored_flush_left_in_the_cache() {
        both("ignored", SIZE, |content| {
            content.set_volatile(true);
            content.write(0, &vec![1; 40_960]).unwrap();
            assert!(content.flushed(content.seal()));
            content.set_flush_ignored(true);
            for round in 0..100 {
                content.write(round % 10 * 4096, &[2; 4096]).unwrap();
                assert!(content.flushed(content.seal()), "it says that all is well");
            }
            let flushing = content.seal();
            // Some seeds let all survive, this one does not.
            let counted = content.power_cut(4, 4096).unwrap();
            assert!(!content.flushed(flushing), "the power went off before the answer");
            content.power_on();
            assert!(content.flushed(content.seal()));
            let lost = bytes(content, 0, 40_960).chunks(4096).filter(|sector| sector[0] == 1).count() as u64;
            assert_eq!((counted.unflushed_sectors, counted.lost_sectors), (10, lost));
            assert!(lost > 0, "another seed");
        });
    }

    #[test]
    fn a_larger_sector_is_lost_as_a_whole() {
        let content = Content::in_memory(SIZE, SIZE);
        content.set_volatile(true);
        content.write(4096, &vec![5; 100 * 4096]).unwrap();
        let counted = content.power_cut(3, 4096).unwrap();
        assert_eq!(counted.unflushed_sectors, 100);
        let after = bytes(&content, 4096, 100 * 4096);
        assert!(after.chunks(4096).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
        assert_eq!(after.chunks(4096).filter(|sector| sector[0] == 0).count() as u64, counted.lost_sectors);
    }

    #[test]
    fn the_same_seed_loses_the_same_sectors() {
        let lost = |seed| {
            let content = Content::in_memory(SIZE, SIZE);
            content.set_volatile(true);
            content.write(0, &vec![1; 1 << 20]).unwrap();
            content.power_cut(seed, 512).unwrap();
            bytes(&content, 0, 1 << 20)
        };
        assert_eq!(lost(1), lost(1));
        assert_ne!(lost(1), lost(2));
    }

    #[test]
    fn a_drive_without_a_volatile_cache_loses_nothing() {
        let content = Content::in_memory(SIZE, SIZE);
        content.write(0, &vec![1; 1 << 20]).unwrap();
        assert_eq!(content.power_cut(1, 512).unwrap(), Lost::default());
        assert_eq!(bytes(&content, 0, 1 << 20), vec![1; 1 << 20]);
    }

    #[test]
    fn a_forced_write_survives_and_a_later_one_goes_back_to_it() {
        for seed in 0..20 {
            let content = Content::in_memory(SIZE, SIZE);
            content.set_volatile(true);
            content.write(0, &[1; 8192]).unwrap();
            content.write(512, &[2; 512]).unwrap();
            content.forced(512, 512).unwrap();
            content.write(512, &[3; 512]).unwrap();
            content.power_cut(seed, 512).unwrap();
            assert!([2, 3].contains(&bytes(&content, 512, 1)[0]), "the forced write is gone");
        }
    }

    #[test]
    fn a_flush_that_completes_after_the_cut_is_not_acknowledged() {
        let content = Content::in_memory(SIZE, SIZE);
        content.set_volatile(true);
        content.write(0, &[1; 4096]).unwrap();
        let sealed = content.seal();
        content.power_cut(1, 512).unwrap();
        content.power_on();
        assert!(!content.flushed(sealed));
        assert!(content.flushed(content.seal()));
        assert_eq!(content.forced(0, 512), Ok(()));
    }

    #[test]
    fn what_a_cut_might_take_yields_to_new_content() {
        let content = Content::in_memory(SIZE, 3 * CHUNK_BYTES as u64);
        content.set_volatile(true);
        content.write(0, &vec![1; 3 * CHUNK_BYTES]).unwrap();
        assert!(content.flushed(content.seal()));
        for round in 2..6 {
            content.write(0, &vec![round; 3 * CHUNK_BYTES]).unwrap();
        }
        assert_eq!(bytes(&content, 0, 3 * CHUNK_BYTES), vec![5; 3 * CHUNK_BYTES]);
        assert!(content.held_bytes() <= 3 * CHUNK_BYTES as u64);
    }

    #[test]
    fn a_cache_is_finite() {
        let content = Content::in_memory(1 << 30, 1 << 30);
        content.set_volatile(true);
        for chunk in 0..20_000 {
            content.write(chunk * CHUNK_BYTES as u64, &[1; 512]).unwrap();
        }
        assert_eq!(content.unflushed_bytes(), 128 << 20);
        let counted = content.power_cut(1, 512).unwrap();
        assert_eq!(counted.unflushed_sectors, 8192);
    }

    proptest::proptest! {
        /// After any writes, discards and flushes, a cut leaves each sector with one of the contents it had since it
        /// was last durable.
        #[test]
        fn a_sector_never_goes_back_behind_its_last_flush(
            steps in proptest::collection::vec((0_u8..6, 0_usize..64, 1_usize..40), 1..60),
            seed: u64,
        ) {
            let content = Content::in_memory(SIZE, SIZE);
            content.set_volatile(true);
            let mut possible: Vec<Vec<u8>> = vec![vec![0]; 128];
            for (round, (what, sector, length)) in (1..).zip(steps) {
                let (offset, range) = (sector as u64 * 512, sector..sector + length);
                match what {
                    0 => {
                        assert!(content.flushed(content.seal()));
                        for states in &mut possible { states.drain(..states.len() - 1); }
                    }
                    1 => {
                        content.discard(offset, length as u64 * 512).unwrap();
                        for states in &mut possible[range] { states.push(0); }
                    }
                    2 => {
                        content.write(offset, &vec![round; length * 512]).unwrap();
                        content.forced(offset, length * 512).unwrap();
                        for states in &mut possible[range] { *states = vec![round]; }
                    }
                    _ => {
                        content.write(offset, &vec![round; length * 512]).unwrap();
                        for states in &mut possible[range] { states.push(round); }
                    }
                }
            }
            content.power_cut(seed, 512).unwrap();
            for (sector, states) in possible.iter().enumerate() {
                let read = bytes(&content, sector as u64 * 512, 512);
                assert!(read.iter().all(|byte| *byte == read[0]) && states.contains(&read[0]), "sector {sector}");
            }
        }
    }
}
