//! From events to requests: which bio went into which request, when it was issued and when it was done.
//!
//! A bio is known by its first sector. A request that is issued covers the bios that were merged into it, and takes
//! them along; a bio that was split leaves its rest behind. A request's time in the queue begins with the earliest of
//! its bios.

use std::collections::{HashMap, VecDeque};

use crate::tracefs::event::{Event, Kind, Step};

/// Bios that never became a request, after which all that wait are forgotten: something was not understood.
const WAITING_MAX: usize = 1 << 20;

/// A request that was handed to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Issued {
    pub at_ns: u64,
    pub kind: Kind,
    pub sector: u64,
    pub bytes: u64,
    /// When its first bio was queued; `None` where that was not seen.
    pub queued_ns: Option<u64>,
    /// Bios that went into it.
    pub bios: u32,
    /// Requests in the device, itself included.
    pub depth: u32,
    /// Bios that still wait in the block layer.
    pub waiting: u32,
}

/// A request that was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completed {
    pub at_ns: u64,
    pub issued: Issued,
    pub failed: bool,
}

/// What an event came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    Issued(Issued),
    Completed(Completed),
    /// An empty write that only asked for a flush was done; the kernel's statistics count it as a write.
    FlushOnly,
    /// A request was done whose issue was not seen.
    Unmatched,
}

#[derive(Debug, Clone, Copy)]
struct Bio {
    queued_ns: u64,
    sectors: u32,
}

/// Everything in flight.
#[derive(Debug, Default)]
pub struct Requests {
    bios: HashMap<u64, VecDeque<Bio>>,
    waiting: u32,
    /// When the first asked for the flush that has not been issued yet.
    flush_asked_ns: Option<u64>,
    in_device: HashMap<u64, Vec<Issued>>,
    flushes: VecDeque<Issued>,
    depth: u32,
    /// Processors of which events are being lost.
    blind: u32,
}

impl Requests {
    /// Requests that were issued and not done.
    pub fn open(&self) -> u32 {
        self.depth
    }

    /// Forgets all that is in flight: events were lost, and what has become of it is unknown.
    fn forget(&mut self) {
        *self = Self { blind: self.blind, ..Self::default() };
    }

    /// Takes an event. While events are being lost, those that are there have no meaning.
    pub fn take(&mut self, event: &Event) -> Option<Happened> {
        match event.step {
            Step::Blind => {
                self.blind += 1;
                self.forget();
                None
            }
            Step::Seeing => {
                self.blind = self.blind.saturating_sub(1);
                self.forget();
                None
            }
            // Which bios a request carries is known from its sectors.
            Step::BackMerge | Step::FrontMerge => None,
            _ if self.blind > 0 => None,
            Step::Queue => {
                self.queue(event);
                None
            }
            Step::Issue => self.issue(event).map(Happened::Issued),
            Step::Requeue => {
                self.requeue(event);
                None
            }
            Step::Complete => self.complete(event),
        }
    }

    fn queue(&mut self, event: &Event) {
        if event.flush_first {
            self.flush_asked_ns.get_or_insert(event.at_ns);
        }
        if event.sectors == 0 {
            return;
        }
        if self.waiting as usize >= WAITING_MAX {
            self.bios.clear();
            self.waiting = 0;
        }
        self.wait(event.sector, Bio { queued_ns: event.at_ns, sectors: event.sectors });
    }

    fn wait(&mut self, sector: u64, bio: Bio) {
        self.bios.entry(sector).or_default().push_back(bio);
        self.waiting += 1;
    }

