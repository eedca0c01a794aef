//! kyber: reads and writes each have tokens for the drive; latencies above a target take tokens from those that meet
//! theirs.
//!
//! Requests go to the drive as they come, up to 16 reads and 8 writes in turn. Every 100 ms in which enough was seen, a
//! direction whose 90th percentile at the drive is above its target makes the drive count as congested, and depths are
//! set anew from the 99th percentile of the whole wait.
//!
//! Cannot: several software queues; discards and other commands, which have tokens of their own.

use super::contract::{Scheduler, SchedulerError, Settings, Tunable, Unit};
use crate::queue::{Bio, Fifo, Queue, Request, RequestId, Side};

pub(super) const TUNABLES: &[Tunable] = &[
    Tunable::new("read_lat_nsec", 2_000_000, Unit::Nanoseconds),
    Tunable::new("write_lat_nsec", 10_000_000, Unit::Nanoseconds),
];

/// Tokens at first and at most, of reads and writes.
const TOKENS: [u64; 2] = [256, 128];
/// Requests in turn.
const BATCH: [u64; 2] = [16, 8];
/// Fresh requests that a bio is tried on, from the newest.
const TRIED: usize = 8;
/// A bucket is a quarter of the target; the first four meet it.
const MEETS: usize = 4;
const BUCKETS: usize = 8;
const TICK_NS: u64 = 100_000_000;
/// What is seen must be so much, or so old, before it counts.
const ENOUGH: u32 = 500;
const OLD_NS: u64 = 1_000_000_000;

/// Latencies by quarters of a target.
#[derive(Debug, Default)]
struct Latencies {
    counts: [u32; BUCKETS],
    since_ns: Option<u64>,
}

impl Latencies {
    fn add(&mut self, now_ns: u64, latency_ns: u64, target_ns: u64) {
        let bucket = (latency_ns.saturating_sub(1) * MEETS as u64 / target_ns.max(1)) as usize;
        self.counts[bucket.min(BUCKETS - 1)] += 1;
        self.since_ns = self.since_ns.or(Some(now_ns));
    }

    /// The bucket of a percentile, once there is enough to say it; then counting begins anew.
    fn percentile(&mut self, now_ns: u64, percent: u32) -> Option<usize> {
        let all: u32 = self.counts.iter().sum();
        let is_old = self.since_ns.is_some_and(|since_ns| now_ns >= since_ns + OLD_NS);
        if all == 0 || (all < ENOUGH && !is_old) {
            return None;
        }
        let counts = std::mem::take(self).counts;
        let rank = (all * percent).div_ceil(100);
        let up_to = counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        Some(up_to.take_while(|sum| *sum < rank).count())
    }
}

#[derive(Debug)]
struct Domain {
    /// As they came; bios may join these.
    fresh: Fifo,
    /// Taken over all at once when there were none here; in the order in which they go.
    fifo: Fifo,
    in_flight: u64,
    depth: u64,
    target_ns: u64,
    at_drive: Latencies,
    whole: Latencies,
    /// The last 99th percentile, for when the drive is congested and nothing new was seen.
    last: Option<usize>,
}

impl Domain {
    fn len(&self) -> usize {
        self.fresh.len() + self.fifo.len()
    }

    fn pop(&mut self, queue: &mut Queue) -> Option<RequestId> {
        if self.fifo.is_empty() {
            self.fifo = std::mem::take(&mut self.fresh);
        }
        self.fifo.pop(&mut queue.requests)
    }
}

pub(super) struct Kyber {
    domains: [Domain; 2],
    current: usize,
    batching: u64,
    tick_ns: Option<u64>,
}

impl Kyber {
    pub(super) fn new(overrides: &[(&str, u64)]) -> Result<Self, SchedulerError> {
        let settings = Settings::new("kyber", TUNABLES, overrides)?;
        let targets = [settings.ns("read_lat_nsec"), settings.ns("write_lat_nsec")];
        let domain = |at: usize| Domain {
            fresh: Fifo::default(),
            fifo: Fifo::default(),
            in_flight: 0,
            depth: TOKENS[at],
            target_ns: targets[at],
            at_drive: Latencies::default(),
            whole: Latencies::default(),
            last: None,
        };
        Ok(Self { domains: [domain(0), domain(1)], current: 0, batching: 0, tick_ns: None })
    }

    fn can_go(&self, at: usize) -> bool {
        let domain = &self.domains[at];
        domain.len() > 0 && domain.in_flight < domain.depth
    }

