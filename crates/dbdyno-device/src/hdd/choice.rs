//! What the drive does next: which command or dirty extent, and when it goes on reading instead. The choice is known
//! while the drive still chooses.
//!
//! Choosing takes `choose_ms`, and what comes meanwhile can be chosen. As the choice depends on nothing else, it is
//! made when the drive begins to choose or, where a command waits for the end of a write of dirty sectors, before, for
//! the time at which choosing ends, and looked at again for each command that comes. So the completion of the command
//! that is chosen is known beforehand, and the model's caller need not poll for the choice.
//!
//! The second half is the move that was chosen: the way to the first sector, the passage under the head, and how the
//! transfer over the interface overlaps with both.

use super::arm::{Moment, SLACK_NS, Target};
use super::geometry::Sweep;
use super::read_cache::{Ahead, Lookup, Run};
use super::spec::ms;
use super::{Choice, Hdd, Passage, Plan, Standing, Waiting, Way, Work};
use crate::contract::{Command, Kind, earlier};
use crate::write_cache::Extent;

impl Waiting {
    fn range(&self) -> (u64, u64) {
        (self.extent.start, self.extent.end())
    }

    /// The same where the sectors before `cached_end` are in the cache.
    pub(super) fn rest(self, cached_end: u64, cached_ns: u64, target: Target) -> Self {
        let extent =
            Extent { start: cached_end, sectors: self.extent.end() - cached_end, partial: self.extent.partial };
        Self { extent, target, cached_ns: Some(cached_ns), ..self }
    }

    fn is_coming(&self, run: Option<Run>) -> bool {
        self.command.kind == Kind::Read && run.is_some_and(|run| run.is_followed_by(self.range()))
    }
}

impl Hdd {
    /// The next move: shortest positioning time, less what a host command has waited by its weight; but a command that
    /// has waited too long goes first. A read that the head comes to by reading on needs no move, and goes before all.
    ///
    /// `run` is what [`Hdd::answer_what_was_read`] gave.
    pub(super) fn choose(&self, run: Option<Run>) -> Option<Choice> {
        let hosts = self.standing_of_hosts(self.now_ns, run);
        if let Some(coming) = self.coming(&hosts, run) {
            // No extent is nearer than what the head comes to: age alone gives a write that waits for room its turn.
            let limit_ns = match self.blocked.front() {
                Some(write) => self.credit_ns(hosts.at_ns, write.since_ns),
                None => -self.handicap_ns(),
            };
            let dirty = self.cache.window().nearest(&self.arm, hosts.moment, limit_ns);
            return Some(dirty.map_or(Choice::Coming(coming), |(slot, _)| Choice::Destage(slot)));
        }
        self.choice(&Standing { dirty: self.nearest_dirty(&hosts), ..hosts }, run)
    }

    /// What the standing of all candidates comes to.
    pub(super) fn choice(&self, standing: &Standing, run: Option<Run>) -> Option<Choice> {
        match (standing.dirty, standing.host) {
            (Some((slot, _)), _) => Some(Choice::Destage(slot)),
            (None, host) => host.map(|(index, _)| self.way_to(index, run)),
        }
    }

    /// How host commands stand at a time, those left out that need no move.
    fn standing_of_hosts(&self, at_ns: u64, run: Option<Run>) -> Standing {
        let moment = self.arm.moment(at_ns);
        let starved_write = self.has_starved_write(at_ns);
        let host = if starved_write {
            None
        } else if self.queue.front().is_some_and(|oldest| self.is_too_long(at_ns, oldest.since_ns)) {
            Some((0, f64::NEG_INFINITY))
        } else {
            self.nearest_host(at_ns, moment, run)
        };
        Standing { at_ns, moment, starved_write, host, dirty: None }
    }

    /// The dirty extent that goes before the hosts' commands.
    fn nearest_dirty(&self, hosts: &Standing) -> Option<(u32, f64)> {
        let limit_ns = hosts.host.map_or(f64::INFINITY, |(_, score)| score - self.handicap_ns());
        if limit_ns <= 0.0 {
            return None;
        }
        self.cache.window().nearest(&self.arm, hosts.moment, limit_ns)
    }

