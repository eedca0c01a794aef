//! Which of the writes that no power cut has to spare are on the disk after one.

use std::collections::BTreeMap;
use std::sync::Arc;

use dbdyno_common::random::Random;
use serde::{Deserialize, Serialize};

use super::log::{Write, Writes};
use super::store::{CHUNK_BYTES, Chunk, ContentError, Image, Usage, ZEROS, bytes_of};

/// What is left of writes that are not durable. A sector has 4096 bytes, but with `random-512`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Survivors {
    /// Nothing.
    None,
    /// Of each sector its last version or the durable one. The share that survives is drawn first, so that some cuts take
    /// nearly all and some nearly nothing; then every sector has its own chance.
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
    pub fn apply(mut self, image: &mut Image, held: &Usage, held_bytes_max: u64) -> Result<Survived, ContentError> {
        let mut chunks: BTreeMap<usize, Touching<'_>> = BTreeMap::new();
        for (number, write) in self.writes.iter().enumerate() {
            for (index, within, bytes) in write.parts() {
                chunks.entry(index).or_default().push((number, within, bytes));
            }
        }
        for (index, touching) in chunks {
            let Some(bytes) = self.chunk(bytes_of(image.get(index)), &touching) else { continue };
            if held.bytes() + CHUNK_BYTES as u64 > held_bytes_max {
                return Err(ContentError::Full);
            }
            let hole = *bytes == ZEROS;
            drop(image.put(index, if hole { None } else { Some(Arc::new(Chunk::new(bytes, held))) }));
        }
        let count = |all: &[bool]| all.iter().filter(|one| **one).count() as u64;
        Ok(Survived { writes_unflushed: count(&self.at_risk), writes_lost: count(&self.lost), ..self.counted })
    }

    /// What becomes of one chunk; `None` if it stays.
    fn chunk(&mut self, durable: &[u8], touching: &[(usize, usize, &[u8])]) -> Option<Box<[u8]>> {
        let kept = self.kept_before(touching);
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
    fn kept_before(&mut self, touching: &[(usize, usize, &[u8])]) -> [usize; CHUNK_BYTES / 512] {
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
            let mut one = |at_risk: &bool| {
                let kept = *at_risk && left > 0;
                left -= u64::from(kept);
                kept
            };
            Choice::Writes(at_risk.iter().map(&mut one).collect())
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
