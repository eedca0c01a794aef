//! States after a power cut that are taken while the load goes on, and the content of one of them. Which writes survive
//! is drawn in `cut_recorder`; what a cut takes that ends the run, in `power_cut`.

use std::path::PathBuf;
use std::sync::Arc;

use dbdyno_common::similar::did_you_mean;
use serde_json::{Value, json};

use super::cut_recorder::{CutRecord, Draw, Fork, Recorder, Recording, Survived, Survivors, Trigger};
use super::log::Log;
use super::store::ContentError;
use super::{Content, Inner};
use crate::process::monotonic_ns;

impl Content {
    /// Begins to record writes, so that cuts can be taken; what was written so far counts as durable. A write that is
    /// durable is kept `hold_ns` longer. Refused for content in a file; the error is for people. If it is armed
    /// already, only `hold_ns` changes.
    pub fn arm_cuts(&self, hold_ns: u64) -> Result<(), String> {
        let mut inner = self.lock();
        let Inner { store, recording, volatile, .. } = &mut *inner;
        if let Some(recorder) = &mut recording.recorder {
            recorder.log.hold_ns = hold_ns;
            return Ok(());
        }
        let image = store.image().ok_or("cuts need content in memory; attach the disk without --content")?;
        let log = Log::new(image, recording.next + 1, hold_ns, *volatile, self.usage.clone());
        recording.recorder = Some(Recorder::new(log));
        Ok(())
    }

    /// Has another disk, known by its control socket, take each cut too. The disks must stand in line, not in a circle.
    pub fn cut_with(&self, next: Option<PathBuf>) {
        if let Some(recorder) = &mut self.lock().recording.recorder {
            recorder.next = next;
        }
    }

    /// Ends the recording; the cuts that were taken stay, those that still wait are forgotten.
    pub fn disarm_cuts(&self) {
        let mut inner = self.lock();
        let recorder = inner.recording.recorder.take();
        if let Some(recorder) = &recorder {
            inner.recording.next = recorder.log.after();
        }
        drop(inner);
        drop(recorder);
    }

    /// Takes the state that a power cut now would find.
    pub fn cut(&self, name: &str) -> Result<CutRecord, String> {
        let mut inner = self.lock();
        let fork = inner.recording.for_cut(name)?.cut(name, monotonic_ns);
        let taken = fork.taken.clone();
        inner.recording.forks.insert(name.to_owned(), fork);
        Ok(taken)
    }

    /// Has the disk take a cut by itself.
    pub fn cut_on(&self, trigger: Trigger) -> Result<(), String> {
        let trigger = trigger.checked()?;
        self.lock().recording.for_cut(&trigger.name)?.triggers.push(trigger);
        Ok(())
    }

    /// The cuts that were taken, by time.
    pub fn cuts(&self) -> Vec<CutRecord> {
        let mut taken: Vec<CutRecord> = self.lock().recording.forks.values().map(|fork| fork.taken.clone()).collect();
        taken.sort_by_key(|taken| taken.cut_ns);
        taken
    }

    /// Makes the live content that of a cut, with survivors drawn by `seed`. All of it is durable, and the cut stays.
    /// The same cut, survivors and seed give the same bytes.
    pub fn restore_cut(&self, name: &str, survivors: Survivors, seed: u64) -> Result<Survived, String> {
        let fork = self.fork(name)?;
        let mut image = fork.base.clone();
        let draw = Draw::new(&fork.writes, survivors, fork.moment(), seed);
        let failed = |error: ContentError| crate::steer::refusal(error).to_owned();
        let survived = draw.apply(&mut image, &self.usage, self.held_bytes_max).map_err(failed)?;
        self.replace(|store| store.set_image(image)).map_err(failed)?;
        Ok(survived)
    }