    fn issue(&mut self, event: &Event) -> Option<Issued> {
        let flush = event.kind == Kind::Flush;
        if event.sectors == 0 && !flush {
            return None; // it moves no data: passed through to the driver
        }
        let (queued_ns, bios) =
            if flush { (self.flush_asked_ns.take(), 0) } else { self.take_bios(event.sector, event.sectors) };
        self.depth += 1;
        let issued = Issued {
            at_ns: event.at_ns,
            kind: event.kind,
            sector: event.sector,
            bytes: u64::from(event.sectors) * 512,
            queued_ns,
            bios,
            depth: self.depth,
            waiting: self.waiting,
        };
        if flush {
            self.flushes.push_back(issued);
        } else {
            self.in_device.entry(event.sector).or_default().push(issued);
        }
        Some(issued)
    }

    /// Takes the bios that cover a request; returns when the earliest was queued, and how many they were.
    fn take_bios(&mut self, first: u64, sectors: u32) -> (Option<u64>, u32) {
        let end = first.saturating_add(u64::from(sectors));
        let (mut at, mut earliest, mut bios) = (first, None, 0);
        while at < end {
            let Some(bio) = self.take_bio(at) else { break };
            earliest = Some(earliest.map_or(bio.queued_ns, |known: u64| known.min(bio.queued_ns)));
            bios += 1;
            let behind = at.saturating_add(u64::from(bio.sectors));
            if behind > end {
                self.wait(end, Bio { sectors: (behind - end) as u32, ..bio });
            }
            at = behind;
        }
        (earliest, bios)
    }

    fn take_bio(&mut self, sector: u64) -> Option<Bio> {
        let waiting = self.bios.get_mut(&sector)?;
        let bio = waiting.pop_front()?;
        if waiting.is_empty() {
            self.bios.remove(&sector);
        }
        self.waiting -= 1;
        Some(bio)
    }

    fn requeue(&mut self, event: &Event) {
        let Some(issued) = self.take_issued(event) else { return };
        let queued_ns = issued.queued_ns.unwrap_or(issued.at_ns);
        if issued.kind == Kind::Flush {
            self.flush_asked_ns = Some(queued_ns);
        } else {
            self.wait(event.sector, Bio { queued_ns, sectors: event.sectors });
        }
    }

    fn complete(&mut self, event: &Event) -> Option<Happened> {
        if event.sectors == 0 && event.kind != Kind::Flush {
            // A write that was flushed around ends twice, the second time behind its last sector.
            return (event.kind == Kind::Write && event.sector == 0).then_some(Happened::FlushOnly);
        }
        let Some(issued) = self.take_issued(event) else { return Some(Happened::Unmatched) };
        let done = u64::from(event.sectors) * 512;
        if done < issued.bytes {
            // The driver did a part of it; the rest goes on from there.
            let rest = Issued {
                sector: issued.sector.saturating_add(u64::from(event.sectors)),
                bytes: issued.bytes - done,
                ..issued
            };
            self.in_device.entry(rest.sector).or_default().push(rest);
            self.depth += 1;
            return None;
        }
        Some(Happened::Completed(Completed { at_ns: event.at_ns, issued, failed: event.failed }))
    }

