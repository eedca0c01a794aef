//! Reads: from the write buffer, from what was read ahead, from the flash.

use super::Ssd;
use super::dies::{PageRead, Reader};
use super::ftl::Found;
use super::read_ahead::Taken;
use super::spec::{PAGE_BYTES, transfer_ns};
use crate::contract::Command;

/// Pages of flash to read at once for one reader: the first, and how many bytes are wanted.
type Run = Option<(u32, u64)>;

impl Ssd {
    /// Reads each flash page once for all neighbouring pages of the command that it holds.
    pub(super) fn read(&mut self, slot: usize, command: Command) {
        let (end, reader) = (command.end_bytes(), Reader::Host(slot));
        let (mut at, mut parts, mut at_once, mut ready_ns) = (command.offset_bytes, 0, 0, self.now_ns);
        let mut run: Run = None;
        while at < end {
            let page = (at / PAGE_BYTES) as u32;
            let next = end.min((u64::from(page) + 1) * PAGE_BYTES);
            let bytes = next - at;
            at = next;
            let Found::Flash(flash_page) = self.ftl.find(page) else {
                at_once += bytes;
                continue;
            };
            match self.read_ahead.take(page, (slot, bytes), next.is_multiple_of(PAGE_BYTES)) {
                Taken::Missing => parts += u64::from(self.add_to_run(&mut run, flash_page, bytes, reader)),
                Taken::Coming => parts += 1,
                Taken::Ready(at_ns) => {
                    at_once += bytes;
                    ready_ns = ready_ns.max(at_ns);
                }
            }
        }
        if let Some((first, bytes)) = run {
            self.read_flash(first, bytes, reader);
        }
        if let Some(active) = self.slots.get_mut(slot) {
            // One more for what needs no flash.
            active.remaining = parts + 1;
        }
        self.page_arrived(slot, at_once, ready_ns);
        if self.read_ahead.is_on() {
            self.fetch_ahead(&command);
        }
    }

    /// Adds a page to those that are read at once, or reads those and begins anew; returns whether it did the latter.
    fn add_to_run(&mut self, run: &mut Run, flash_page: u32, bytes: u64, reader: Reader) -> bool {
        let flash_pages = self.ftl.geometry.flash_pages;
        match run {
            Some((first, all)) if flash_page / flash_pages == *first / flash_pages => {
                *all += bytes;
                false
            }
            _ => {
                if let Some((first, bytes)) = run.replace((flash_page, bytes)) {
                    self.read_flash(first, bytes, reader);
                }
                true
            }
        }
    }

    /// Reads of a flash page what is wanted of it.
    pub(super) fn read_flash(&mut self, page: u32, bytes: u64, reader: Reader) {
        let place = self.ftl.geometry.place_of(page);
        let read_ns = self.dies.read_ns(place);
        let more_ns = if place.is_slc { 0 } else { self.retries.more_ns(self.ftl.geometry.block_of(page), read_ns) };
        let read = PageRead { reader, bytes, read_ns: read_ns + more_ns };
        self.dies.add_read(place, read, self.now_ns, &mut self.events);
    }

    /// Fetches what the host will read next if it reads on in order.
    fn fetch_ahead(&mut self, command: &Command) {
        let geometry = &self.ftl.geometry;
        let pages = self.read_ahead.follow(command, geometry.flash_pages, geometry.logical_pages);
        let mut run: Option<(u32, u32, u64)> = None;
        for page in pages {
            let Found::Flash(flash_page) = self.ftl.find(page) else { continue };
            if !self.read_ahead.expect(page) {
                continue;
            }
            let flash_pages = self.ftl.geometry.flash_pages;
            match &mut run {
                // Neighbours on the disk and on the flash.
                Some((first, flash, bytes))
                    if flash_page / flash_pages == *flash / flash_pages
                        && u64::from(page - *first) * PAGE_BYTES == *bytes =>
                {
                    *bytes += PAGE_BYTES;
                }
                _ => {
                    if let Some((first, flash, bytes)) = run.replace((page, flash_page, PAGE_BYTES)) {
                        self.read_flash(flash, bytes, Reader::Ahead(first));
                    }
                }
            }
        }
        if let Some((first, flash, bytes)) = run {
            self.read_flash(flash, bytes, Reader::Ahead(first));
        }
    }

    /// Pages of the disk that were read ahead have come; commands may wait for them.
    pub(super) fn ahead_arrived(&mut self, first: u32, pages: u32, across_ns: u64) {
        for page in first..first + pages {
            for (slot, bytes) in self.read_ahead.arrived(page, across_ns) {
                self.page_arrived(slot, bytes, across_ns);
            }
        }
    }

    /// Part of a read has come from the flash, or from memory.
    pub(super) fn page_arrived(&mut self, slot: usize, bytes: u64, across_ns: u64) {
        let slowdown = if self.thermal.throttled { self.thermal.slowdown(self.now_ns) } else { 1.0 };
        if bytes > 0 {
            let crossing_ns = (transfer_ns(bytes, self.spec.link_mb_s) as f64 * slowdown) as u64;
            self.link_out_free_ns = across_ns.max(self.link_out_free_ns) + crossing_ns;
        }
        let Some(active) = self.slots.get_mut(slot) else { return };
        active.remaining -= 1;
        active.done_ns = active.done_ns.max(if bytes > 0 { self.link_out_free_ns } else { across_ns });
        if active.remaining == 0 {
            let done_ns = active.done_ns;
            self.complete(slot, done_ns);
        }
    }
}
