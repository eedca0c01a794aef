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
    let (found, requests) = all(&steps);
    let one = issued(found[0]);
    assert_eq!((one.queued_ns, one.at_ns, one.bytes, one.bios, one.depth, one.waiting), (Some(5), 9, 4096, 1, 1, 0));
    assert_eq!(found[1], Happened::Completed(Completed { at_ns: 20, issued: one, failed: false }));
    assert_eq!(requests.open(), 0);
}

#[test]
fn merged_bios_go_along_and_the_earliest_counts() {
    // The second was merged behind the first, the third before it.
    let queued = [event(5, Step::Queue, 8, 8), event(6, Step::Queue, 16, 8), event(7, Step::Queue, 0, 8)];
    let (found, _) = all(&[&queued[..], &[event(9, Step::Issue, 0, 24)]].concat());
    let one = issued(found[0]);
    assert_eq!((one.queued_ns, one.bios, one.waiting), (Some(5), 3, 0));
}

#[test]
fn a_split_bio_gives_its_time_to_both_parts() {
    let events = [event(5, Step::Queue, 0, 2048), event(7, Step::Issue, 0, 1088), event(9, Step::Issue, 1088, 960)];
    let (found, _) = all(&events);
    let parts: Vec<_> = found.into_iter().map(issued).map(|one| (one.queued_ns, one.waiting)).collect();
    assert_eq!(parts, [(Some(5), 1), (Some(5), 0)]);
}

#[test]
fn two_bios_at_one_sector_are_two_requests() {
    let both = [event(5, Step::Queue, 0, 8), event(6, Step::Queue, 0, 8)];
    let (found, requests) = all(&[&both[..], &[event(7, Step::Issue, 0, 8), event(8, Step::Issue, 0, 8)]].concat());
    let times: Vec<_> = found.into_iter().map(issued).map(|one| (one.queued_ns, one.depth)).collect();
    assert_eq!(times, [(Some(5), 1), (Some(6), 2)]);
    assert_eq!(requests.open(), 2);
}

#[test]
fn what_the_driver_could_not_take_waits_again_from_its_first_time() {
    let (found, _) = all(&[
        event(5, Step::Queue, 0, 8),
        event(7, Step::Issue, 0, 8),
        event(8, Step::Requeue, 0, 8),
        event(30, Step::Issue, 0, 8),
    ]);
    let again = issued(found[1]);
    assert_eq!((again.queued_ns, again.depth), (Some(5), 1));
}

#[test]
fn a_request_done_in_two_parts_is_one() {
    let (found, requests) =
        all(&[event(5, Step::Issue, 0, 16), event(7, Step::Complete, 0, 8), event(9, Step::Complete, 8, 8)]);
    assert_eq!(found.len(), 2);
    assert!(matches!(found[1], Happened::Completed(done) if done.at_ns == 9 && done.issued.at_ns == 5));
    assert_eq!(requests.open(), 0);
}

#[test]
fn one_flush_serves_all_who_asked() {
    let asked = |at_ns| Event { flush_first: true, ..event(at_ns, Step::Queue, 0, 0) };
    let (found, _) = all(&[
        asked(5),
        asked(6),
        flush(8, Step::Issue),
        flush(20, Step::Complete),
        event(21, Step::Complete, 0, 0), // the empty writes that asked end too
        event(21, Step::Complete, 0, 0),
        event(22, Step::Complete, 64, 0), // the second end of a write with data
    ]);
    let one = issued(found[0]);
    assert_eq!((one.kind, one.queued_ns, one.bytes), (Kind::Flush, Some(5), 0));
    assert!(matches!(found[1], Happened::Completed(done) if done.at_ns == 20));
    assert_eq!(found[2..], [Happened::FlushAsked, Happened::FlushAsked]);
}

#[test]
fn what_was_not_seen_is_unknown() {
    let (found, requests) = all(&[event(7, Step::Issue, 0, 8), event(8, Step::Complete, 99, 8)]);
    assert_eq!(issued(found[0]).queued_ns, None);
    assert_eq!(found[1], Happened::Unmatched);
    assert_eq!(requests.open(), 1);
}

#[test]
fn what_was_under_way_when_events_were_lost_is_left_out() {
    let (found, requests) = all(&[
        event(5, Step::Queue, 0, 8),
        event(6, Step::Issue, 0, 8),
        Event::gap(7, Step::Blind),
        event(8, Step::Issue, 8, 8),
        Event::gap(9, Step::Seeing),
        event(10, Step::Complete, 0, 8),
        event(11, Step::Issue, 16, 8),
    ]);
    assert_eq!(found.len(), 3);
    assert_eq!(found[1], Happened::Unmatched);
    assert_eq!((issued(found[2]).depth, requests.open()), (1, 1));
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
            let found = issued(requests.take(&event(100 + number, Step::Issue, number * 8, 8)).unwrap());
            prop_assert_eq!(found.queued_ns, Some(*number));
        }
        for number in order.iter().rev() {
            let Some(Happened::Completed(done)) = requests.take(&event(200, Step::Complete, number * 8, 8)) else {
                panic!("not done");
            };
            prop_assert_eq!(done.issued.at_ns, 100 + number);
        }
    }
}
