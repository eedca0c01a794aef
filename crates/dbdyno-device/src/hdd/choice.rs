//! What the drive does next: which command or dirty extent, and when it goes on reading instead.

use super::arm::{Moment, SLACK_NS, Target};
use super::read_cache::Lookup;
use super::read_cache::Run;
use super::spec::ms;
use super::{Choice, Hdd, Waiting};
use crate::contract::Kind;
use crate::dirty::Extent;

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
        let too_long = |since_ns: u64| self.now_ns - since_ns >= ms(self.spec.age_limit_ms);
        let starved_write = self.blocked.front().is_some_and(|write| too_long(write.since_ns));
        if !starved_write && self.queue.front().is_some_and(|oldest| too_long(oldest.since_ns)) {
            return Some(self.way_to(0, run));
        }
        let moment = self.arm.moment(self.now_ns);
        let (mut best, mut best_score) = (None, f64::INFINITY);
        if !starved_write && let Some((choice, score)) = self.best_of_queue(moment, run) {
            (best, best_score) = (Some(choice), score);
        }
        let handicap_ns = match (self.blocked.front(), best) {
            (None, _) => self.spec.destage_handicap_ms * 1e6,
            // No extent is nearer than what the head comes to: age alone gives a write that waits for room its turn.
            (Some(write), Some(Choice::Coming(_))) => -self.credit_ns(write.since_ns),
            (Some(_), _) => 0.0,
        };
        match self.cache.window().nearest(&self.arm, moment, best_score - handicap_ns) {
            Some((slot, _)) => Some(Choice::Destage(slot)),
            None => best,
        }
    }

    /// The best of the host's commands, and its score. A stream ends when another command's wait *since it began*
    /// weighs more than the way there: counted in full, the waits of several streams would let none have its turn.
    fn best_of_queue(&self, moment: Moment, run: Option<Run>) -> Option<(Choice, f64)> {
        let coming = run.and_then(|_| self.oldest().position(|waiting| waiting.is_coming(run)));
        let nearest = self.nearest_host(moment, run);
        if let Some(coming) = coming {
            let ends = nearest.is_some_and(|(index, score)| {
                let since_ns = self.queue[index].since_ns;
                score + self.credit_ns(since_ns) < self.credit_ns(since_ns.max(self.turn_from_ns))
            });
            if !ends {
                return Some((Choice::Coming(coming), 0.0));
            }
        }
        nearest.map(|(index, score)| (self.way_to(index, run), score))
    }

    /// How the drive comes to a waiting command: from the beginning of the run that it is part of.
    fn way_to(&self, index: usize, run: Option<Run>) -> Choice {
        let first = self.beginning_of_run(index);
        if self.queue[first].is_coming(run) { Choice::Coming(first) } else { Choice::Host(first) }
    }

    /// What the drive chooses among.
    fn oldest(&self) -> impl Iterator<Item = &Waiting> {
        self.queue.iter().take(self.spec.queue_depth)
    }

    /// What the wait of a command counts against the time to reach it.
    fn credit_ns(&self, since_ns: u64) -> f64 {
        self.spec.age_weight * (self.now_ns - since_ns) as f64
    }

    /// The host command with the lowest score among those that need a move: the time to reach it less the weight of its
    /// wait. The queue is in order of age, so the search ends where the wait alone cannot win any more.
    fn nearest_host(&self, moment: Moment, run: Option<Run>) -> Option<(usize, f64)> {
        let (mut best, mut best_score) = (None, f64::INFINITY);
        for (index, waiting) in self.oldest().enumerate() {
            let credit = self.credit_ns(waiting.since_ns);
            if -credit >= best_score {
                break;
            }
            if waiting.is_coming(run) {
                continue;
            }
            let write = waiting.command.kind == Kind::Write;
            // Most can be told to be too far round before the way there is known.
            if self.arm.turning_ns(moment, &waiting.target) - SLACK_NS >= best_score + credit {
                continue;
            }
            let score = self.arm.positioning_ns(moment, &waiting.target, write) - credit;
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
        if !self.oldest().any(|waiting| run.meets(waiting.extent.start)) {
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
