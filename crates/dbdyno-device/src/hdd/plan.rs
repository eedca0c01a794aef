//! What the drive will choose, known while it still chooses.
//!
//! Choosing takes `choose_ms`, and what comes meanwhile can be chosen. As the choice depends on nothing else, it is made
//! when the drive begins to choose or, where a command waits for the end of a write of dirty sectors, before, for the time at
//! which choosing ends, and looked at again for each command that comes. So the completion of the command that is chosen
//! is known beforehand, and the model's caller need not poll for the choice.

use super::spec::ms;
use super::{Choice, Hdd, Plan, Standing, Work};
use crate::contract::Kind;
use crate::due::earlier;

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
    pub(super) fn is_awaited(&self) -> bool {
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
