//! What a content records for cuts while it is armed: the log of its writes, when it takes a cut by itself, the cuts
//! taken, and which of the writes that no power cut has to spare survive one.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dbdyno_common::random::Random;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::log::{AtRisk, Log, Write, Writes};
use super::store::{CHUNK_BYTES, Chunk, ContentError, Image, Store, Usage, ZEROS, bytes_of};
use crate::process::monotonic_ns;

/// A disk that has not answered by then is gone; nothing is answered here while it is waited for.
const NEXT_ANSWERS: Duration = Duration::from_secs(10);

/// A cut that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutRecord {
    pub name: String,
    /// What was acknowledged before this is in the state (`CLOCK_MONOTONIC`).
    pub cut_ns: u64,
    /// What was sent after this is not.
    pub cut_end_ns: u64,
    pub unflushed_bytes: u64,
    pub unflushed_writes: u64,
    /// Whether something counts as durable here only because there was too much to keep track of.
    pub limit_reached: bool,
    pub flushes_in_flight: usize,
}

/// The disk as a cut found it: what is durable, and all that a cut may or may not have spared.
pub struct Fork {
    pub taken: CutRecord,
    pub base: Image,
    pub writes: Writes,
    pub hold_ns: u64,
}

impl Fork {
    pub fn moment(&self) -> Moment {
        Moment { cut_ns: self.taken.cut_ns, hold_ns: self.hold_ns }
    }
}

/// The cuts that were taken, by name.
pub type Forks = BTreeMap<String, Arc<Fork>>;

/// What a cut waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CutOn {
    Flush,
    Write,
}

/// A cut that the disk takes by itself.
#[derive(Debug, Clone)]
pub struct Trigger {
    pub name: String,
    pub on: CutOn,
    /// How many more such requests are to come, the one that it is taken at included.
    pub nth: u64,
    /// Of a write: first byte, first byte after, apart and in order; any write, if there is no range.
    pub ranges_bytes: Vec<(u64, u64)>,
    /// Of a FLUSH: whether the cut is at its arrival or before its completion is drawn by this.
    pub seed: u64,
}

impl Trigger {
    /// Checks what was asked for, and puts the ranges in order.
    pub fn checked(mut self) -> Result<Self, String> {
        if self.nth == 0 {
            return Err("nth is 0; the first request is 1".into());
        }
        if let Some((first, after)) = self.ranges_bytes.iter().find(|(first, after)| first >= after) {
            return Err(format!("the range {first} to {after} is empty; a range is [first byte, first byte after]"));
        }
        self.ranges_bytes.sort_unstable();
        self.ranges_bytes.dedup_by(|next, last| {
            let joined = next.0 <= last.1;
            last.1 = if joined { last.1.max(next.1) } else { last.1 };
            joined
        });
        Ok(self)
    }
}

/// What is recorded while the disk is armed.
pub struct Recorder {
    pub log: Log,
    pub triggers: Vec<Trigger>,
    /// Cuts to be taken before a FLUSH in flight completes.
    before_completion: Vec<(u64, String)>,
    /// The control socket of the disk whose power goes with this one's.
    pub next: Option<PathBuf>,
}

impl Recorder {
    pub fn new(log: Log) -> Self {
        Self { log, triggers: Vec::new(), before_completion: Vec::new(), next: None }
    }

