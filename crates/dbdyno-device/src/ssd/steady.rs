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
//! evenly among those that are not.

use super::ftl::{BlockState, Ftl};
use super::geometry::RESERVE_BLOCKS;
use crate::random::Random;

/// Resolution of the table that deals pages to blocks.
const DEALS: usize = 1 << 17;

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
    first_page: u32,
    /// Where the next valid page goes, and how far from the last, in pages times 2^16.
    at: u64,
    step: u64,
    end: u64,
}

/// Maps every page of the disk.
pub(super) fn precondition(ftl: &mut Ftl, seed: u64) {
    let geometry = ftl.geometry.clone();
    let (blocks, block_pages) = (geometry.data.blocks - RESERVE_BLOCKS, geometry.data.block_pages);
    let flash_pages = f64::from(blocks) * f64::from(block_pages);
    let spare = flash_pages / f64::from(geometry.logical_pages) - 1.0;
    let decay = (1.0 + spare) / greedy_write_amplification(spare) / f64::from(blocks);
    let (survivors, mut dealt) = plan(ftl, blocks, decay);
    let turns = deals(&survivors);
    let mut random = Random::new(seed);
    for page in 0..geometry.logical_pages {
        let mut block = turns[(random.next() >> 47) as usize] as usize;
        // Chance may give a block more than it has room for; there is some in another.
        while dealt[block].at >= dealt[block].end {
            block = (block + 1) % dealt.len();
        }
        let to = &mut dealt[block];
        let flash_page = to.first_page + (to.at >> 16) as u32;
        to.at += to.step;
        ftl.map[page as usize] = flash_page + 1;
        ftl.owner[flash_page as usize] = page + 1;
        ftl.valid[block] += 1;
    }
    ftl.all_mapped();
}

/// Closes the blocks, and says which part of each is valid, and how they are to be filled.
fn plan(ftl: &mut Ftl, blocks: u32, decay: f64) -> (Vec<f64>, Vec<Dealt>) {
    let block_pages = ftl.geometry.data.block_pages;
    // The mean of exp(-decay k) over the block's time, so that the sum is right for few blocks, too.
    let at = |block: u32| (-decay * f64::from(block)).exp() / decay;
    let survivors: Vec<f64> = (0..blocks).map(|block| at(block) - at(block + 1)).collect();
    let dealt = survivors.iter().zip(0_u32..).map(|(survives, block)| {
        // Room for three standard deviations more than the mean.
        let slack = 3.0 * (survives * (1.0 - survives) / f64::from(block_pages)).sqrt() + 1.0 / f64::from(block_pages);
        let step = 65_536.0 / (survives + slack).min(1.0);
        let first_page = ftl.geometry.first_page_of(block);
        Dealt { first_page, at: 0, step: step as u64, end: u64::from(block_pages) << 16 }
    });
    let dealt = dealt.collect();
    for block in 0..blocks {
        ftl.state[block as usize] = BlockState::Full;
    }
    ftl.free_data.retain(|block| *block >= blocks);
    (survivors, dealt)
}

/// For each of [`DEALS`] equal chances, the block whose turn it is.
fn deals(survivors: &[f64]) -> Vec<u32> {
    let total: f64 = survivors.iter().sum();
    let (mut block, mut below) = (0, survivors[0]);
    let deal = |index: usize| {
        let chance = (index as f64 + 0.5) / DEALS as f64 * total;
        while below < chance && block + 1 < survivors.len() {
            block += 1;
            below += survivors[block];
        }
        block as u32
    };
    (0..DEALS).map(deal).collect()
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
