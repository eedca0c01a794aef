//! What a drive is asked: a model that notes it on the way.

use std::sync::{Arc, Mutex, PoisonError};

use dbdyno_device::{Command, Completion, DeviceModel, FastCache, Kind, WriteCache};

use super::sample::Sampling;
use super::seeks::Seeks;
use super::spec::Model;

/// What was noted.
#[derive(Debug)]
pub(super) struct Noted {
    pub seeks: Seeks,
    pub sampling: Sampling,
    /// Commands before this time do not count.
    pub from_ns: u64,
    pub commands: u64,
}

/// Shared with the model, which the layer owns.
pub(super) type Notes = Arc<Mutex<Noted>>;

struct NotedModel {
    model: Model,
    notes: Notes,
}

/// A model that notes its commands.
pub(super) fn noted(model: Model, notes: &Notes) -> Model {
    Box::new(NotedModel { model, notes: Arc::clone(notes) })
}

impl Noted {
    fn add(&mut self, now_ns: u64, command: &Command) {
        if now_ns < self.from_ns || !matches!(command.kind, Kind::Read | Kind::Write) {
            return;
        }
        let start_sector = command.offset_bytes / 512;
        self.commands += 1;
        self.seeks.add(start_sector, start_sector + command.length_bytes / 512);
        self.sampling.add(now_ns, start_sector, command.kind == Kind::Write);
    }
}

impl DeviceModel for NotedModel {
    fn submit(&mut self, now_ns: u64, command: Command) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).add(now_ns, &command);
        self.model.submit(now_ns, command);
    }

    fn next_due(&self) -> Option<u64> {
        self.model.next_due()
    }

    fn poll(&mut self, now_ns: u64, finished: &mut Vec<Completion>) {
        self.model.poll(now_ns, finished);
    }

    fn take_certain(&mut self, finished: &mut Vec<Completion>) {
        self.model.take_certain(finished);
    }

    fn write_cache(&self) -> WriteCache {
        self.model.write_cache()
    }

    fn ignores_flush(&self) -> bool {
        self.model.ignores_flush()
    }

    fn fast_cache(&self) -> Option<FastCache> {
        self.model.fast_cache()
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.model.gauges()
    }
}