    /// Takes the state of now. What is answered later cannot be in it as durable, for its answer needs the lock that is
    /// held here.
    ///
    /// So does the next disk, whose power goes with this one's, before the lock is given back. Until then nothing is
    /// answered here, so nothing that is written there can depend on what is not in the state of here: both together
    /// are what one cut at the later moment finds where this drive was slow to answer. Whether the next disk took it,
    /// its own list of cuts says.
    pub fn cut(&self, name: &str, clock_ns: impl Fn() -> u64) -> Arc<Fork> {
        let Self { log, .. } = self;
        let cut_ns = clock_ns();
        let base = log.base.clone();
        let writes = log.writes.clone();
        let AtRisk { bytes, writes: unflushed_writes } = log.at_risk;
        let taken = CutRecord {
            name: name.to_owned(),
            cut_ns,
            cut_end_ns: clock_ns(),
            unflushed_bytes: bytes,
            unflushed_writes,
            limit_reached: log.is_limited(cut_ns),
            flushes_in_flight: log.flushes_in_flight(),
        };
        // A drive that keeps its cache through a loss of power has nothing to lie about.
        let hold_ns = if log.volatile { log.hold_ns } else { 0 };
        if let Some(next) = &self.next {
            // A disk that is gone, or refuses, lists no cut of this name: the runner sees that, and fails the trial.
            let _ = cut_next(next, name);
        }
        Arc::new(Fork { taken, base, writes, hold_ns })
    }

    /// Whether a cut of this name is still to be taken.
    pub fn awaits(&self, name: &str) -> bool {
        self.triggers.iter().any(|trigger| trigger.name == name)
            || self.before_completion.iter().any(|(_, waiting)| waiting == name)
    }

    /// Forgets a cut that is still to be taken; false if there is none of that name.
    pub fn forget(&mut self, name: &str) -> bool {
        let awaited = self.awaits(name);
        self.triggers.retain(|trigger| trigger.name != name);
        self.before_completion.retain(|(_, waiting)| waiting != name);
        awaited
    }

    /// Forgets all cuts that are still to be taken.
    pub fn forget_all(&mut self) {
        self.triggers.clear();
        self.before_completion.clear();
    }

    /// The names of the cuts that a write just logged is to be cut at.
    pub fn at_write(&mut self) -> Vec<String> {
        let Self { log, triggers, .. } = self;
        let Some(write) = log.writes.last() else { return Vec::new() };
        let hit = |trigger: &Trigger| {
            trigger.on == CutOn::Write && (trigger.ranges_bytes.is_empty() || write.touches_any(&trigger.ranges_bytes))
        };
        due(triggers, hit).into_iter().map(|trigger| trigger.name).collect()
    }

    /// The names of the cuts to take at the arrival of a FLUSH; others wait for its completion.
    pub fn at_flush(&mut self, flush: u64) -> Vec<String> {
        let due = due(&mut self.triggers, |trigger| trigger.on == CutOn::Flush);
        let (now, later): (Vec<_>, Vec<_>) = due.into_iter().partition(|trigger| Random::new(trigger.seed).chance(0.5));
        self.before_completion.extend(later.into_iter().map(|trigger| (flush, trigger.name)));
        now.into_iter().map(|trigger| trigger.name).collect()
    }

    /// The names of the cuts to take before this FLUSH completes.
    pub fn before_completion(&mut self, flush: u64) -> Vec<String> {
        let (now, later) = std::mem::take(&mut self.before_completion).into_iter().partition(|(id, _)| *id == flush);
        self.before_completion = later;
        let now: Vec<(u64, String)> = now;
        now.into_iter().map(|(_, name)| name).collect()
    }
}

/// Has another disk take a cut, and waits until it did.
fn cut_next(control: &Path, name: &str) -> std::io::Result<()> {
    let mut stream = UnixStream::connect(control)?;
    stream.set_read_timeout(Some(NEXT_ANSWERS))?;
    stream.write_all(format!("{}\n", json!({"op": "cut", "name": name})).as_bytes())?;
    BufReader::new(stream).read_line(&mut String::new())?;
    Ok(())
}

/// Counts a request down for each trigger that it hits; takes out those whose request it is.
fn due(triggers: &mut Vec<Trigger>, hit: impl Fn(&Trigger) -> bool) -> Vec<Trigger> {
    for trigger in triggers.iter_mut().filter(|trigger| hit(trigger)) {
        trigger.nth -= 1;
    }
    let (due, waiting) = std::mem::take(triggers).into_iter().partition(|trigger| trigger.nth == 0);
    *triggers = waiting;
    due
}

