//! What the drive does next: which command or dirty extent, and when it goes on reading instead. The choice is known while the
//! drive still chooses.
//!
//! Choosing takes `choose_ms`, and what comes meanwhile can be chosen. As the choice depends on nothing else, it is made
//! when the drive begins to choose or, where a command waits for the end of a write of dirty sectors, before, for the time at
//! which choosing ends, and looked at again for each command that comes. So the completion of the command that is chosen
//! is known beforehand, and the model's caller need not poll for the choice.

use super::arm::{Moment, SLACK_NS, Target};
use super::read_cache::{Lookup, Run};
use super::spec::ms;
use super::{Choice, Hdd, Plan, Standing, Waiting, Work};
use crate::contract::Kind;
use crate::dirty::Extent;
use crate::due::earlier;

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

    /// The waiting read that the head comes to, if it goes on to it. A stream ends when another command's wait *since it
    /// began* weighs more than the way there: counted in full, the waits of several streams would let none have its turn.
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
        while let Some(found) = before(index) {
            index = found;
        }
        index
    }

    /// Answers the waiting reads that the head has passed over since they came. What it gives is the run on which the head
    /// is, if a waiting read may begin there.
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

    /// When the next choice will have been made, if what it hangs on is known. What is being written makes room for writes
    /// that wait, which are then dirty, too.
    fn chosen_ns(&self) -> Option<u64> {
        match self.current {
            Some((chosen_ns, Work::Choose)) if self.is_awaited() => Some(chosen_ns),
            Some((end_ns, Work::Destage(_))) if self.blocked.is_empty() && !self.queue.is_empty() => {
                Some(end_ns + ms(self.spec.choose_ms))
            }
            _ => None,
        }
    }

    /// Plans for the end of choosing. There is no plan where no command waits, and none where the head, reading on, may come
    /// to a waiting read: what it reads until then is part of the choice.
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
