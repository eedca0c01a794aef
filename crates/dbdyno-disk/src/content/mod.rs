//! What is on the disk: in memory or in a file, with snapshots, and with what a power cut would take.

mod chunk;
#[cfg(test)]
mod cut_tests;
mod cuts;
mod file;
mod image;
mod log;
mod memory;
mod recorder;
mod recording;
mod saved;
mod saved_cut;
mod store;
mod survivors;
#[cfg(test)]
mod tests;
mod unflushed;
mod writes;

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chunk::{CHUNK_BYTES, Held, ZEROS, bytes_of, parts, sectors, split};
use dbdyno_common::random::Random;
pub use recorder::{CutOn, Trigger};
use recording::Recording;
pub use recording::Ticket;
pub use store::ContentError;
use store::Store;
pub use survivors::Survivors;
pub use unflushed::Lost;
use unflushed::Unflushed;

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
    fn rebase(&mut self, held: &Held) -> Option<log::Log> {
        self.recording.rebase(self.store.as_ref(), self.volatile, held)
    }
}

/// The content of one disk. Ranges are in bytes; what was never written reads as zeros.
pub struct Content {
    size_bytes: u64,
    held_bytes_max: u64,
    held: Held,
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
        let held = Held::default();
        let store = memory::Memory::new(size_bytes, held_bytes_max, held.clone());
        Self::new(size_bytes, held_bytes_max, held, None, Box::new(store))
    }

    /// A disk in a sparse file, which is made if need be. `held_bytes_max` is for the file and the memory that snapshots
    /// take. The error is for people.
    pub fn in_file(path: &Path, size_bytes: u64, held_bytes_max: u64) -> Result<Self, String> {
        let held = Held::default();
        let store = file::InFile::open(path, size_bytes, held_bytes_max, held.clone())?;
        let file = store.file();
        Ok(Self::new(size_bytes, held_bytes_max, held, Some(file), Box::new(store)))
    }

    fn new(size_bytes: u64, held_bytes_max: u64, held: Held, file: Option<Arc<File>>, store: Box<dyn Store>) -> Self {
        let inner = Inner {
            store,
            unflushed: Unflushed::new(),
            recording: Recording::default(),
            volatile: false,
            flush_ignored: false,
            powered: true,
            sealed_min: 0,
        };
        Self { size_bytes, held_bytes_max, held, file, inner: Mutex::new(inner) }
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
        self.held.bytes()
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

    /// Writes; returns what to give [`Content::answered`]. The lock is taken chunk by chunk, so that a long write does not
    /// hold up short reads; with concurrent writes to the same range either may win in each chunk, as on a real disk.
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
        let durable = (inner.unflushed.forget(), inner.rebase(&self.held));
        drop(inner);
        drop(durable);
    }

    /// Says whether FLUSH is ignored from now on: acknowledged, and nothing is durable for it.
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
            unflushed.forced(index, within, part, &store.chunk(index)?, &self.held);
        }
        Ok(())
    }

    /// Cuts the power: a random subset of the unflushed sectors is lost, and nothing is written until
    /// [`Content::power_on`]. `sector_bytes` divides a chunk and is a multiple of 512.
    pub fn power_cut(&self, seed: u64, sector_bytes: usize) -> Result<Lost, ContentError> {
        let mut inner = self.lock();
        let Inner { store, unflushed, powered, sealed_min, .. } = &mut *inner;
        *powered = false;
        let lost = unflushed.cut(&mut Random::new(seed), sector_bytes, store.as_mut(), &self.held);
        *sealed_min = unflushed.seal();
        let logged = inner.rebase(&self.held);
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
        let durable = (inner.unflushed.forget(), inner.rebase(&self.held));
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
