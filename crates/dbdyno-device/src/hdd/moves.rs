//! What happens between the choice of a move and its end: the way to the first sector, the passage under the head, and
//! how the transfer over the interface overlaps with both.

use super::arm::Target;
use super::geometry::Sweep;
use super::read_cache::Ahead;
use super::{Hdd, Passage, Waiting, Way, Work};
use crate::contract::{Command, Kind};
use crate::dirty::Extent;

/// Of what a medium read delivers, only this much still has to cross the interface once the last sector is read, where
/// the drive file has no watermark.
const INTERFACE_TAIL_BYTES: u64 = 64 << 10;

impl Passage {
    /// That of a write.
    fn written(end_ns: u64) -> Self {
        Self { end_ns, watermark_ns: end_ns, behind_bytes: 0, from: 0, sectors_per_ns: 0.0 }
    }
}

impl Hdd {
    /// Moves to a host command.
    pub(super) fn move_to_host(&mut self, waiting: Waiting) {
        let way = self.way_to_host(self.now_ns, &waiting);
        self.go(&way, Work::Host(waiting, way.passage));
    }

    /// Moves to a dirty extent.
    pub(super) fn move_to_dirty(&mut self, slot: u32, way: &Way) {
        if let Some(flush) = &mut self.flush {
            flush.wrote = true;
        }
        if let Some(extent) = self.cache.take(slot) {
            self.go(way, Work::Destage(extent));
        }
    }

    /// The way to a dirty extent, if the arm goes there at `start_ns`.
    pub(super) fn way_to_dirty(&self, start_ns: u64, slot: u32) -> Option<Way> {
        let (extent, target) = self.cache.at(slot)?;
        let sweep = self.geometry.sweep(extent.start, extent.sectors);
        let end_ns = start_ns + self.to_and_over_ns(start_ns, &target, extent, true, &sweep) as u64;
        Some(Way { start_ns, passage: Passage::written(end_ns), last: sweep.last })
    }

    /// The way to a host command, if it is chosen at `chosen_ns`.
    pub(super) fn way_to_host(&self, chosen_ns: u64, waiting: &Waiting) -> Way {
        let start_ns = chosen_ns.max(waiting.ready_ns);
        let sweep = self.geometry.sweep(waiting.extent.start, waiting.extent.sectors);
        let passage = if waiting.command.kind == Kind::Read {
            self.read_pass(start_ns, waiting, &sweep)
        } else {
            Passage::written(self.write_pass(start_ns, waiting, &sweep))
        };
        Way { start_ns, passage, last: sweep.last }
    }

    /// From the time there is room for a write to its completion, at the least.
    pub(super) fn taking_in_ns(&self, write: &Command) -> u64 {
        self.overheads.hit_ns(Kind::Write, false).min(self.overheads.hit_ns(Kind::Write, true))
            + self.transfer_ns(Kind::Write, write.length_bytes)
            + self.overheads.completion_ns(Kind::Write)
    }

    pub(super) fn go(&mut self, way: &Way, work: Work) {
        self.reads.stop(way.start_ns);
        self.arm.go_to(&way.last);
        self.current = Some((way.passage.end_ns, work));
    }

    /// From `start_ns` to the end of the passage. A write of part of a sector takes a revolution more.
    fn to_and_over_ns(&self, start_ns: u64, target: &Target, extent: Extent, write: bool, sweep: &Sweep) -> f64 {
        let over_ns = self.arm.positioning_ns(self.arm.moment(start_ns), target, write) + sweep.pass_ns;
        if write && extent.partial { over_ns + self.geometry.revolution_ns() } else { over_ns }
    }

    fn read_pass(&self, start_ns: u64, waiting: &Waiting, sweep: &Sweep) -> Passage {
        let (extent, target) = (waiting.extent, &waiting.target);
        let moment = self.arm.moment(start_ns);
        let to_ns = self.arm.positioning_ns(moment, target, false);
        let end_ns = start_ns + (to_ns + sweep.pass_ns) as u64;
        let sector_bytes = self.spec.sector_bytes;
        let first = sweep.first;
        let sectors_per_ns = self.geometry.sectors_per_ns(&first);
        let mut passage =
            Passage { end_ns, watermark_ns: end_ns, behind_bytes: sector_bytes, from: extent.start, sectors_per_ns };
        let revolution_ns = self.geometry.revolution_ns();
        let sector_ns = revolution_ns / first.sectors_per_track as f64;
        let waited_ns = to_ns - self.arm.moving_ns(target, false);
        if self.spec.read_before {
            let on_track = first.sectors_per_track - first.spare_on_track - first.left_on_track;
            passage.from = extent.start - on_track.min((waited_ns / sector_ns) as u64).min(extent.start);
        }
        if let Some(watermark) = self.spec.watermark {
            let share = (extent.sectors as f64 * watermark).max(1.0) / extent.sectors as f64;
            passage.watermark_ns = start_ns + (to_ns + sweep.pass_ns * share.min(1.0)) as u64;
        }
        if self.spec.read_on_arrival && extent.sectors <= first.left_on_track {
            // The head that comes down among the sectors has read them all after one revolution; the part before that
            // place comes last, and what follows it is in the cache already.
            let whole_turn_ns = waited_ns + sweep.pass_ns - revolution_ns;
            if whole_turn_ns > 0.0 {
                let before = ((revolution_ns - waited_ns) / sector_ns) as u64;
                passage.end_ns -= whole_turn_ns as u64;
                passage.behind_bytes = (extent.sectors - before.min(extent.sectors - 1)) * sector_bytes;
                passage.watermark_ns = passage.watermark_ns.min(passage.end_ns);
            }
        }
        passage
    }

