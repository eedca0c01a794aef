//! A drive model with a clock of its own, which goes on to whatever happens next.

use dbdyno_device::{Command, Completion, DeviceModel, Kind};

pub struct VirtualDrive {
    model: Box<dyn DeviceModel + Send>,
    now_ns: u64,
    next_id: u64,
    finished: Vec<Completion>,
}

impl VirtualDrive {
    pub fn new(model: Box<dyn DeviceModel + Send>) -> Self {
        Self { model, now_ns: 0, next_id: 0, finished: Vec::new() }
    }

    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Submits a command now; returns its number.
    pub fn submit(&mut self, kind: Kind, offset_bytes: u64, length_bytes: u64) -> u64 {
        self.next_id += 1;
        self.model.submit(self.now_ns, Command { id: self.next_id, kind, offset_bytes, length_bytes, fua: false });
        self.next_id
    }

    /// Goes on to the next completions; there are none only if nothing is outstanding.
    pub fn wait(&mut self) -> Vec<Completion> {
        while self.finished.is_empty() {
            let Some(due_ns) = self.model.next_due() else { break };
            self.now_ns = self.now_ns.max(due_ns);
            self.model.poll(self.now_ns, &mut self.finished);
        }
        std::mem::take(&mut self.finished)
    }

    /// Lets time pass.
    pub fn pause(&mut self, ns: u64) {
        self.now_ns += ns;
        self.model.poll(self.now_ns, &mut self.finished);
    }
}