    /// Forgets a cut, or one that is still to be taken.
    pub fn forget_cut(&self, name: &str) -> Result<(), String> {
        let mut inner = self.lock();
        let fork = inner.recording.forks.remove(name);
        let waited = inner.recording.recorder.as_mut().is_some_and(|recorder| recorder.forget(name));
        drop(inner);
        if fork.is_some() || waited { Ok(()) } else { Err(self.unknown_cut(name)) }
    }

    /// Forgets all cuts, and those that are still to be taken.
    pub fn forget_cuts(&self) {
        let mut inner = self.lock();
        let forks = std::mem::take(&mut inner.recording.forks);
        if let Some(recorder) = &mut inner.recording.recorder {
            recorder.forget_all();
        }
        drop(inner);
        drop(forks);
    }

    /// What is recorded, in numbers.
    pub fn cuts_json(&self) -> Value {
        let inner = self.lock();
        let Recording { recorder, forks, .. } = &inner.recording;
        let Some(Recorder { log, triggers, .. }) = recorder else {
            return json!({"armed": false, "taken": forks.len()});
        };
        json!({
            "armed": true,
            "taken": forks.len(),
            "waiting": triggers.len(),
            "hold_ns": log.hold_ns,
            "logged_bytes": log.logged_bytes(),
            "unflushed": log.at_risk,
            "unflushed_peak": log.peak,
            "limit_reached": log.is_limited(monotonic_ns()),
        })
    }

    pub(super) fn fork(&self, name: &str) -> Result<Arc<Fork>, String> {
        let fork = self.lock().recording.forks.get(name).map(Arc::clone);
        fork.ok_or_else(|| self.unknown_cut(name))
    }

    fn unknown_cut(&self, name: &str) -> String {
        let known: Vec<String> = self.lock().recording.forks.keys().cloned().collect();
        let hint = did_you_mean(name, known.iter().map(String::as_str));
        let known = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
        format!("there is no cut {name:?}; there are: {known}{hint}")
    }
}

#[cfg(test)]
mod tests {
    //! States after a power cut, held against a plain account of every sector's versions.

    use proptest::prelude::*;

    use super::*;
    use crate::content::Ticket;
    use crate::content::cut_recorder::{CutOn, Survivors, Trigger};

    const SIZE: u64 = 64 << 20;
    const SECTORS: usize = 128;
    const ALL: [Survivors; 7] = [
        Survivors::None,
        Survivors::Random512,
        Survivors::Random4096,
        Survivors::Prefix,
        Survivors::Requests,
        Survivors::Versions,
        Survivors::Lying,
    ];
    const HOLD_NS: u64 = u64::MAX >> 2; // all that was ever flushed may be held back

    /// The first byte of each sector, which all of the sector has.
    fn sectors_of(content: &Content) -> Vec<u8> {
        let bytes = content.read(0, SECTORS * 512, |data| data.unwrap().to_vec());
        let uniform = |sector: &[u8]| sector == [sector[0]; 512];
        assert!(bytes.chunks(512).all(uniform), "torn within a sector");
        bytes.chunks(512).map(|sector| sector[0]).collect()
    }

    /// A write as it stands: first sector, first after, what is in it, and how far it is.
    #[derive(Clone)]
    struct Account {
        range: (usize, usize),
        value: u8,
        ticket: Ticket,
        is_answered: bool,
        is_durable: bool,
    }

    impl Account {
        fn touches(&self, sector: usize) -> bool {
            (self.range.0..self.range.1).contains(&sector)
        }
    }

    /// A content, what was done to it, and the forks with what was known of each at its time.
    struct Played {
        content: Content,
        writes: Vec<Account>,
        /// FLUSH commands in flight, each with the number of writes that had been answered when it arrived.
        flushes: Vec<(Ticket, Vec<bool>)>,
        forks: Vec<(String, Vec<Account>)>,
        volatile: bool,
    }

    type Step = (u8, usize, usize);