    fn adapt(&mut self, now_ns: u64) {
        let mut is_congested = false;
        for domain in &mut self.domains {
            let bucket = domain.at_drive.percentile(now_ns, 90);
            is_congested |= bucket.is_some_and(|bucket| bucket >= MEETS);
        }
        for (domain, most) in self.domains.iter_mut().zip(TOKENS) {
            let seen = domain.whole.percentile(now_ns, 99);
            let bucket = if is_congested {
                let last = domain.last.take();
                seen.or(last)
            } else {
                domain.last = seen.or(domain.last);
                seen
            };
            if let Some(bucket) = bucket.filter(|bucket| is_congested || *bucket >= MEETS) {
                domain.depth = (domain.depth * (bucket as u64 + 1) / MEETS as u64).clamp(1, most);
            }
        }
    }
}

impl Scheduler for Kyber {
    fn insert(&mut self, queue: &mut Queue, id: RequestId) {
        self.domains[queue.requests[id].direction.index()].fresh.push(&mut queue.requests, id);
    }

    fn find_merge(&self, queue: &Queue, bio: &Bio) -> Option<(RequestId, Side)> {
        let fresh = &self.domains[bio.direction.index()].fresh;
        fresh.backwards(&queue.requests).take(TRIED).find_map(|id| Some((id, queue.side(id, bio)?)))
    }

    fn dispatch(&mut self, queue: &mut Queue) -> bool {
        // Being asked for nothing does not end a batch.
        if self.is_empty() {
            return false;
        }
        if self.batching >= BATCH[self.current] || !self.can_go(self.current) {
            let other = 1 - self.current;
            self.current = if self.can_go(other) { other } else { self.current };
            self.batching = 0;
        }
        if !self.can_go(self.current) {
            return false;
        }
        let domain = &mut self.domains[self.current];
        let Some(id) = domain.pop(queue) else { return false };
        domain.in_flight += 1;
        self.batching += 1;
        queue.dispatch_last(id);
        true
    }

    fn completed(&mut self, queue: &mut Queue, request: &Request) {
        let (now_ns, domain) = (queue.now_ns, &mut self.domains[request.direction.index()]);
        domain.in_flight -= 1;
        domain.at_drive.add(now_ns, now_ns - request.issued_ns, domain.target_ns);
        domain.whole.add(now_ns, now_ns - request.arrived_ns, domain.target_ns);
        self.tick_ns = self.tick_ns.or(Some(now_ns + TICK_NS));
    }

    fn next_due(&self) -> Option<u64> {
        self.tick_ns
    }

    fn timer(&mut self, queue: &mut Queue) {
        self.adapt(queue.now_ns);
        // It ticks again with the next completion.
        self.tick_ns = None;
    }

    fn tag_limit(&self, bio: &Bio, tags: usize) -> usize {
        if bio.sync { tags } else { (tags * 3 / 4).max(1) }
    }

    fn len(&self) -> usize {
        self.domains.iter().map(Domain::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{Direction, Limits};

    /// Serves one request, which the drive takes so long for.
    fn serve(kyber: &mut Kyber, queue: &mut Queue, bio: Bio, latency_ns: u64) {
        let id = queue.requests.allocate(queue.now_ns, bio);
        kyber.insert(queue, id);
        assert!(kyber.dispatch(queue));
        let id = queue.peek().unwrap();
        queue.start(id);
        queue.in_driver -= 1;
        queue.now_ns += latency_ns;
        let request = queue.requests[id].clone();
        kyber.completed(queue, &request);
        while queue.requests.take_bio(id).is_some() {}
    }

    #[test]
    fn slow_writes_take_tokens_from_reads_whether_a_process_waits_for_them_or_not() {
        for sync in [true, false] {
            let mut kyber = Kyber::new(&[]).unwrap();
            let mut queue = Queue::new(Limits { sectors: 1024, segments: 128 }, false);
            for _ in 0..ENOUGH {
                serve(&mut kyber, &mut queue, Bio::new(0, Direction::Read, 0, 8), 400_000);
                serve(&mut kyber, &mut queue, Bio { sync, ..Bio::new(0, Direction::Write, 0, 8) }, 20_000_000);
            }
            kyber.timer(&mut queue);
            assert_eq!(kyber.domains.each_ref().map(|domain| domain.depth), [64, 128], "sync {sync}");
        }
    }
}
