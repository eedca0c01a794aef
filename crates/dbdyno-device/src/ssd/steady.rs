//! A drive as it is after a long time of uniform random writes, made at once.
//!
//! With many pages to a block, greedy collection takes the oldest block (the longer ago it was written, the more of it
//! has been overwritten), so the ages of the full blocks are spread evenly between 0 and the time T in which the host
//! overwrites all of the flash: with A flash pages written for each of the host's, T = P / A host writes, for P pages of
//! flash. A page survives t random writes over L pages with probability exp(-t / L). The block collected has
//! 1 - 1 / A of its pages valid, which gives A = (1 + r) / (1 + r + W0(-(1 + r) exp(-(1 + r)))) for a spare part of r
//! (Xiang and Kurkoski, "An improved analytic expression for write amplification in NAND flash", 2012; from memory).
//! So block k of n, the youngest being 0, holds exp(-(1 + r) k / (n A)) of its pages.
//!
//! Each page of the disk is dealt to a block with that probability, in one pass over the disk; valid pages lie
//! evenly among those that are not. Every [`ROUND`] pages each block gets its share but for rounding: left to chance, some
//! blocks would hold fewer valid pages than any that greedy collection has not taken yet, and it would begin with these.
//!
//! The drive is caught when collection is due: so much is free as it leaves free, and the next page that the host writes
//! lets it take a block. Nothing runs before that, and from then on the host writes at the pace of collection. The cache of single-bit blocks is full, as it is while the host never pauses: of old
//! garbage where the host writes past a full cache, of the latest writes where it is emptied under load.

use dbdyno_common::random::Random;

use super::ftl::Ftl;
use super::spec::SlcSpec;

/// Pages that are dealt together at most, each to another part of the blocks, so that none gets more than its share by
/// chance. A power of two.
const ROUND: usize = 1 << 17;

/// By how many parts of a page's share of the blocks a round may be shifted against another.
const SHIFTS: usize = 8;

/// Flash pages written for each page of the host under greedy collection of uniform random writes.
///
/// With x = 1 / A the formula is x = 1 - exp(-(1 + r) x), whose root between 0 and 1 this finds by bisection.
pub(super) fn greedy_write_amplification(spare: f64) -> f64 {
    let (mut low, mut high) = (1e-9, 1.0);
    for _ in 0..80 {
        let x = f64::midpoint(low, high);
        if 1.0 - (-(1.0 + spare) * x).exp() > x {
            low = x;
        } else {
            high = x;
        }
    }
    1.0 / low
}

/// A block that is being dealt pages.
struct Dealt {
    /// How many of the disk's pages it holds.
    share: f64,
    first_page: u32,
    /// Where the next valid page goes, and how far from the last, in pages times 2^16.
    at: u64,
    step: u64,
    end: u64,
}

impl Dealt {
    /// A block of which `written` pages are written, a part of them that `survives` still valid.
    fn new(ftl: &Ftl, block: u32, written: u32, survives: f64) -> Self {
        let pages = f64::from(written);
        // Room for three standard deviations more than the mean.
        let slack = 3.0 * (survives * (1.0 - survives) / pages).sqrt() + 1.0 / pages;
        let step = (65_536.0 / (survives + slack).min(1.0)) as u64;
        let (first_page, end) = (ftl.geometry.first_page_of(block), u64::from(written) << 16);
        Self { share: survives * pages, first_page, at: 0, step, end }
    }
}

/// Maps every page of the disk.
pub(super) fn precondition(ftl: &mut Ftl, slc: Option<&SlcSpec>, seed: u64) {
    let mut dealt = fill_cache(ftl, slc);
    dealt.extend(fill_data(ftl));
    let together = ROUND.min(ftl.geometry.logical_pages.next_power_of_two() as usize);
    let turns = turns(&dealt, together * SHIFTS);
    let mut random = Random::new(seed);
    let order = shuffled(together, &mut random);
    let (mut mask, mut shift) = (0, 0);
    for page in 0..ftl.geometry.logical_pages {
        let place = page as usize % together;
        if place == 0 {
            (mask, shift) = (random.below(together as u64) as usize, random.below(SHIFTS as u64) as usize);
        }
        let mut turn = turns[(order[place] as usize ^ mask) * SHIFTS + shift] as usize;
        // Chance may give a block more than it has room for; there is some in another.
        while dealt[turn].at >= dealt[turn].end {
            turn = (turn + 1) % dealt.len();
        }
        let to = &mut dealt[turn];
        let flash_page = to.first_page + (to.at >> 16) as u32;
        to.at += to.step;
        ftl.set(page, flash_page);
    }
    ftl.all_mapped();
}

