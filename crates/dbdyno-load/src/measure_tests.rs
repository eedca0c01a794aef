use super::*;
use crate::statements::Part;

#[derive(Default)]
struct Seen {
    intervals: Vec<(u64, u64, u64, u64)>,
    rows: Vec<u64>,
}

fn kinds() -> Arc<[Kind]> {
    Arc::new([Kind::query("insert"), Kind::query("select"), Kind::apart("commit")])
}

impl IntervalSink for Seen {
    fn interval(&mut self, i: &Interval) -> io::Result<()> {
        self.intervals.push((i.start_ns, i.end_ns, i.tally.queries(&kinds()), i.tally.errors));
        Ok(())
    }

    fn rows(&mut self, rows: u64, _: u64, _: u64) -> io::Result<()> {
        self.rows.push(rows);
        Ok(())
    }
}

fn terms() -> Terms {
    Terms { run: 0, kinds: kinds(), phases: 2, interval_ns: 100, report_rows: Some(10) }
}

fn said(kind: u16, phase: u8) -> Statement {
    Statement { kind, part: Part::Last, rows: 0, phase }
}

#[test]
fn every_answer_is_in_one_interval_and_silence_is_shown() {
    let mut seen = Seen::default();
    let mut recorder = Recorder::new(terms(), Some(&mut seen));
    recorder.start(1000);
    recorder.answered(said(0, 0), 1000, 1005);
    recorder.answered(said(1, 0), 1000, 1099);
    recorder.answered(said(2, 0), 1000, 1099);
    recorder.pass_time(1350);
    recorder.answered(said(0, 1), 1100, 1350);
    let error = ServerError::parse(b"\xff\x26\x04#23000dup", 12).unwrap();
    recorder.refused(0, &error);
    recorder.finish(1380);
    let totals = recorder.into_totals();
    assert_eq!(seen.intervals, [(1000, 1100, 2, 0), (1100, 1200, 0, 0), (1200, 1300, 0, 0), (1300, 1380, 1, 1)]);
    assert_eq!(totals.tally.kinds[0].count(), 2);
    assert_eq!(totals.tally.kinds[0].summary().max, Some(250));
    assert_eq!(totals.errors.list(&kinds())[0].count, 1);
    let spans = [Some(Span { start_ns: 1000, end_ns: 1099 }), Some(Span { start_ns: 1100, end_ns: 1350 })];
    assert_eq!(totals.spans, spans);
}

#[test]
fn rows_are_told_of_when_they_pass_a_multiple() {
    let mut seen = Seen::default();
    let mut recorder = Recorder::new(terms(), Some(&mut seen));
    for before in [0, 4, 8, 12, 16] {
        recorder.rows_passed(before, 4, 0);
    }
    assert_eq!(seen.rows, [12, 20]);
}

#[test]
fn threads_add_up() {
    let mut sum = Totals::default();
    for start in [1000, 2000] {
        let mut recorder = Recorder::new(terms(), None);
        recorder.start(start);
        recorder.answered(said(1, 0), start, start + 7);
        recorder.gauge(Gauges { offered: 3, backlog: 1, backlog_max: 2, offered_for_ns: start });
        recorder.started_late(start);
        recorder.finish(start + 50);
        sum.add(recorder.into_totals());
    }
    assert_eq!((sum.tally.queries(&kinds()), sum.tally.kinds[1].count()), (2, 2));
    assert_eq!(sum.gauges, Gauges { offered: 6, backlog: 2, backlog_max: 4, offered_for_ns: 2000 });
    assert_eq!((sum.lateness.count(), sum.lateness.summary().max), (2, Some(2000)));
    assert_eq!(sum.spans, [Some(Span { start_ns: 1000, end_ns: 2007 }), None]);
}