    /// By how much less a dirty extent has to take than a command of the host.
    fn handicap_ns(&self) -> f64 {
        if self.blocked.is_empty() { self.spec.destage_handicap_ms * 1e6 } else { 0.0 }
    }

    fn is_too_long(&self, at_ns: u64, since_ns: u64) -> bool {
        at_ns - since_ns >= ms(self.spec.age_limit_ms)
    }

    /// Whether a write will have waited too long for room.
    fn has_starved_write(&self, at_ns: u64) -> bool {
        self.blocked.front().is_some_and(|write| self.is_too_long(at_ns, write.since_ns))
    }

    /// The waiting read that the head comes to, if it goes on to it. A stream ends when another command's wait *since
    /// it began* weighs more than the way there: counted in full, the waits of several streams would let none have its
    /// turn.
    fn coming(&self, hosts: &Standing, run: Option<Run>) -> Option<usize> {
        if hosts.starved_write {
            return None;
        }
        let coming = run.and_then(|_| self.oldest().position(|waiting| waiting.is_coming(run)))?;
        let ends = hosts.host.is_some_and(|(index, score)| {
            let since_ns = self.queue[index].since_ns;
            let credit = |since_ns| self.credit_ns(hosts.at_ns, since_ns);
            score + credit(since_ns) < credit(since_ns.max(self.turn_from_ns))
        });
        (!ends).then_some(coming)
    }

    /// How the drive comes to a waiting command: from the beginning of the run that it is part of.
    fn way_to(&self, index: usize, run: Option<Run>) -> Choice {
        let first = self.beginning_of_run(index);
        if self.queue[first].is_coming(run) { Choice::Coming(first) } else { Choice::Host(first) }
    }

    /// What the drive chooses among.
    pub(super) fn oldest(&self) -> impl Iterator<Item = &Waiting> {
        self.queue.range(..self.queue.len().min(self.spec.queue_depth))
    }

    /// Whether a waiting command may begin in what the head has read.
    fn meets_waiting(&self, run: Run) -> bool {
        self.oldest().any(|waiting| run.meets(waiting.extent.start))
    }

    /// What the wait of a command counts against the time to reach it.
    fn credit_ns(&self, at_ns: u64, since_ns: u64) -> f64 {
        // Signed, it is one instruction.
        self.spec.age_weight * (at_ns - since_ns).cast_signed() as f64
    }

    /// The time to reach a command less the weight of its wait.
    pub(super) fn score(&self, at_ns: u64, moment: Moment, waiting: &Waiting) -> f64 {
        let write = waiting.command.kind == Kind::Write;
        self.arm.positioning_ns(moment, &waiting.target, write) - self.credit_ns(at_ns, waiting.since_ns)
    }

    /// The host command with the lowest score among those that need a move. The queue is in order of age, so the search
    /// ends where the wait alone cannot win any more.
    fn nearest_host(&self, at_ns: u64, moment: Moment, run: Option<Run>) -> Option<(usize, f64)> {
        let (mut best, mut best_score) = (None, f64::INFINITY);
        for (index, waiting) in self.oldest().enumerate() {
            let credit = self.credit_ns(at_ns, waiting.since_ns);
            if -credit >= best_score {
                break;
            }
            if waiting.is_coming(run) {
                continue;
            }
            // Most can be told to be too far round before the way there is known.
            if self.arm.turning_ns(moment, &waiting.target) - SLACK_NS >= best_score + credit {
                continue;
            }
            let score = self.score(at_ns, moment, waiting);
            if score < best_score {
                (best, best_score) = (Some((index, score)), score);
            }
        }
        best
    }

    /// Where a run of waiting reads begins that the one at this place is part of: from there they stream.
    fn beginning_of_run(&self, mut index: usize) -> usize {
        let is_read = |waiting: &Waiting| waiting.command.kind == Kind::Read;
        let before = |index: usize| {
            let later = self.queue.get(index).filter(|waiting| is_read(waiting))?;
            self.oldest().position(|waiting| is_read(waiting) && waiting.extent.end() == later.extent.start)
        };
        while let Some(earlier) = before(index) {
            index = earlier;
        }
        index
    }