    impl Played {
        fn new(volatile: bool, hold_ns: u64) -> Self {
            let content = Content::in_memory(SIZE, SIZE);
            content.set_volatile(volatile);
            content.arm_cuts(hold_ns).unwrap();
            Self { content, writes: Vec::new(), flushes: Vec::new(), forks: Vec::new(), volatile }
        }

        fn answer(&mut self, at: usize, forced: bool) {
            self.content.answered(self.writes[at].ticket, forced);
            self.writes[at].is_answered = true;
            self.writes[at].is_durable |= forced || !self.volatile;
        }

        fn step(&mut self, round: u8, (what, sector, length): Step) {
            let (offset, bytes, range) = (sector as u64 * 512, length * 512, (sector, sector + length));
            let unanswered: Vec<usize> = (0..self.writes.len()).filter(|at| !self.writes[*at].is_answered).collect();
            match what {
                0..=3 => {
                    let value = if what == 3 { 0 } else { round };
                    let ticket = match what {
                        3 => self.content.discard(offset, bytes as u64).unwrap(),
                        _ => self.content.write(offset, &vec![value; bytes]).unwrap(),
                    };
                    self.writes.push(Account { range, value, ticket, is_answered: false, is_durable: false });
                }
                4..=6 if !unanswered.is_empty() => self.answer(unanswered[sector % unanswered.len()], what == 6),
                7 => {
                    let answered = self.writes.iter().map(|write| write.is_answered).collect();
                    self.flushes.push((self.content.seal(), answered));
                }
                8 if !self.flushes.is_empty() => {
                    let (ticket, answered) = self.flushes.remove(sector % self.flushes.len());
                    assert!(self.content.flushed(ticket));
                    for (write, answered) in self.writes.iter_mut().zip(answered) {
                        write.is_durable |= answered;
                    }
                }
                9 => {
                    let name = format!("at {round}");
                    self.content.cut(&name).unwrap();
                    self.forks.push((name, self.writes.clone()));
                }
                _ => {}
            }
        }
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        prop::collection::vec((0_u8..10, 0..SECTORS - 40, 1_usize..40), 1..80)
    }

    /// What a sector may hold: its durable value, then each later one.
    fn possible(writes: &[Account], sector: usize) -> Vec<u8> {
        let mut values = vec![0];
        for write in writes.iter().filter(|write| write.touches(sector)) {
            if write.is_durable {
                values.clear();
            }
            values.push(write.value);
        }
        values
    }