/// A write or a FLUSH, to be given back when it is about to be answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ticket {
    /// Of a FLUSH: the layer that it seals.
    pub layer: u64,
    /// Its number in the log; 0 if there is none.
    pub logged: u64,
}

/// What is recorded, and the cuts that were taken.
#[derive(Default)]
pub struct Recording {
    pub recorder: Option<Recorder>,
    pub forks: Forks,
    /// Where the numbers of the next log may begin.
    pub next: u64,
}

impl Recording {
    /// A part of a write is about to be made: `rest` is what has not been made yet. Logged unless it already was.
    pub fn arrived(&mut self, logged: &mut u64, offset_bytes: u64, rest: (u64, Option<&[u8]>), live: &dyn Store) {
        let Some(recorder) = &mut self.recorder else { return };
        if recorder.log.knows(*logged) {
            return;
        }
        *logged = recorder.log.arrived(monotonic_ns(), offset_bytes, rest, live);
        for name in recorder.at_write() {
            self.forks.insert(name.clone(), recorder.cut(&name, monotonic_ns));
        }
    }

    /// Gives room back to new content; false if there is none to give.
    pub fn destage(&mut self, live: &dyn Store) -> bool {
        self.recorder.as_mut().is_some_and(|recorder| recorder.log.destage(monotonic_ns(), live))
    }

    /// A write is about to be answered.
    pub fn answered(&mut self, logged: u64, forced: bool, live: &dyn Store) {
        if let Some(recorder) = &mut self.recorder {
            recorder.log.answered(monotonic_ns(), logged, forced, live);
        }
    }

    /// A FLUSH has arrived; returns its number in the log.
    pub fn flush_arrived(&mut self) -> u64 {
        let Some(recorder) = &mut self.recorder else { return 0 };
        let flush = recorder.log.flush_arrived();
        for name in recorder.at_flush(flush) {
            self.forks.insert(name.clone(), recorder.cut(&name, monotonic_ns));
        }
        flush
    }

    /// A FLUSH is about to be answered.
    pub fn flushed(&mut self, flush: u64, ignored: bool, live: &dyn Store) {
        let Some(recorder) = &mut self.recorder else { return };
        for name in recorder.before_completion(flush) {
            self.forks.insert(name.clone(), recorder.cut(&name, monotonic_ns));
        }
        recorder.log.flushed(monotonic_ns(), flush, ignored, live);
    }

    /// Makes all of the live content count as durable. Returns what was logged, to be dropped outside any lock.
    #[must_use]
    pub fn rebase(&mut self, live: &dyn Store, volatile: bool, usage: &Usage) -> Option<Log> {
        let recorder = self.recorder.as_mut()?;
        let image = live.image()?;
        let fresh = Log::new(image, recorder.log.after(), recorder.log.hold_ns, volatile, usage.clone());
        let mut before = std::mem::replace(&mut recorder.log, fresh);
        recorder.log.peak = before.peak;
        before.hold_ns = 0;
        Some(before)
    }

    /// Refuses the name of a cut that was taken, or is still to be.
    pub fn check_free(&self, name: &str) -> Result<(), String> {
        if self.forks.contains_key(name) || self.recorder.as_ref().is_some_and(|recorder| recorder.awaits(name)) {
            return Err(format!("there is already a cut {name:?}; forget it or choose another name"));
        }
        Ok(())
    }

    /// The recorder, for a cut of a name that is free.
    pub fn for_cut(&mut self, name: &str) -> Result<&mut Recorder, String> {
        self.check_free(name)?;
        self.recorder.as_mut().ok_or_else(|| "the disk is not armed; arm it with cuts-arm before the load".to_owned())
    }
}