/// Fills what is always a cache; the rest of it needs unwritten blocks, of which there are none.
fn fill_cache(ftl: &mut Ftl, slc: Option<&SlcSpec>) -> Vec<Dealt> {
    let Some(slc) = slc else { return Vec::new() };
    let lasting = slc.static_bytes as f64 / (slc.static_bytes + slc.dynamic_bytes) as f64;
    let blocks = ftl.fill_slc((lasting * f64::from(ftl.geometry.slc.blocks)).ceil() as u32);
    if slc.write_while_folding_mb_s.is_none() {
        return Vec::new();
    }
    let block_pages = ftl.geometry.slc.block_pages;
    let decay = f64::from(block_pages) / f64::from(ftl.geometry.logical_pages);
    let youngest_first = blocks.rev().zip(0_u32..);
    let dealt = |(block, age)| Dealt::new(ftl, block, block_pages, (-decay * (f64::from(age) + 0.5)).exp());
    youngest_first.map(dealt).collect()
}

/// Closes the data blocks, opens the one that the host writes, and says how they are to be filled.
fn fill_data(ftl: &mut Ftl) -> Vec<Dealt> {
    let (data, logical_pages) = (ftl.geometry.data.clone(), ftl.geometry.logical_pages);
    let ahead = ftl.geometry.collect_below_pages().next_multiple_of(u64::from(data.unit_pages)) as u32;
    let free_blocks = (ahead - 1) / data.block_pages;
    let blocks = data.blocks - free_blocks - 1;
    let spare = f64::from(blocks) * f64::from(data.block_pages) / f64::from(logical_pages) - 1.0;
    let amplification = greedy_write_amplification(spare);
    let decay = (1.0 + spare) / amplification / f64::from(blocks);
    let written = (free_blocks + 1) * data.block_pages - ahead;
    ftl.fill_data(blocks, written);
    // The mean of exp(-decay k) over the block's time, so that the sum is right for few blocks, too.
    let at = |block: u32| (-decay * f64::from(block)).exp() / decay;
    let full = (0..blocks).map(|block| Dealt::new(ftl, block, data.block_pages, at(block) - at(block + 1)));
    let open = (written > 0).then(|| Dealt::new(ftl, blocks, written, 1.0));
    full.chain(open).collect()
}

/// The numbers below `end` in random order (Fisher and Yates).
fn shuffled(end: usize, random: &mut Random) -> Vec<u32> {
    let mut order: Vec<u32> = (0..end as u32).collect();
    for last in (1..end).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    order
}

/// For each of so many equal parts of the blocks' shares, whose turn it is.
fn turns(dealt: &[Dealt], parts: usize) -> Vec<u32> {
    let total: f64 = dealt.iter().map(|block| block.share).sum();
    let (mut turn, mut below) = (0, dealt[0].share);
    let turn_of = |index: usize| {
        let chance = (index as f64 + 0.5) / parts as f64 * total;
        while below < chance && turn + 1 < dealt.len() {
            turn += 1;
            below += dealt[turn].share;
        }
        turn as u32
    };
    (0..parts).map(turn_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula_gives_the_figures_known_from_the_literature() {
        for (spare, amplification) in [(0.07, 7.8), (0.12, 4.85), (0.28, 2.48), (0.30, 2.36)] {
            let got = greedy_write_amplification(spare);
            assert!((got / amplification - 1.0).abs() < 0.01, "{spare}: {got}");
        }
    }
}