    fn check(survivors: Survivors, writes: &[Account], content: &[u8]) {
        let after = |kept: &dyn Fn(usize, &Account) -> bool| -> Vec<u8> {
            let value = |sector| {
                let last =
                    |(at, write): &(usize, &Account)| write.touches(sector) && (write.is_durable || kept(*at, write));
                writes.iter().enumerate().filter(last).last().map_or(0, |(_, write)| write.value)
            };
            (0..SECTORS).map(value).collect()
        };
        for (sector, value) in content.iter().enumerate() {
            let values = possible(writes, sector);
            match survivors {
                Survivors::None => assert_eq!(*value, values[0], "sector {sector}"),
                Survivors::Random512 => {
                    assert!([values[0], values[values.len() - 1]].contains(value), "sector {sector}");
                }
                Survivors::Lying => {} // checked below
                _ => assert!(values.contains(value), "{survivors:?}: sector {sector} has {value}, not of {values:?}"),
            }
        }
        match survivors {
            Survivors::Prefix => {
                let is_prefix = (0..=writes.len()).any(|end| after(&|at, _| at < end) == content);
                assert!(is_prefix, "no prefix");
            }
            Survivors::Requests => {
                for (at, write) in writes.iter().enumerate().filter(|(_, write)| write.value != 0) {
                    let hidden = |sector| writes[at + 1..].iter().any(|later| later.touches(sector));
                    let seen: Vec<bool> = (write.range.0..write.range.1)
                        .filter(|sector| !hidden(*sector))
                        .map(|sector| content[sector] == write.value)
                        .collect();
                    assert!(seen.windows(2).all(|two| two[0] == two[1]), "a request is torn");
                }
            }
            Survivors::Lying => {
                let lied = |end: usize| -> Vec<u8> {
                    let value = |sector| {
                        let last = writes[..end].iter().rfind(|write| write.touches(sector));
                        last.map_or(0, |write| write.value)
                    };
                    (0..SECTORS).map(value).collect()
                };
                assert!((0..=writes.len()).any(|end| lied(end) == content), "not in order");
            }
            _ => {}
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        /// Forks of any history hold, by every survivor model, what that model allows, on drives with and without a
        /// volatile cache; live content and other forks do not change by it.
        #[test]
        fn every_state_is_one_that_a_cut_could_leave(steps in steps(), volatile: bool, seed: u64) {
            let mut played = Played::new(volatile, HOLD_NS);
            for (round, step) in (1..).zip(steps) {
                played.step(round, step);
            }
            played.step(255, (9, 0, 1));
            let live: Vec<u8> = (0..SECTORS).map(|sector| {
                played.writes.iter().rfind(|write| write.touches(sector)).map_or(0, |write| write.value)
            }).collect();
            assert_eq!(sectors_of(&played.content), live);
            for survivors in ALL {
                for (name, writes) in &played.forks {
                    let first = played.content.restore_cut(name, survivors, seed).unwrap();
                    let sectors = sectors_of(&played.content);
                    match survivors {
                        Survivors::Lying if !volatile => check(Survivors::Prefix, writes, &sectors),
                        _ => check(survivors, writes, &sectors),
                    }
                    assert!(first.writes_lost <= first.writes_unflushed && first.sectors_lost <= first.sectors_unflushed);
                    assert!(first.sectors_lost == 0 || first.writes_lost > 0);
                    played.content.write(0, &vec![254; SECTORS * 512]).unwrap();
                    assert_eq!(played.content.restore_cut(name, survivors, seed).unwrap(), first, "another draw");
                    assert_eq!(sectors_of(&played.content), sectors, "another state");
                }
            }
        }

        /// What was restored is durable, and the disk that is armed on it forks again from there.
        #[test]
        fn a_restored_state_is_durable_and_may_be_cut_again(steps in steps(), seed: u64) {
            let mut played = Played::new(true, 0);
            for (round, step) in (1..).zip(steps) {
                played.step(round, step);
            }
            played.content.cut("one").unwrap();
            played.content.restore_cut("one", Survivors::Random512, seed).unwrap();
            let sectors = sectors_of(&played.content);
            played.content.write(0, &vec![254; SECTORS * 512]).unwrap();
            played.content.cut("two").unwrap();
            let survived = played.content.restore_cut("two", Survivors::None, seed).unwrap();
            assert_eq!((survived.writes_unflushed, survived.writes_lost), (1, 1));
            assert_eq!(sectors_of(&played.content), sectors);
        }
    }

    fn armed(volatile: bool, hold_ns: u64) -> Content {
        Played::new(volatile, hold_ns).content
    }

    fn write(content: &Content, sector: u64, value: u8) -> Ticket {
        content.write(sector * 512, &[value; 512]).unwrap()
    }

    /// The first sector after a cut that was taken, with these survivors.
    fn first_after(content: &Content, name: &str, survivors: Survivors) -> u8 {
        content.restore_cut(name, survivors, 0).unwrap();
        sectors_of(content)[0]
    }

    fn on(name: &str, on: CutOn, nth: u64, ranges_bytes: &[(u64, u64)], seed: u64) -> Trigger {
        Trigger { name: name.into(), on, nth, ranges_bytes: ranges_bytes.to_vec(), seed }
    }

    #[test]
    fn a_cut_at_a_flush_finds_it_in_flight_whatever_the_seed() {
        let mut written_meanwhile = [0; 2];
        for seed in 0..40 {
            let content = armed(true, 0);
            content.cut_on(on("f", CutOn::Flush, 2, &[], seed)).unwrap();
            content.answered(write(&content, 0, 1), false);
            assert!(content.flushed(content.seal()));
            assert!(content.cuts().is_empty(), "that was the first");
            content.answered(write(&content, 0, 2), false);
            let sealed = content.seal();
            content.answered(write(&content, 1, 3), false);
            assert!(content.flushed(sealed) && content.flushed(content.seal()));
            let taken = content.cuts().remove(0);
            assert_eq!((taken.name.as_str(), taken.flushes_in_flight, taken.limit_reached), ("f", 1, false));
            assert!(taken.cut_ns <= taken.cut_end_ns);
            written_meanwhile[taken.unflushed_writes as usize - 1] += 1;
            assert_eq!(first_after(&content, "f", Survivors::None), 1, "it was not complete");
        }
        assert!(
            written_meanwhile.iter().all(|times| *times > 5),
            "always at its arrival, or never: {written_meanwhile:?}"
        );
    }

    #[test]
    fn a_cut_in_a_write_leaves_it_to_chance_on_any_drive() {
        for volatile in [false, true] {
            let content = armed(volatile, 0);
            content.cut_on(on("w", CutOn::Write, 2, &[(9300, 9301), (8192, 8200), (8198, 8300)], 0)).unwrap();
            for (sector, value) in [(16, 1), (15, 2), (17, 3), (0, 4)] {
                content.answered(write(&content, sector, value), false);
            }
            assert!(content.flushed(content.seal()));
            assert!(content.cuts().is_empty(), "only one write has touched a range");
            content.answered(write(&content, 16, 5), true);
            assert_eq!(content.cuts()[0].unflushed_writes, 1);
            content.restore_cut("w", Survivors::None, 0).unwrap();
            assert_eq!(sectors_of(&content)[15..18], [2, 1, 3]);
            content.restore_cut("w", Survivors::Lying, 0).unwrap();
            assert_eq!(sectors_of(&content)[15..18], [2, 5, 3]);
        }
    }

    #[test]
    fn a_flush_that_fails_makes_nothing_durable_and_is_not_in_flight() {
        let content = armed(true, 0);
        content.answered(write(&content, 0, 1), false);
        content.flush_failed(content.seal());
        let taken = content.cut("c").unwrap();
        assert_eq!((taken.flushes_in_flight, taken.unflushed_bytes), (0, 512));
        assert_eq!(first_after(&content, "c", Survivors::None), 0);
    }

    #[test]
    fn what_a_drive_lied_about_is_lost_only_for_so_long() {
        let content = armed(true, HOLD_NS);
        content.answered(write(&content, 0, 1), false);
        assert!(content.flushed(content.seal()));
        content.cut("soon").unwrap();
        content.arm_cuts(0).unwrap();
        content.answered(write(&content, 1, 2), true);
        content.cut("later").unwrap();
        let lost =
            |name| (0..40).any(|seed| content.restore_cut(name, Survivors::Lying, seed).unwrap().writes_lost > 0);
        assert!(lost("soon") && !lost("later"));
    }

    #[test]
    fn a_drive_that_ignores_flush_loses_what_it_acknowledged() {
        let content = armed(true, 0);
        content.set_flush_ignored(true);
        content.answered(write(&content, 0, 1), false);
        assert!(content.flushed(content.seal()));
        content.cut("c").unwrap();
        assert_eq!(first_after(&content, "c", Survivors::None), 0);
    }

    #[test]
    fn more_than_can_be_kept_track_of_is_said_until_the_next_flush() {
        let content = Content::in_memory(1 << 30, 1 << 30);
        content.set_volatile(true);
        content.arm_cuts(0).unwrap();
        let megabyte = vec![1; 1 << 20];
        for at in 0..130 {
            content.answered(content.write(at << 20, &megabyte).unwrap(), false);
        }
        let taken = content.cut("full").unwrap();
        assert!(taken.limit_reached && taken.unflushed_bytes <= 128 << 20);
        assert_eq!(first_after(&content, "full", Survivors::None), 1, "the oldest counts as written");
        for at in 0..130 {
            content.answered(content.write(at << 20, &megabyte).unwrap(), false);
        }
        let sealed = content.seal();
        assert!(content.cut("sealed").unwrap().limit_reached);
        assert!(content.flushed(sealed));
        let after = content.cut("flushed").unwrap();
        assert_eq!((after.limit_reached, after.unflushed_writes), (false, 0));
        assert!(content.cuts_json()["unflushed_peak"]["bytes"].as_u64() >= Some(127 << 20));
        content.forget_cuts();
        assert_eq!(content.held_bytes(), content.live_bytes(), "base and live content are one again");
    }

    #[test]
    fn a_forced_write_settles_behind_others_in_order() {
        let content = armed(true, 0);
        let first = write(&content, 0, 1);
        content.answered(write(&content, 0, 2), true);
        content.cut("c").unwrap();
        content.answered(first, false);
        for survivors in ALL {
            assert_eq!(first_after(&content, "c", survivors), 2, "{survivors:?}");
        }
    }

    #[test]
    fn what_was_written_before_arming_or_loading_is_durable() {
        let content = Content::in_memory(SIZE, SIZE);
        content.set_volatile(true);
        let early = write(&content, 0, 1);
        content.arm_cuts(0).unwrap();
        content.answered(early, false);
        content.cut("armed").unwrap();
        let late = write(&content, 0, 2);
        content.power_cut(1, 512).unwrap();
        content.power_on();
        content.answered(late, false);
        let sectors = sectors_of(&content)[0];
        content.cut("cut").unwrap();
        assert_eq!(first_after(&content, "cut", Survivors::None), sectors);
        assert_eq!(first_after(&content, "armed", Survivors::None), 1);
        content.snapshot("one");
        content.answered(write(&content, 0, 3), false);
        content.restore("one").unwrap();
        content.cut("restored").unwrap();
        assert_eq!(first_after(&content, "restored", Survivors::None), 1);
    }

    #[test]
    fn requests_that_make_no_sense_are_refused_with_the_remedy() {
        let content = Content::in_memory(SIZE, SIZE);
        let refusal = |outcome: Result<(), String>| outcome.unwrap_err();
        assert!(refusal(content.cut("a").map(|_| ())).contains("cuts-arm"));
        content.arm_cuts(0).unwrap();
        content.cut("a").unwrap();
        content.cut_on(on("b", CutOn::Flush, 1, &[], 0)).unwrap();
        for name in ["a", "b"] {
            assert!(refusal(content.cut(name).map(|_| ())).contains("already a cut"));
        }
        assert!(refusal(content.cut_on(on("c", CutOn::Flush, 0, &[], 0))).contains("nth is 0"));
        assert!(refusal(content.cut_on(on("c", CutOn::Write, 1, &[(5, 5)], 0))).contains("5 to 5 is empty"));
        content.forget_cut("b").unwrap();
        assert_eq!(refusal(content.forget_cut("b")), "there is no cut \"b\"; there are: a");
        content.disarm_cuts();
        assert_eq!(content.cuts().len(), 1, "cuts outlive the recording");
        content.forget_cuts();
        assert!(refusal(content.restore_cut("a", Survivors::None, 0).map(|_| ())).contains("none yet"));
        let path = std::env::temp_dir().join(format!("dbdyno-armed-{}", std::process::id()));
        let refused = refusal(Content::in_file(&path, SIZE, SIZE).unwrap().arm_cuts(0));
        std::fs::remove_file(&path).unwrap();
        assert!(refused.contains("without --content"), "{refused}");
    }
}