/// What is left of writes that are not durable. A sector has 4096 bytes, but with `random-512`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Survivors {
    /// Nothing.
    None,
    /// Of each sector its last version or the durable one. The share that survives is drawn first, so that some cuts
    /// take nearly all and some nearly nothing; then every sector has its own chance.
    #[serde(rename = "random-512")]
    Random512,
    #[serde(rename = "random-4096")]
    Random4096,
    /// All that arrived before a random one: a cache that is written out in order.
    Prefix,
    /// Of the requests a random part, each whole; the share is drawn first.
    Requests,
    /// Each sector as after a random one of its writes, or as it was durable.
    Versions,
    /// What arrived before a random moment within the time to hold back. A FLUSH in that time made nothing durable.
    Lying,
}

/// What a cut did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Survived {
    pub writes_unflushed: u64,
    /// Those of them of which a part is not there.
    pub writes_lost: u64,
    pub sectors_unflushed: u64,
    /// Those of them that are not as they were last written.
    pub sectors_lost: u64,
}

/// When a state was, and how long a drive that lies may hold back what it was given.
#[derive(Clone, Copy)]
pub struct Moment {
    pub cut_ns: u64,
    pub hold_ns: u64,
}

/// How survivors are chosen, after what is drawn for all sectors together.
enum Choice {
    Writes(Vec<bool>),
    Sectors { survival: f64 },
    Versions,
}

/// The writes that touch a chunk, in order: number, place in the chunk, bytes.
type Touching<'a> = Vec<(usize, usize, &'a [u8])>;

/// A choice among the writes of one state.
pub struct Draw<'a> {
    writes: Vec<&'a Write>,
    /// Which of them may be lost.
    at_risk: Vec<bool>,
    choice: Choice,
    sector_bytes: usize,
    random: Random,
    lost: Vec<bool>,
    counted: Survived,
}

impl<'a> Draw<'a> {
    pub fn new(writes: &'a Writes, survivors: Survivors, moment: Moment, seed: u64) -> Self {
        let Moment { cut_ns, hold_ns } = moment;
        let held_back = |durable_ns: u64| survivors == Survivors::Lying && durable_ns.saturating_add(hold_ns) > cut_ns;
        let writes: Vec<&Write> = writes.iter().collect();
        let at_risk: Vec<bool> = writes.iter().map(|write| write.durable_ns.is_none_or(held_back)).collect();
        let mut random = Random::new(seed);
        let choice = choice(&writes, &at_risk, survivors, moment, &mut random);
        let sector_bytes = if survivors == Survivors::Random512 { 512 } else { 4096 };
        let lost = vec![false; writes.len()];
        Self { writes, at_risk, choice, sector_bytes, random, lost, counted: Survived::default() }
    }

    /// Makes an image of what is durable that of what there is after the cut.
    pub fn apply(mut self, image: &mut Image, usage: &Usage, held_bytes_max: u64) -> Result<Survived, ContentError> {
        let mut chunks: BTreeMap<usize, Touching<'_>> = BTreeMap::new();
        for (number, write) in self.writes.iter().enumerate() {
            for (index, within, bytes) in write.parts() {
                chunks.entry(index).or_default().push((number, within, bytes));
            }
        }
        for (index, touching) in chunks {
            let Some(bytes) = self.chunk(bytes_of(image.get(index)), &touching) else { continue };
            if usage.bytes() + CHUNK_BYTES as u64 > held_bytes_max {
                return Err(ContentError::Full);
            }
            let hole = *bytes == ZEROS;
            drop(image.put(index, if hole { None } else { Some(Arc::new(Chunk::new(bytes, usage))) }));
        }
        let count = |all: &[bool]| all.iter().filter(|is_set| **is_set).count() as u64;
        Ok(Survived { writes_unflushed: count(&self.at_risk), writes_lost: count(&self.lost), ..self.counted })
    }

