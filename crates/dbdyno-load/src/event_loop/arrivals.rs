//! When the events of an open loop are due; what bounds a run, and what its threads share of that.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use dbdyno_common::random::Random;

use crate::run_options::{Ignore, Loop, Share, Spacing};

/// When and why a run ends other than by the clients being done, and how events start.
#[derive(Debug, Clone, Copy)]
pub struct Limits<'a> {
    /// When the run starts (`CLOCK_MONOTONIC`, ns), for all threads: an open loop's events are due from then on.
    pub start_ns: u64,
    /// No event starts at or after this time (`CLOCK_MONOTONIC`, ns); those in flight finish.
    pub deadline_ns: Option<u64>,
    /// The run is given up after more refused statements than this.
    pub errors_max: u64,
    /// Errors that do not count towards it.
    pub ignore: &'a Ignore,
    /// The run is given up when no connection got a byte for this long, ns.
    pub stall_ns: u64,
    /// A connection on which a reply has begun and not ended for this long is given up, ns.
    pub reply_ns: u64,
    /// How long a lost connection is tried for again, ns; 0: its loss ends the run.
    pub reconnect_ns: u64,
    /// A connection that is lost, and not tried for again, ends the run as its deadline would.
    pub expects_loss: bool,
    /// When a client starts an event; the rate is that of all threads of all processes.
    pub pace: Loop,
    /// Of the random times.
    pub seed: u64,
    /// Number of this thread among `threads`.
    pub thread: usize,
    /// Threads that share the load of this process.
    pub threads: usize,
    /// The part of the load that is this process's.
    pub share: Share,
}

/// What the threads of a run share.
#[derive(Debug)]
pub struct Shared {
    /// Events that may still start; `None` without a bound.
    pub(super) events_left: Option<AtomicU64>,
    /// Errors that counted.
    pub(super) errors: AtomicU64,
    /// A thread gave up.
    pub(super) given_up: AtomicBool,
    /// No event starts any more, before the deadline; those in flight finish.
    ended: AtomicBool,
    /// Rows added by all.
    pub rows: AtomicU64,
}

impl Shared {
    /// For a run of at most so many events.
    pub fn new(events: Option<u64>) -> Self {
        Self {
            events_left: events.map(AtomicU64::new),
            errors: AtomicU64::new(0),
            given_up: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            rows: AtomicU64::new(0),
        }
    }

    /// Has all threads end early.
    pub fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    /// Whether a thread gave up.
    pub fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Has all threads end now as they would at the deadline.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Whether they are to.
    #[inline]
    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Takes one of the events that may still start.
    #[inline]
    pub(super) fn take_event(&self) -> bool {
        let Some(left) = &self.events_left else { return true };
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

/// A sequence of due times, the same for the same seed.
#[derive(Debug, Clone)]
struct Schedule {
    random: Random,
    spacing: Spacing,
    /// Events per second.
    rate: f64,
    started_ns: u64,
    /// Time of the next after the start, in mean times between two: a sum of floats that loses no
    /// nanosecond within months, and is exact where spacing is fixed.
    next: f64,
}

impl Schedule {
    fn next_ns(&self) -> u64 {
        // At a very low rate the next is due after the end of time.
        self.started_ns.saturating_add((self.next * 1e9 / self.rate) as u64)
    }

    fn advance(&mut self) -> u64 {
        let due = self.next_ns();
        self.next += match self.spacing {
            Spacing::Fixed => 1.0,
            Spacing::Exponential => self.random.exponential(),
        };
        due
    }
}

/// The events that are due, of which some wait for a free client. Memory does not grow with them:
/// two copies of the schedule run at a distance.
#[derive(Debug)]
pub struct Arrivals {
    /// Where time is.
    due: Schedule,
    /// Where the clients are.
    served: Schedule,
    waiting: u64,
    /// Due times whose client turned out to have sent all.
    returned: Vec<u64>,
    end_ns: u64,
    left: u64,
    /// How many were due so far.
    pub offered: u64,
    /// Most that waited at a time.
    pub waiting_max: u64,
    /// Until when time has passed for what was offered: it stands still when all is offered.
    passed_ns: u64,
}

/// What an open loop is to offer.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    /// Events per second.
    pub rate: f64,
    /// Times between them.
    pub spacing: Spacing,
    /// When it begins.
    pub start_ns: u64,
    /// Time of the first, as a share of the mean time between two: sets threads apart.
    pub phase: f64,
    /// No event is due at or after this time.
    pub end_ns: u64,
    /// Not more than so many are due.
    pub most: u64,
}

impl Arrivals {
    /// The schedule of an offer.
    pub fn new(offer: Offer, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let next = match offer.spacing {
            Spacing::Fixed => offer.phase,
            Spacing::Exponential => random.exponential(),
        };
        let due = Schedule { random, spacing: offer.spacing, rate: offer.rate, started_ns: offer.start_ns, next };
        Self {
            served: due.clone(),
            due,
            waiting: 0,
            returned: Vec::new(),
            end_ns: offer.end_ns,
            left: offer.most,
            offered: 0,
            waiting_max: 0,
            passed_ns: offer.start_ns,
        }
    }

    /// Lets time pass up to `now_ns`.
    pub fn pass(&mut self, now_ns: u64) {
        while self.left > 0 && self.due.next_ns() <= now_ns && self.due.next_ns() < self.end_ns {
            self.due.advance();
            self.left -= 1;
            self.offered += 1;
            self.waiting += 1;
        }
        // Of the last event's time, all up to when the next would have been due belongs to it.
        self.passed_ns = now_ns.min(self.end_ns).min(if self.left > 0 { u64::MAX } else { self.due.next_ns() });
        self.waiting_max = self.waiting_max.max(self.waiting());
    }