    /// Answers the waiting reads that the head has passed over since they came. What it gives is the run on which the
    /// head is, if a waiting read may begin there.
    pub(super) fn answer_what_was_read(&mut self) -> Option<Run> {
        let run = self.reads.run_on(self.now_ns)?;
        if !self.meets_waiting(run) {
            return None;
        }
        let mut index = 0;
        while index < self.queue.len().min(self.spec.queue_depth) {
            let waiting = self.queue[index];
            if waiting.command.kind != Kind::Read || !run.holds(waiting.range()) {
                index += 1;
                continue;
            }
            self.queue.remove(index);
            self.look_up(waiting.range());
            // What a command costs that needs no arm was done while it waited.
            let ready_ns = self.now_ns.max(waiting.since_ns + self.overheads.hit_ns(Kind::Read, false));
            self.deliver_at(ready_ns, &waiting.command, waiting.command.length_bytes);
        }
        self.reads.run_on(self.now_ns)
    }

    /// Goes on reading without a pause to choose if a waiting read is next, unless it is another command's turn.
    pub(super) fn read_on(&mut self) {
        let run = self.answer_what_was_read();
        if run.is_some()
            && self.oldest().any(|waiting| waiting.is_coming(run))
            && let Some(Choice::Coming(index)) = self.choose(run)
        {
            self.stream(index);
        }
    }

    /// Reads on to the end of a waiting read.
    pub(super) fn stream(&mut self, index: usize) {
        let Some(waiting) = self.queue.remove(index) else { return };
        let at_ns = match self.look_up(waiting.range()) {
            Lookup::Coming(at_ns) => at_ns,
            Lookup::Part(cached_end) => {
                let target = self.geometry.locate(cached_end).into();
                return self.move_to_host(waiting.rest(cached_end, self.hit_ready_ns(), target));
            }
            Lookup::Hit | Lookup::Miss => self.now_ns,
        };
        self.stream_until(at_ns, &waiting.command);
    }
}

impl Hdd {
    /// Moves to what has been planned.
    pub(super) fn go_as_planned(&mut self, plan: &Plan) {
        match plan.choice {
            Choice::Destage(slot) => self.move_to_dirty(slot, &plan.way),
            Choice::Host(index) | Choice::Coming(index) => {
                let Some(waiting) = self.queue.remove(index) else { return };
                if waiting.command.kind == Kind::Read {
                    self.go(&plan.way, Work::Host(waiting, plan.way.passage));
                } else {
                    // When its data come depends on what has crossed the interface meanwhile.
                    self.move_to_host(waiting);
                }
            }
        }
    }

    /// Whether a command waits for the arm, or for what the arm does.
    fn is_awaited(&self) -> bool {
        !self.queue.is_empty() || !self.blocked.is_empty() || self.flush.is_some()
    }

    /// When the next choice will have been made, if what it hangs on is known. What is being written makes room for
    /// writes that wait, which are then dirty, too.
    fn chosen_ns(&self) -> Option<u64> {
        match self.current {
            Some((chosen_ns, Work::Choose)) if self.is_awaited() => Some(chosen_ns),
            Some((end_ns, Work::Destage(_))) if self.blocked.is_empty() && !self.queue.is_empty() => {
                Some(end_ns + ms(self.spec.choose_ms))
            }
            _ => None,
        }
    }

    /// Plans for the end of choosing. There is no plan where no command waits, and none where the head, reading on, may
    /// come to a waiting read: what it reads until then is part of the choice.
    pub(super) fn plan(&mut self) {
        let Some(chosen_ns) = self.chosen_ns().filter(|_| self.planned.is_none()) else { return };
        let run = self.reads.run_on(chosen_ns);
        if !run.is_some_and(|run| self.meets_waiting(run)) {
            let hosts = self.standing_of_hosts(chosen_ns, None);
            self.settle(Standing { dirty: self.nearest_dirty(&hosts), ..hosts });
        }
    }