    /// What becomes of one chunk; `None` if it stays.
    fn chunk(&mut self, durable: &[u8], touching: &[(usize, usize, &[u8])]) -> Option<Box<[u8]>> {
        let kept = self.surviving_write_before(touching);
        let mut after: Option<Box<[u8]>> = None;
        let (mut unflushed, mut lost) = (0_u32, 0_u32);
        for &(number, within, bytes) in touching {
            for (sector, from, to) in pieces(within, bytes.len(), self.sector_bytes) {
                let (at_risk, bit) = (self.at_risk[number], 1 << sector);
                let is_kept = !at_risk
                    || match &self.choice {
                        Choice::Writes(kept) => kept[number],
                        _ => number < kept[sector],
                    };
                let covers = to - from == self.sector_bytes;
                if at_risk {
                    unflushed |= bit;
                } else if covers {
                    unflushed &= !bit;
                }
                if is_kept {
                    let after = after.get_or_insert_with(|| durable.into());
                    after[from..to].copy_from_slice(&bytes[from - within..to - within]);
                    if covers {
                        lost &= !bit;
                    }
                } else {
                    lost |= bit;
                    self.lost[number] = true;
                }
            }
        }
        self.counted.sectors_unflushed += u64::from(unflushed.count_ones());
        self.counted.sectors_lost += u64::from((lost & unflushed).count_ones());
        after
    }

    /// For each sector of a chunk before which write at risk those are that survive in it.
    fn surviving_write_before(&mut self, touching: &[(usize, usize, &[u8])]) -> [usize; CHUNK_BYTES / 512] {
        let mut before = [0; CHUNK_BYTES / 512];
        let mut versions: [Vec<usize>; CHUNK_BYTES / 512] = Default::default();
        if matches!(self.choice, Choice::Writes(_)) {
            return before;
        }
        for &(number, within, bytes) in touching.iter().filter(|(number, ..)| self.at_risk[*number]) {
            for (sector, ..) in pieces(within, bytes.len(), self.sector_bytes) {
                versions[sector].push(number + 1);
            }
        }
        for (before, versions) in before.iter_mut().zip(versions).filter(|(_, versions)| !versions.is_empty()) {
            let count = versions.len();
            let kept = match self.choice {
                Choice::Sectors { survival } => count * usize::from(self.random.chance(survival)),
                _ => self.random.below(count as u64 + 1) as usize,
            };
            *before = if kept == 0 { 0 } else { versions[kept - 1] };
        }
        before
    }
}

fn choice(writes: &[&Write], at_risk: &[bool], survivors: Survivors, moment: Moment, random: &mut Random) -> Choice {
    match survivors {
        Survivors::None => Choice::Writes(vec![false; writes.len()]),
        Survivors::Random512 | Survivors::Random4096 => Choice::Sectors { survival: random.unit() },
        Survivors::Versions => Choice::Versions,
        Survivors::Requests => {
            let survival = random.unit();
            Choice::Writes(writes.iter().map(|_| random.chance(survival)).collect())
        }
        Survivors::Prefix => {
            let count = at_risk.iter().filter(|at_risk| **at_risk).count() as u64;
            let mut left = random.below(count + 1);
            let mut keep_next = |at_risk: &bool| {
                let kept = *at_risk && left > 0;
                left -= u64::from(kept);
                kept
            };
            Choice::Writes(at_risk.iter().map(&mut keep_next).collect())
        }
        Survivors::Lying => {
            let Moment { cut_ns, hold_ns } = moment;
            let until_ns = cut_ns.saturating_sub(random.below(hold_ns.saturating_add(1)));
            Choice::Writes(writes.iter().map(|write| write.arrived_ns <= until_ns).collect())
        }
    }
}

/// A part of a chunk cut at the boundaries of sectors: sector, first byte, first byte after.
fn pieces(within: usize, length: usize, sector_bytes: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let end = within + length;
    (within / sector_bytes..end.div_ceil(sector_bytes))
        .map(move |sector| (sector, within.max(sector * sector_bytes), end.min((sector + 1) * sector_bytes)))
}