    /// The due time of the event that has waited longest.
    pub fn take(&mut self) -> Option<u64> {
        self.returned.pop().or_else(|| {
            self.waiting = self.waiting.checked_sub(1)?;
            Some(self.served.advance())
        })
    }

    /// Takes back an event whose client has sent all.
    pub fn give_back(&mut self, due_ns: u64) {
        self.returned.push(due_ns);
    }

    /// All clients have sent all: what is due was offered to no one.
    pub fn withdraw(&mut self) {
        self.offered -= self.waiting();
        self.waiting = 0;
        self.returned.clear();
        self.left = 0;
    }

    /// How long events have been offered, ns.
    pub fn offered_for_ns(&self) -> u64 {
        self.passed_ns.saturating_sub(self.due.started_ns)
    }

    /// How many wait.
    pub fn waiting(&self) -> u64 {
        self.waiting + self.returned.len() as u64
    }

    /// Whether as many as were to be offered were, and are served.
    pub fn is_exhausted(&self) -> bool {
        self.left == 0 && self.waiting() == 0
    }

    /// When the next is due; `None` when there is none any more.
    pub fn next_ns(&self) -> Option<u64> {
        let next = self.due.next_ns();
        (self.left > 0 && next < self.end_ns).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn offer(spacing: Spacing) -> Offer {
        Offer { rate: 1000.0, spacing, start_ns: 0, phase: 0.0, end_ns: 10_000_000_000, most: u64::MAX }
    }

    #[test]
    fn fixed_arrivals_are_due_on_the_grid() {
        let mut arrivals = Arrivals::new(Offer { start_ns: 5, ..offer(Spacing::Fixed) }, 1);
        arrivals.pass(3_000_005);
        let due: Vec<_> = std::iter::from_fn(|| arrivals.take()).collect();
        assert_eq!(due, [5, 1_000_005, 2_000_005, 3_000_005]);
        assert_eq!(arrivals.next_ns(), Some(4_000_005));
        arrivals.pass(u64::MAX / 2);
        // The last is due before the end.
        assert_eq!((arrivals.offered, arrivals.waiting(), arrivals.next_ns()), (10_000, 9_996, None));
    }

    #[test]
    fn the_rate_offered_is_that_of_the_time_in_which_events_were_due() {
        let bounded = |most| Arrivals::new(Offer { most, ..offer(Spacing::Fixed) }, 1);
        for (most, passed_ns, offered, for_ns) in [
            (u64::MAX, 2_500_000, 3, 2_500_000),
            // What comes after the end takes no part, however long it takes.
            (u64::MAX, 60_000_000_000, 10_000, 10_000_000_000),
            (500, 60_000_000_000, 500, 500_000_000),
        ] {
            let mut arrivals = bounded(most);
            arrivals.pass(passed_ns);
            assert_eq!((arrivals.offered, arrivals.offered_for_ns()), (offered, for_ns));
        }
    }

    #[test]
    fn an_event_that_is_due_at_the_end_is_not_offered() {
        // Thirds of a millisecond, 150 of them: no rounding may bring the next in front of the end.
        let mut arrivals = Arrivals::new(Offer { rate: 3000.0, end_ns: 50_000_000, ..offer(Spacing::Fixed) }, 1);
        arrivals.pass(u64::MAX / 2);
        assert_eq!(arrivals.offered, 150);
    }

    #[test]
    fn what_is_hardly_ever_due_is_not_due() {
        let mut arrivals = Arrivals::new(Offer { rate: 1e-12, start_ns: 7, ..offer(Spacing::Fixed) }, 1);
        arrivals.pass(u64::MAX / 2);
        assert_eq!((arrivals.offered, arrivals.next_ns()), (1, None));
    }

    #[test]
    fn what_is_due_when_all_is_said_was_not_offered() {
        let mut arrivals = Arrivals::new(offer(Spacing::Fixed), 1);
        arrivals.pass(4_000_000);
        for due in [arrivals.take(), arrivals.take()] {
            arrivals.give_back(due.unwrap());
        }
        assert_eq!((arrivals.offered, arrivals.waiting()), (5, 5));
        arrivals.take().unwrap();
        arrivals.withdraw();
        assert_eq!((arrivals.offered, arrivals.waiting(), arrivals.next_ns()), (1, 0, None));
    }

    #[test]
    fn poisson_arrivals_have_their_mean_and_spread() {
        let mut arrivals = Arrivals::new(offer(Spacing::Exponential), 7);
        arrivals.pass(10_000_000_000);
        // 10,000 expected, standard deviation 100.
        assert!((9_600..10_400).contains(&arrivals.offered), "{}", arrivals.offered);
        let due: Vec<_> = std::iter::from_fn(|| arrivals.take()).collect();
        let gaps: Vec<f64> = due.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let variance = gaps.iter().map(|gap| (gap - 1.0).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((0.8..1.2).contains(&variance), "{variance}");
    }

    proptest! {
        #[test]
        fn every_event_is_served_once_and_in_order(
            seed: u64, steps in prop::collection::vec(0u64..5_000_000, 1..50), most in 0u64..100,
        ) {
            let mut arrivals = Arrivals::new(Offer { most, ..offer(Spacing::Exponential) }, seed);
            let (mut now, mut served) = (0, Vec::new());
            for step in steps {
                now += step;
                arrivals.pass(now);
                served.extend(arrivals.take());
                prop_assert_eq!(arrivals.offered, served.len() as u64 + arrivals.waiting());
                prop_assert!(served.iter().all(|due| *due <= now));
            }
            prop_assert!(served.is_sorted());
            prop_assert!(arrivals.offered <= most);
        }
    }
}