    /// Takes the request that an event speaks of out of the device: of several at one sector, that of the event's
    /// length.
    fn take_issued(&mut self, event: &Event) -> Option<Issued> {
        let request = if event.kind == Kind::Flush {
            self.flushes.pop_front()?
        } else {
            let there = self.in_device.get_mut(&event.sector)?;
            let bytes = u64::from(event.sectors) * 512;
            let alike = |issued: &Issued| issued.kind == event.kind && issued.bytes == bytes;
            let longer = |issued: &Issued| issued.kind == event.kind && issued.bytes > bytes;
            let place = there.iter().position(alike).or_else(|| there.iter().position(longer))?;
            let request = there.remove(place);
            if there.is_empty() {
                self.in_device.remove(&event.sector);
            }
            request
        };
        self.depth -= 1;
        Some(request)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn event(at_ns: u64, step: Step, sector: u64, sectors: u32) -> Event {
        Event { kind: Kind::Write, sector, sectors, ..Event::gap(at_ns, step) }
    }

    fn flush(at_ns: u64, step: Step) -> Event {
        Event { kind: Kind::Flush, flush_first: true, ..event(at_ns, step, u64::MAX, 0) }
    }

    fn all(events: &[Event]) -> (Vec<Happened>, Requests) {
        let mut requests = Requests::default();
        (events.iter().filter_map(|event| requests.take(event)).collect(), requests)
    }

    fn issued(happened: Happened) -> Issued {
        match happened {
            Happened::Issued(issued) => issued,
            other => panic!("{other:?} is no issue"),
        }
    }

    #[test]
    fn a_request_has_its_times() {
        let steps = [event(5, Step::Queue, 8, 8), event(9, Step::Issue, 8, 8), event(20, Step::Complete, 8, 8)];
        let (outcomes, requests) = all(&steps);
        let request = issued(outcomes[0]);
        assert_eq!(
            (request.queued_ns, request.at_ns, request.bytes, request.bios, request.depth, request.waiting),
            (Some(5), 9, 4096, 1, 1, 0)
        );
        assert_eq!(outcomes[1], Happened::Completed(Completed { at_ns: 20, issued: request, failed: false }));
        assert_eq!(requests.open(), 0);
    }

    #[test]
    fn merged_bios_go_along_and_the_earliest_counts() {
        // The second was merged behind the first, the third before it.
        let queued = [event(5, Step::Queue, 8, 8), event(6, Step::Queue, 16, 8), event(7, Step::Queue, 0, 8)];
        let (outcomes, _) = all(&[&queued[..], &[event(9, Step::Issue, 0, 24)]].concat());
        let request = issued(outcomes[0]);
        assert_eq!((request.queued_ns, request.bios, request.waiting), (Some(5), 3, 0));
    }

    #[test]
    fn a_split_bio_gives_its_time_to_both_parts() {
        let events = [event(5, Step::Queue, 0, 2048), event(7, Step::Issue, 0, 1088), event(9, Step::Issue, 1088, 960)];
        let (outcomes, _) = all(&events);
        let parts: Vec<_> =
            outcomes.into_iter().map(issued).map(|request| (request.queued_ns, request.waiting)).collect();
        assert_eq!(parts, [(Some(5), 1), (Some(5), 0)]);
    }

    #[test]
    fn two_bios_at_one_sector_are_two_requests() {
        let both = [event(5, Step::Queue, 0, 8), event(6, Step::Queue, 0, 8)];
        let (outcomes, requests) =
            all(&[&both[..], &[event(7, Step::Issue, 0, 8), event(8, Step::Issue, 0, 8)]].concat());
        let times: Vec<_> =
            outcomes.into_iter().map(issued).map(|request| (request.queued_ns, request.depth)).collect();
        assert_eq!(times, [(Some(5), 1), (Some(6), 2)]);
        assert_eq!(requests.open(), 2);
    }

    #[test]
    fn what_the_driver_could_not_take_waits_again_from_its_first_time() {
        let (outcomes, _) = all(&[
            event(5, Step::Queue, 0, 8),
            event(7, Step::Issue, 0, 8),
            event(8, Step::Requeue, 0, 8),
            event(30, Step::Issue, 0, 8),
        ]);
        let again = issued(outcomes[1]);
        assert_eq!((again.queued_ns, again.depth), (Some(5), 1));
    }

    #[test]
    fn a_request_done_in_two_parts_is_one() {
        let (outcomes, requests) =
            all(&[event(5, Step::Issue, 0, 16), event(7, Step::Complete, 0, 8), event(9, Step::Complete, 8, 8)]);
        assert_eq!(outcomes.len(), 2);
        assert!(matches!(outcomes[1], Happened::Completed(done) if done.at_ns == 9 && done.issued.at_ns == 5));
        assert_eq!(requests.open(), 0);
    }

    #[test]
    fn one_flush_serves_all_who_asked() {
        let barrier = |at_ns| Event { flush_first: true, ..event(at_ns, Step::Queue, 0, 0) };
        let (outcomes, _) = all(&[
            barrier(5),
            barrier(6),
            flush(8, Step::Issue),
            flush(20, Step::Complete),
            event(21, Step::Complete, 0, 0), // the empty writes that asked end too
            event(21, Step::Complete, 0, 0),
            event(22, Step::Complete, 64, 0), // the second end of a write with data
        ]);
        let request = issued(outcomes[0]);
        assert_eq!((request.kind, request.queued_ns, request.bytes), (Kind::Flush, Some(5), 0));
        assert!(matches!(outcomes[1], Happened::Completed(done) if done.at_ns == 20));
        assert_eq!(outcomes[2..], [Happened::FlushOnly, Happened::FlushOnly]);
    }

    #[test]
    fn what_was_not_seen_is_unknown() {
        let (outcomes, requests) = all(&[event(7, Step::Issue, 0, 8), event(8, Step::Complete, 99, 8)]);
        assert_eq!(issued(outcomes[0]).queued_ns, None);
        assert_eq!(outcomes[1], Happened::Unmatched);
        assert_eq!(requests.open(), 1);
    }

    #[test]
    fn what_was_under_way_when_events_were_lost_is_left_out() {
        let (outcomes, requests) = all(&[
            event(5, Step::Queue, 0, 8),
            event(6, Step::Issue, 0, 8),
            Event::gap(7, Step::Blind),
            event(8, Step::Issue, 8, 8),
            Event::gap(9, Step::Seeing),
            event(10, Step::Complete, 0, 8),
            event(11, Step::Issue, 16, 8),
        ]);
        assert_eq!(outcomes.len(), 3);
        assert_eq!(outcomes[1], Happened::Unmatched);
        assert_eq!((issued(outcomes[2]).depth, requests.open()), (1, 1));
    }

    fn any_event() -> impl Strategy<Value = Event> {
        let kernels = prop_oneof![Just(Step::Queue), Just(Step::Issue), Just(Step::Requeue), Just(Step::Complete)];
        let steps = prop_oneof![20 => kernels, 1 => Just(Step::Blind), 1 => Just(Step::Seeing)];
        let kinds = prop_oneof![Just(Kind::Read), Just(Kind::Write), Just(Kind::Flush), Just(Kind::Other)];
        let sectors = prop_oneof![Just(u64::MAX), 0u64..40];
        (steps, kinds, any::<bool>(), sectors, 0u32..20).prop_map(|(step, kind, flush_first, sector, sectors)| Event {
            kind,
            flush_first,
            sector,
            sectors,
            ..Event::gap(0, step)
        })
    }

    proptest! {
        /// Events of any kind in any order: nothing panics, and what is open is what was issued and not done.
        #[test]
        fn the_books_balance(events in proptest::collection::vec(any_event(), 0..200)) {
            let mut requests = Requests::default();
            for event in &events {
                requests.take(event);
                let there = requests.in_device.values().map(Vec::len).sum::<usize>() + requests.flushes.len();
                prop_assert_eq!(requests.open() as usize, there);
                prop_assert_eq!(requests.waiting as usize, requests.bios.values().map(VecDeque::len).sum::<usize>());
            }
        }

        /// Requests that come, go to the device and end in any order get their own times.
        #[test]
        fn every_request_gets_its_own_times(order in Just((0u64..40).collect::<Vec<_>>()).prop_shuffle()) {
            let mut requests = Requests::default();
            for number in 0..40 {
                requests.take(&event(number, Step::Queue, number * 8, 8));
            }
            for number in &order {
                let request = issued(requests.take(&event(100 + number, Step::Issue, number * 8, 8)).unwrap());
                prop_assert_eq!(request.queued_ns, Some(*number));
            }
            for number in order.iter().rev() {
                let Some(Happened::Completed(done)) = requests.take(&event(200, Step::Complete, number * 8, 8)) else {
                    panic!("not done");
                };
                prop_assert_eq!(done.issued.at_ns, 100 + number);
            }
        }
    }
}