    /// When an uncached write has reached the medium. Where the interface counts, the head waits another revolution for
    /// data that come later than the sectors they are for.
    fn write_pass(&self, start_ns: u64, waiting: &Waiting, sweep: &Sweep) -> u64 {
        let (extent, command) = (waiting.extent, &waiting.command);
        let mut over_ns = self.to_and_over_ns(start_ns, &waiting.target, extent, true, sweep);
        if self.spec.watermark.is_some() {
            let from_ns = self.interface_free_ns.max(waiting.ready_ns + self.overheads.write_data);
            let transfer_ns = self.transfer_ns(Kind::Write, command.length_bytes) as f64;
            let sector_ns = transfer_ns / extent.sectors as f64;
            let lead_ns = self.transfer_ns(Kind::Write, self.spec.write_lead_bytes.min(command.length_bytes)) as f64;
            let ahead_ns = lead_ns.max(sector_ns + (transfer_ns - sweep.pass_ns).max(0.0));
            let needed_ns = from_ns.saturating_sub(start_ns) as f64 + ahead_ns + sweep.pass_ns;
            let late_revolutions = ((needed_ns - over_ns) / self.geometry.revolution_ns()).ceil().max(0.0);
            over_ns += late_revolutions * self.geometry.revolution_ns();
        }
        start_ns + over_ns as u64
    }

    /// Ends a move to a host command.
    pub(super) fn finish_host(&mut self, waiting: &Waiting, passage: Passage) {
        let (start, end) = (waiting.extent.start, waiting.extent.end());
        if waiting.command.kind != Kind::Read {
            self.reads.invalidate(self.now_ns, start, end);
            if self.spec.read_written {
                self.reads.keep_written((start, end));
            }
            self.deliver_at(self.now_ns, &waiting.command, 0);
            return;
        }
        let sequential = self.reads.continues(start);
        let first = match waiting.cached_ns {
            Some(_) => self.reads.join(start),
            None => passage.from,
        };
        let from_ns = self.transfer_from_ns(waiting, &passage);
        let ahead = Ahead::new(&self.spec, self.size_bytes, &self.geometry);
        self.reads.read(self.now_ns, (first, end), ahead.limit(sequential, (first, end)), passage.sectors_per_ns);
        self.turn_from_ns = self.now_ns;
        self.deliver_read(&waiting.command, from_ns, self.now_ns, passage.behind_bytes);
    }

    /// When the transfer of a read can begin.
    fn transfer_from_ns(&self, waiting: &Waiting, passage: &Passage) -> u64 {
        waiting.cached_ns.unwrap_or(passage.watermark_ns + self.overheads.reconnect)
    }

    /// Before this time nothing completes where the arm moves to a host command.
    pub(super) fn due_after_host_ns(&self, waiting: &Waiting, passage: &Passage) -> u64 {
        let command = &waiting.command;
        let transferred_ns = if command.kind == Kind::Read {
            let from_ns = self.transfer_from_ns(waiting, passage);
            self.read_transferred_ns(command, from_ns, passage.end_ns, passage.behind_bytes)
        } else {
            self.interface_free_ns.max(passage.end_ns)
        };
        // What crosses the interface later may still complete earlier.
        let is_alone = self.queue.len() + self.blocked.len() == usize::from(self.planned.is_some());
        let completion_ns = if self.flush.is_some() {
            0
        } else if is_alone {
            self.overheads.completion_ns(command.kind)
        } else {
            self.overheads.least_completion_ns()
        };
        transferred_ns + completion_ns
    }

    /// Completes a read whose data are on the medium until `read_ns`: its transfer begins at `from_ns` at the earliest,
    /// and its last `behind_bytes` cross the interface after `read_ns`.
    pub(super) fn deliver_read(&mut self, command: &Command, from_ns: u64, read_ns: u64, behind_bytes: u64) {
        self.interface_free_ns = self.read_transferred_ns(command, from_ns, read_ns, behind_bytes);
        self.done.push(self.interface_free_ns + self.overheads.completion_ns(Kind::Read), command.id);
    }

    /// When such a read has crossed the interface.
    fn read_transferred_ns(&self, command: &Command, from_ns: u64, read_ns: u64, behind_bytes: u64) -> u64 {
        let bytes = command.length_bytes;
        if self.spec.watermark.is_none() {
            return read_ns.max(self.interface_free_ns) + self.transfer_ns(Kind::Read, bytes.min(INTERFACE_TAIL_BYTES));
        }
        let behind_ns = self.transfer_ns(Kind::Read, behind_bytes.min(bytes));
        let begin_ns = from_ns.max(self.interface_free_ns);
        (begin_ns + self.transfer_ns(Kind::Read, bytes)).max(read_ns + behind_ns)
    }

    /// Completes a command that needs no medium.
    pub(super) fn deliver(&mut self, command: &Command, bytes: u64) {
        self.deliver_at(self.now_ns + self.overheads.hit_ns(command.kind, self.after_write), command, bytes);
    }

    /// Completes a command of which this many bytes cross the interface from `ready_ns` on.
    pub(super) fn deliver_at(&mut self, ready_ns: u64, command: &Command, bytes: u64) {
        self.interface_free_ns = ready_ns.max(self.interface_free_ns) + self.transfer_ns(command.kind, bytes);
        self.done.push(self.interface_free_ns + self.overheads.completion_ns(command.kind), command.id);
    }

    fn transfer_ns(&self, kind: Kind, bytes: u64) -> u64 {
        let write_mb_s = self.spec.interface_write_mb_s.filter(|_| kind == Kind::Write);
        (bytes as f64 * 1e3 / write_mb_s.unwrap_or(self.spec.interface_mb_s)) as u64
    }
}
