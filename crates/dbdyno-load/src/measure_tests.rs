use super::*;

#[derive(Default)]
struct Seen(Vec<(u64, u64, u64, u64)>);

impl IntervalSink for Seen {
    fn interval(&mut self, i: &Interval<'_>) -> std::io::Result<()> {
        self.0.push((i.start_ns, i.end_ns, i.queries.count(), i.errors));
        Ok(())
    }
}

#[test]
fn every_answer_is_in_one_interval_and_silence_is_shown() {
    let mut seen = Seen::default();
    let mut recorder = Recorder::new(0, 100, Some(&mut seen));
    recorder.start(1000);
    recorder.answered(Operation::Insert, 5, 1005);
    recorder.answered(Operation::Select, 7, 1099);
    recorder.answered(Operation::Commit, 7, 1099);
    recorder.answered(Operation::Insert, 250, 1350);
    let error = ServerError::parse(b"\xff\x26\x04#23000dup").unwrap();
    recorder.refused(Operation::Insert, &error, 1360);
    recorder.finish(1380);
    let (total, errors, _) = recorder.into_totals();
    assert_eq!(seen.0, [(1000, 1100, 2, 0), (1100, 1200, 0, 0), (1200, 1300, 0, 0), (1300, 1380, 1, 1)]);
    assert_eq!(total[Operation::Insert as usize].count(), 2);
    assert_eq!(total[Operation::Insert as usize].summary().max, Some(250));
    assert_eq!(errors.list()[0].count, 1);
}

#[test]
fn a_summary_keeps_three_digits() {
    let mut latencies = Latencies::default();
    for value in 1..=100_000 {
        latencies.record(value * 1000);
    }
    let summary = latencies.summary();
    assert_eq!((summary.min, summary.max), (Some(1000), Some(100_000_000)));
    let p99 = summary.p99.unwrap() as f64;
    assert!((p99 / 99_000_000.0 - 1.0).abs() < 1e-3, "{p99}");
    assert_eq!(Latencies::default().summary(), Summary::default());
}

#[test]
fn operations_are_told_by_their_first_word() {
    assert_eq!(Operation::of("  Replace into t"), Operation::Insert);
    assert_eq!(Operation::of("call p()"), Operation::Other);
    for (number, operation) in Operation::ALL.into_iter().enumerate() {
        assert_eq!(operation as usize, number);
    }
}
