//! States after a power cut that are taken while the load goes on, and the content of one of them.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::log::Log;
use super::recorder::{CutRecord, Fork, Recorder, Recording, Trigger};
use super::store::ContentError;
use super::survivors::{Draw, Survived, Survivors};
use super::{Content, Inner};
use crate::process::monotonic_ns;

impl Content {
    /// Begins to record writes, so that cuts can be taken; what was written so far counts as durable. A write that is
    /// durable is kept `hold_ns` longer. Refused for content in a file; the error is for people. If it is armed already,
    /// only `hold_ns` changes.
    pub fn arm_cuts(&self, hold_ns: u64) -> Result<(), String> {
        let mut inner = self.lock();
        let Inner { store, recording, volatile, .. } = &mut *inner;
        if let Some(recorder) = &mut recording.recorder {
            recorder.log.hold_ns = hold_ns;
            return Ok(());
        }
        let image = store.image().ok_or("cuts need content in memory; attach the disk without --content")?;
        let log = Log::new(image, recording.next + 1, hold_ns, *volatile, self.held.clone());
        recording.recorder = Some(Recorder::new(log));
        Ok(())
    }

    /// Has another disk, known by its control socket, take each cut too. The disks must stand in line, not in a circle.
    pub fn cut_with(&self, next: Option<PathBuf>) {
        if let Some(recorder) = &mut self.lock().recording.recorder {
            recorder.next = next;
        }
    }

    /// Ends the recording; the cuts that were taken stay, those that still wait are forgotten.
    pub fn disarm_cuts(&self) {
        let mut inner = self.lock();
        let recorder = inner.recording.recorder.take();
        if let Some(recorder) = &recorder {
            inner.recording.next = recorder.log.after();
        }
        drop(inner);
        drop(recorder);
    }

    /// Takes the state that a power cut now would find.
    pub fn cut(&self, name: &str) -> Result<CutRecord, String> {
        let mut inner = self.lock();
        let fork = inner.recording.for_cut(name)?.cut(name, monotonic_ns);
        let taken = fork.taken.clone();
        inner.recording.forks.insert(name.to_owned(), fork);
        Ok(taken)
    }

    /// Has the disk take a cut by itself.
    pub fn cut_on(&self, trigger: Trigger) -> Result<(), String> {
        let trigger = trigger.checked()?;
        self.lock().recording.for_cut(&trigger.name)?.triggers.push(trigger);
        Ok(())
    }

    /// The cuts that were taken, by time.
    pub fn cuts(&self) -> Vec<CutRecord> {
        let mut taken: Vec<CutRecord> = self.lock().recording.forks.values().map(|fork| fork.taken.clone()).collect();
        taken.sort_by_key(|taken| taken.cut_ns);
        taken
    }

    /// Makes the live content that of a cut, with survivors drawn by `seed`. All of it is durable, and the cut stays. The
    /// same cut, survivors and seed give the same bytes.
    pub fn restore_cut(&self, name: &str, survivors: Survivors, seed: u64) -> Result<Survived, String> {
        let fork = self.fork(name)?;
        let mut image = fork.base.clone();
        let draw = Draw::new(&fork.writes, survivors, fork.moment(), seed);
        let failed = |error: ContentError| crate::steer::refusal(error).to_owned();
        let survived = draw.apply(&mut image, &self.held, self.held_bytes_max).map_err(failed)?;
        self.replace(|store| store.set_image(image)).map_err(failed)?;
        Ok(survived)
    }

    /// Forgets a cut, or one that is still to be taken.
    pub fn forget_cut(&self, name: &str) -> Result<(), String> {
        let mut inner = self.lock();
        let fork = inner.recording.forks.remove(name);
        let waited = inner.recording.recorder.as_mut().is_some_and(|recorder| recorder.forget(name));
        drop(inner);
        if fork.is_some() || waited { Ok(()) } else { Err(self.unknown_cut(name)) }
    }

    /// Forgets all cuts, and those that are still to be taken.
    pub fn forget_cuts(&self) {
        let mut inner = self.lock();
        let forks = std::mem::take(&mut inner.recording.forks);
        if let Some(recorder) = &mut inner.recording.recorder {
            recorder.forget_all();
        }
        drop(inner);
        drop(forks);
    }

    /// What is recorded, in numbers.
    pub fn cuts_json(&self) -> Value {
        let inner = self.lock();
        let Recording { recorder, forks, .. } = &inner.recording;
        let Some(Recorder { log, triggers, .. }) = recorder else {
            return json!({"armed": false, "taken": forks.len()});
        };
        json!({
            "armed": true,
            "taken": forks.len(),
            "waiting": triggers.len(),
            "hold_ns": log.hold_ns,
            "logged_bytes": log.logged_bytes(),
            "unflushed": log.at_risk,
            "unflushed_peak": log.peak,
            "limit_reached": log.is_limited(monotonic_ns()),
        })
    }

    pub(super) fn fork(&self, name: &str) -> Result<Arc<Fork>, String> {
        let fork = self.lock().recording.forks.get(name).map(Arc::clone);
        fork.ok_or_else(|| self.unknown_cut(name))
    }

    fn unknown_cut(&self, name: &str) -> String {
        let known: Vec<String> = self.lock().recording.forks.keys().cloned().collect();
        let known = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
        format!("there is no cut {name:?}; there are: {known}")
    }
}
