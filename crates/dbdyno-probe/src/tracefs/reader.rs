//! All processors' buffers, as one stream of events in the order of their time.

use std::fs::File;
use std::io::{ErrorKind, Read};

use rustix::fs::OFlags;

use super::event::{Event, Step};
use super::instance::Instance;
use super::page::{lost_before, records};
use crate::error::ProbeError;

/// How long after its time an event may still be on its way into a buffer: a virtual processor may pause in between.
const SETTLE_NS: u64 = 5_000_000;

/// Open buffers, and the events that wait until those of other processors are there too.
#[derive(Debug)]
pub struct Reader {
    /// Each with its processor's number and the time of the last event that came out of it.
    buffers: Vec<(File, u16, u64)>,
    page: Vec<u8>,
    waiting: Vec<Event>,
}

impl Reader {
    pub fn new(instance: &Instance) -> Result<Self, ProbeError> {
        let mut buffers = Vec::new();
        for (processor, path) in instance.buffers()? {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let handle = rustix::fs::open(&path, flags, rustix::fs::Mode::empty());
            buffers.push((
                File::from(handle.map_err(std::io::Error::from).map_err(ProbeError::at(&path))?),
                processor,
                0,
            ));
        }
        Ok(Self { buffers, page: vec![0; instance.layout.page_bytes()], waiting: Vec::new() })
    }

    /// Lets go of the buffers: an instance whose buffers are open can't go.
    pub fn close(&mut self) {
        self.buffers.clear();
    }

    /// Reads all there is, and gives every event before `now_ns` in order; with `now_ns` at its maximum nothing waits any
    /// longer. Where events were lost, [`Step::Blind`] and [`Step::Seeing`] stand around the gap.
    pub fn drain(&mut self, instance: &Instance, now_ns: u64, each: impl FnMut(&Event)) -> Result<(), ProbeError> {
        for (buffer, processor, last_ns) in &mut self.buffers {
            loop {
                let length = match buffer.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(length) => length,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) => return Err(ProbeError::NoTrace(format!("the buffer can't be read: {error}"))),
                };
                let page = &self.page[..length];
                if let Some(again_ns) = lost_before(page, &instance.layout) {
                    self.waiting.push(Event::gap((*last_ns).min(again_ns), Step::Blind));
                    self.waiting.push(Event::gap(again_ns, Step::Seeing));
                }
                records(page, &instance.layout, |at_ns, record| {
                    *last_ns = at_ns;
                    self.waiting.extend(instance.decoder.event(at_ns, *processor, record));
                });
            }
        }
        // Each processor's events are in order already, and what waited is too: merging is cheap, and equal times stay.
        self.waiting.sort_by_key(|event| event.at_ns);
        let settled = now_ns.saturating_sub(SETTLE_NS);
        let ready =
            if now_ns == u64::MAX { self.waiting.len() } else { self.waiting.partition_point(|e| e.at_ns <= settled) };
        self.waiting.drain(..ready).as_slice().iter().for_each(each);
        Ok(())
    }
}