    /// Makes the plan that follows from how the candidates stand, if there are any.
    fn settle(&mut self, standing: Standing) {
        let Some(choice) = self.choice(&standing, None) else { return };
        let way = match choice {
            Choice::Destage(slot) => self.way_to_dirty(standing.at_ns, slot),
            Choice::Host(index) | Choice::Coming(index) => Some(self.way_to_host(standing.at_ns, &self.queue[index])),
        };
        self.planned = way.map(|way| Plan { standing, choice, way });
    }

    /// Looks at the plan again: the youngest in the queue has just come.
    pub(super) fn plan_with_youngest(&mut self) {
        let Some(plan) = self.planned else { return };
        let Standing { at_ns, moment, starved_write, host, dirty } = plan.standing;
        let (Some(youngest), index) = (self.queue.back(), self.queue.len() - 1) else { return };
        if index >= self.spec.queue_depth {
            return;
        }
        let run = self.reads.run_on(at_ns);
        let leads =
            matches!(plan.choice, Choice::Host(first) if self.queue[first].extent.start == youngest.extent.end());
        if leads || run.is_some_and(|run| run.meets(youngest.extent.start)) {
            self.planned = None;
            return;
        }
        let score = self.score(at_ns, moment, youngest);
        if starved_write || host.is_some_and(|(_, best)| score >= best) {
            return;
        }
        let dirty = dirty.filter(|(_, ns)| *ns < score - self.handicap_ns());
        let standing = Standing { host: Some((index, score)), dirty, ..plan.standing };
        if dirty.is_some() {
            self.planned = Some(Plan { standing, ..plan });
        } else {
            self.settle(standing);
        }
    }

    /// Looks at the plan again: the dirty extents are others, or writes wait for room that did not.
    pub(super) fn plan_with_other_dirty(&mut self) {
        let Some(Plan { standing, .. }) = self.planned.take() else { return };
        if self.chosen_ns().is_some() && standing.starved_write == self.has_starved_write(standing.at_ns) {
            self.settle(Standing { dirty: self.nearest_dirty(&standing), ..standing });
        }
    }

    /// Before this time the arm lets no command complete, whether it is polled or not, unless another command comes.
    pub(super) fn arm_due_ns(&self) -> Option<u64> {
        let (end_ns, work) = self.current.as_ref()?;
        match (work, &self.planned) {
            (Work::Choose | Work::Destage(_), Some(Plan { choice, way, .. })) => match choice {
                Choice::Destage(_) => self.due_after_destage_ns(way.passage.end_ns),
                Choice::Host(index) | Choice::Coming(index) => {
                    Some(self.due_after_host_ns(&self.queue[*index], &way.passage))
                }
            },
            (Work::Host(waiting, passage), _) => Some(self.due_after_host_ns(waiting, passage)),
            (Work::Destage(_), _) => self.due_after_destage_ns(*end_ns),
            (Work::Choose | Work::Flush, _) => self.is_awaited().then_some(*end_ns),
            (Work::Stream, _) => self.is_awaited().then_some(self.interface_free_ns.max(*end_ns)),
        }
    }

    /// A write gets in when there is room and its data have come; another command has to be chosen first.
    fn due_after_destage_ns(&self, end_ns: u64) -> Option<u64> {
        let let_in_ns = self.blocked.front().map(|write| end_ns + self.taking_in_ns(&write.command));
        let others_wait = !self.queue.is_empty() || self.flush.is_some();
        let chosen_ns = others_wait.then_some(end_ns + ms(self.spec.choose_ms));
        earlier(let_in_ns, chosen_ns)
    }
}

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

    /// Completes a command, whose `bytes` begin to cross the interface at `ready_ns` or when that is free.
    pub(super) fn deliver_at(&mut self, ready_ns: u64, command: &Command, bytes: u64) {
        self.interface_free_ns = ready_ns.max(self.interface_free_ns) + self.transfer_ns(command.kind, bytes);
        self.done.push(self.interface_free_ns + self.overheads.completion_ns(command.kind), command.id);
    }

    fn transfer_ns(&self, kind: Kind, bytes: u64) -> u64 {
        let write_mb_s = self.spec.interface_write_mb_s.filter(|_| kind == Kind::Write);
        (bytes as f64 * 1e3 / write_mb_s.unwrap_or(self.spec.interface_mb_s)) as u64
    }
}
