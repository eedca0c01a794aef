//! A drive model that is asked in virtual time.

use std::collections::HashMap;

use dbdyno_common::random::Random;
use dbdyno_device::{Command, Completion, DeviceModel, Kind};

use super::bench::{Answer, Bench, Load, Loaded};
use crate::error::DiskError;

pub struct ModelBench {
    model: Box<dyn DeviceModel + Send>,
    size_bytes: u64,
    may_write: bool,
    now_ns: u64,
    next_id: u64,
    finished: Vec<Completion>,
}

impl ModelBench {
    pub fn new(model: Box<dyn DeviceModel + Send>, size_bytes: u64, may_write: bool) -> Self {
        Self { model, size_bytes, may_write, now_ns: 0, next_id: 0, finished: Vec::new() }
    }

    fn submit(&mut self, kind: Kind, offset_bytes: u64, length_bytes: u64) -> u64 {
        self.next_id += 1;
        self.model.submit(self.now_ns, Command { id: self.next_id, kind, offset_bytes, length_bytes, fua: false });
        self.next_id
    }

    /// Goes on to the next completions; there are none only if nothing is outstanding.
    fn wait(&mut self) -> Vec<Completion> {
        while self.finished.is_empty() {
            let Some(due_ns) = self.model.next_due() else { break };
            self.now_ns = self.now_ns.max(due_ns);
            self.model.poll(self.now_ns, &mut self.finished);
        }
        std::mem::take(&mut self.finished)
    }
}

impl Bench for ModelBench {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn may_write(&self) -> bool {
        self.may_write
    }

    fn ask(&mut self, kind: Kind, offset_bytes: u64, bytes: u64) -> Result<Answer, DiskError> {
        let sent_ns = self.now_ns;
        self.submit(kind, offset_bytes, bytes);
        let done_ns = self.wait().first().map_or(self.now_ns, |completion| completion.at_ns);
        Ok(Answer { sent_ns, done_ns })
    }

    fn load(&mut self, load: &Load) -> Result<Loaded, DiskError> {
        let (began_ns, mut random) = (self.now_ns, Random::new(load.seed));
        let (mut sent, mut since) = (0, HashMap::new());
        let mut loaded = Loaded::default();
        loop {
            let more = sent < load.requests && self.now_ns - began_ns < load.limit_ns;
            while more && sent < load.requests && (since.len() as u64) < load.depth {
                let id = self.submit(load.kind, load.place(sent, &mut random), load.bytes);
                since.insert(id, self.now_ns);
                sent += 1;
            }
            if since.is_empty() {
                break;
            }
            for completion in self.wait() {
                if let Some(sent_ns) = since.remove(&completion.id) {
                    loaded.latencies_ns.push((completion.at_ns - sent_ns) as f64);
                }
            }
        }
        loaded.elapsed_ns = self.now_ns - began_ns;
        Ok(loaded)
    }

    fn pause(&mut self, ns: u64) {
        self.now_ns += ns;
        self.model.poll(self.now_ns, &mut self.finished);
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }
}
