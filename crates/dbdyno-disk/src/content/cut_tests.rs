//! States after a power cut, held against a plain account of every sector's versions.

use proptest::prelude::*;

use super::survivors::Survivors;
use super::*;

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
    let uniform = |sector: &[u8]| sector.iter().all(|byte| *byte == sector[0]);
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

fn check(survivors: Survivors, writes: &[Account], found: &[u8]) {
    let after = |kept: &dyn Fn(usize, &Account) -> bool| -> Vec<u8> {
        let value = |sector| {
            let last =
                |(at, write): &(usize, &Account)| write.touches(sector) && (write.is_durable || kept(*at, write));
            writes.iter().enumerate().filter(last).last().map_or(0, |(_, write)| write.value)
        };
        (0..SECTORS).map(value).collect()
    };
    for (sector, value) in found.iter().enumerate() {
        let values = possible(writes, sector);
        match survivors {
            Survivors::None => assert_eq!(*value, values[0], "sector {sector}"),
            Survivors::Random512 => assert!([values[0], values[values.len() - 1]].contains(value), "sector {sector}"),
            Survivors::Lying => {} // checked below
            _ => assert!(values.contains(value), "{survivors:?}: sector {sector} has {value}, not of {values:?}"),
        }
    }
    match survivors {
        Survivors::Prefix => {
            let is_prefix = (0..=writes.len()).any(|end| after(&|at, _| at < end) == found);
            assert!(is_prefix, "no prefix");
        }
        Survivors::Requests => {
            for (at, write) in writes.iter().enumerate().filter(|(_, write)| write.value != 0) {
                let hidden = |sector| writes[at + 1..].iter().any(|later| later.touches(sector));
                let seen: Vec<bool> = (write.range.0..write.range.1)
                    .filter(|sector| !hidden(*sector))
                    .map(|sector| found[sector] == write.value)
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
            assert!((0..=writes.len()).any(|end| lied(end) == found), "not in order");
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Forks of any history hold, by every survivor model, what that model allows, on drives with and without a volatile
    /// cache; live content and other forks do not change by it.
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
                let found = sectors_of(&played.content);
                match survivors {
                    Survivors::Lying if !volatile => check(Survivors::Prefix, writes, &found),
                    _ => check(survivors, writes, &found),
                }
                assert!(first.writes_lost <= first.writes_unflushed && first.sectors_lost <= first.sectors_unflushed);
                assert!(first.sectors_lost == 0 || first.writes_lost > 0);
                played.content.write(0, &vec![254; SECTORS * 512]).unwrap();
                assert_eq!(played.content.restore_cut(name, survivors, seed).unwrap(), first, "another draw");
                assert_eq!(sectors_of(&played.content), found, "another state");
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
        let found = sectors_of(&played.content);
        played.content.write(0, &vec![254; SECTORS * 512]).unwrap();
        played.content.cut("two").unwrap();
        let survived = played.content.restore_cut("two", Survivors::None, seed).unwrap();
        assert_eq!((survived.writes_unflushed, survived.writes_lost), (1, 1));
        assert_eq!(sectors_of(&played.content), found);
    }
}
