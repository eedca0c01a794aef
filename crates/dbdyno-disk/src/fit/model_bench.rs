//! A drive model that is asked in virtual time.

use std::collections::HashMap;

use dbdyno_common::random::Random;
use dbdyno_device::{DeviceModel, Kind};

use super::bench::{Answer, Bench, Load, Loaded};
use crate::error::DiskError;
use crate::virtual_drive::VirtualDrive;

pub struct ModelBench {
    drive: VirtualDrive,
    size_bytes: u64,
    may_write: bool,
}

impl ModelBench {
    pub fn new(model: Box<dyn DeviceModel + Send>, size_bytes: u64, may_write: bool) -> Self {
        Self { drive: VirtualDrive::new(model), size_bytes, may_write }
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
        let sent_ns = self.drive.now_ns();
        self.drive.submit(kind, offset_bytes, bytes);
        let done_ns = self.drive.wait().first().map_or(self.drive.now_ns(), |completion| completion.at_ns);
        Ok(Answer { sent_ns, done_ns })
    }

    fn load(&mut self, load: &Load) -> Result<Loaded, DiskError> {
        let (began_ns, mut random) = (self.drive.now_ns(), Random::new(load.seed));
        let (mut sent, mut since) = (0, HashMap::new());
        let mut loaded = Loaded::default();
        loop {
            let more = sent < load.requests && self.drive.now_ns() - began_ns < load.limit_ns;
            while more && sent < load.requests && (since.len() as u64) < load.depth {
                let id = self.drive.submit(load.kind, load.place(sent, &mut random), load.bytes);
                since.insert(id, self.drive.now_ns());
                sent += 1;
            }
            if since.is_empty() {
                break;
            }
            for completion in self.drive.wait() {
                if let Some(sent_ns) = since.remove(&completion.id) {
                    loaded.latencies_ns.push((completion.at_ns - sent_ns) as f64);
                }
            }
        }
        loaded.elapsed_ns = self.drive.now_ns() - began_ns;
        Ok(loaded)
    }

    fn pause(&mut self, ns: u64) {
        self.drive.pause(ns);
    }

    fn now_ns(&self) -> u64 {
        self.drive.now_ns()
    }
}
