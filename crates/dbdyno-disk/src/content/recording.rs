//! What a content records for cuts, and the cuts that were taken.

use super::chunk::Held;
use super::log::Log;
use super::recorder::{Forks, Recorder};
use super::store::Store;
use crate::process::monotonic_ns;

/// A write or a FLUSH, to be given back when it is about to be answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ticket {
    /// Of a FLUSH: the layer that it seals.
    pub layer: u64,
    /// Its number in the log; 0 if there is none.
    pub logged: u64,
}

/// What is recorded, and the cuts that were taken.
#[derive(Default)]
pub struct Recording {
    pub recorder: Option<Recorder>,
    pub forks: Forks,
    /// Where the numbers of the next log may begin.
    pub next: u64,
}

impl Recording {
    /// A part of a write is about to be made: `rest` is what has not been made yet. Logged unless it already was.
    pub fn arrived(&mut self, logged: &mut u64, offset_bytes: u64, rest: (u64, Option<&[u8]>), live: &dyn Store) {
        let Some(recorder) = &mut self.recorder else { return };
        if recorder.log.knows(*logged) {
            return;
        }
        *logged = recorder.log.arrived(monotonic_ns(), offset_bytes, rest, live);
        for name in recorder.at_write() {
            self.forks.insert(name.clone(), recorder.cut(&name, monotonic_ns));
        }
    }

    /// Gives room back to new content; false if there is none to give.
    pub fn destage(&mut self, live: &dyn Store) -> bool {
        self.recorder.as_mut().is_some_and(|recorder| recorder.log.destage(monotonic_ns(), live))
    }

    /// A write is about to be answered.
    pub fn answered(&mut self, logged: u64, forced: bool, live: &dyn Store) {
        if let Some(recorder) = &mut self.recorder {
            recorder.log.answered(monotonic_ns(), logged, forced, live);
        }
    }

    /// A FLUSH has arrived; returns its number in the log.
    pub fn flush_arrived(&mut self) -> u64 {
        let Some(recorder) = &mut self.recorder else { return 0 };
        let flush = recorder.log.flush_arrived();
        for name in recorder.at_flush(flush) {
            self.forks.insert(name.clone(), recorder.cut(&name, monotonic_ns));
        }
        flush
    }

    /// A FLUSH is about to be answered.
    pub fn flushed(&mut self, flush: u64, ignored: bool, live: &dyn Store) {
        let Some(recorder) = &mut self.recorder else { return };
        for name in recorder.before_completion(flush) {
            self.forks.insert(name.clone(), recorder.cut(&name, monotonic_ns));
        }
        recorder.log.flushed(monotonic_ns(), flush, ignored, live);
    }

    /// All of the live content counts as durable from now on. Returns what was logged, to be dropped outside any lock.
    #[must_use]
    pub fn rebase(&mut self, live: &dyn Store, volatile: bool, held: &Held) -> Option<Log> {
        let recorder = self.recorder.as_mut()?;
        let image = live.image()?;
        let fresh = Log::new(image, recorder.log.after(), recorder.log.hold_ns, volatile, held.clone());
        let mut before = std::mem::replace(&mut recorder.log, fresh);
        recorder.log.peak = before.peak;
        before.hold_ns = 0;
        Some(before)
    }

    /// Refuses the name of a cut that was taken, or is still to be.
    pub fn check_free(&self, name: &str) -> Result<(), String> {
        if self.forks.contains_key(name) || self.recorder.as_ref().is_some_and(|recorder| recorder.awaits(name)) {
            return Err(format!("there is already a cut {name:?}; forget it or choose another name"));
        }
        Ok(())
    }

    /// The recorder, for a cut of a name that is free.
    pub fn for_cut(&mut self, name: &str) -> Result<&mut Recorder, String> {
        self.check_free(name)?;
        self.recorder.as_mut().ok_or_else(|| "the disk is not armed; arm it with cuts-arm before the load".to_owned())
    }
}
