//! The translation layer's tables: which page of flash holds which page of the disk, and what is in each block.
//!
//! Two tables of 32 bits a page, one each way: about 2.2 bytes of memory for a KiB of disk, touched only where written
//! (64 GiB take at most 140 MiB, 256 GiB 560 MiB). A page of flash is *valid* if the page of the disk it was written
//! for still points at it.
//!
//! A steady drive is one as it is after a long time of uniform random writes, made at once. With many pages to a block,
//! greedy collection takes the oldest block (the longer ago it was written, the more of it has been overwritten), so
//! the ages of the full blocks are spread evenly between 0 and the time T in which the host overwrites all of the
//! flash: with A flash pages written for each of the host's, T = P / A host writes, for P pages of flash. A page
//! survives t random writes over L pages with probability exp(-t / L). The block collected has 1 - 1 / A of its pages
//! valid, which gives A = (1 + r) / (1 + r + W0(-(1 + r) exp(-(1 + r)))) for a spare part of r (Xiang and Kurkoski, "An
//! improved analytic expression for write amplification in NAND flash", 2012; from memory). So block k of n, the
//! youngest being 0, holds exp(-(1 + r) k / (n A)) of its pages.
//!
//! Each page of the disk is dealt to a block with that probability, in one pass over the disk; valid pages lie evenly
//! among those that are not. Every [`ROUND`] pages each block gets its share but for rounding: left to chance, some
//! blocks would hold fewer valid pages than any that greedy collection has not taken yet, and it would begin with
//! these.
//!
//! The drive is caught when collection is due: so much is free as it leaves free, and the next page that the host
//! writes lets it take a block. Nothing runs before that; after it the host writes at the pace of collection. The cache
//! of single-bit blocks is full, as it is while the host never pauses: of old garbage where the host writes past a full
//! cache, of the latest writes where it is emptied under load.

use std::collections::VecDeque;

use dbdyno_common::random::Random;

use super::geometry::{Geometry, Region};
use super::spec::SlcSpec;

/// Pages of the disk whose being written or not is counted together.
const CHUNK_PAGES: u32 = 4096;

/// What a block is for at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockState {
    /// Erased.
    Free,
    /// Being written.
    Open,
    Full,
    /// Its valid pages are being moved, or it is being erased.
    Reclaimed,
}

/// Who writes a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    /// The host, at full density.
    Host = 0,
    /// The host, into the cache.
    Cache = 1,
    /// Collection and folding.
    Moved = 2,
}

/// Pages that go to a die together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unit {
    pub first_page: u32,
    /// Pages with data; the rest of the unit is padding.
    pub pages: u32,
}

/// What became of a page that was given to a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Appended {
    /// It takes the place of an older version that is still in the buffer.
    Merged,
    Buffered,
    /// It makes a unit full.
    Filled(Unit),
}

/// Where a read finds a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PagePlace {
    /// Nowhere: it was discarded.
    Nothing,
    /// In the drive's memory, not programmed yet.
    Buffer,
    /// In a page of flash, or, if it was never written, where it would lie had the disk been written from its beginning
    /// on: data prepared without the model's knowledge takes as long to read as any other.
    Flash(u32),
}

#[derive(Debug, Clone, Copy)]
struct OpenBlock {
    block: u32,
    /// Pages of it given out.
    used: u32,
    /// Pages of its open unit that hold data.
    unit_used: u32,
}

#[derive(Debug)]
pub(super) struct Ftl {
    pub geometry: Geometry,
    /// By page of the disk: page of flash plus 1, or 0. Plus 1, because memory that is zero need not be touched.
    pub(super) map: Vec<u32>,
    /// By page of flash: the page of the disk it was written for, plus 1, or 0.
    pub(super) owner: Vec<u32>,
    /// By page of flash: whether that is the latest version. The owners' entries in `map` say the same, but lie all
    /// over the table, and collection asks for every page of a block.
    is_valid: Vec<u64>,
    /// By block.
    pub(super) valid: Vec<u32>,
    pub(super) state: Vec<BlockState>,
    /// By block: units given to the dies and not programmed yet.
    programming: Vec<u32>,
    pub(super) free_data: VecDeque<u32>,
    free_slc: VecDeque<u32>,
    /// Full blocks of the cache, the oldest first.
    full_slc: VecDeque<u32>,
    open: [Option<OpenBlock>; 3],
    /// By unit: whether it is still in the drive's memory.
    in_memory: Vec<u64>,
    /// By page of the disk: whether it was discarded and not written since.
    discarded: Vec<u64>,
    /// By chunk of the disk: pages that are mapped.
    mapped_in_chunk: Vec<u16>,
    pub(super) mapped: u32,
}

impl Ftl {
    pub(super) fn new(geometry: Geometry) -> Self {
        let (data, slc) = (&geometry.data, &geometry.slc);
        let logical = geometry.logical_pages as usize;
        Self {
            map: vec![0; logical],
            owner: vec![0; geometry.pages()],
            is_valid: vec![0; geometry.pages().div_ceil(64)],
            valid: vec![0; geometry.blocks()],
            state: vec![BlockState::Free; geometry.blocks()],
            programming: vec![0; geometry.blocks()],
            free_data: (0..data.blocks).collect(),
            free_slc: (slc.first_block..slc.first_block + slc.blocks).collect(),
            full_slc: VecDeque::new(),
            open: [None; 3],
            in_memory: vec![0; geometry.units().div_ceil(64)],
            discarded: vec![0; logical.div_ceil(64)],
            mapped_in_chunk: vec![0; logical.div_ceil(CHUNK_PAGES as usize)],
            mapped: 0,
            geometry,
        }
    }

    pub(super) fn region(&self, stream: Stream) -> &Region {
        if stream == Stream::Cache { &self.geometry.slc } else { &self.geometry.data }
    }

    /// Whether a page can be appended: collection may take the last free block, the host may not.
    pub(super) fn has_room(&self, stream: Stream) -> bool {
        self.open[stream as usize].is_some()
            || match stream {
                Stream::Host => self.free_data.len() >= 2,
                Stream::Cache => !self.free_slc.is_empty(),
                Stream::Moved => !self.free_data.is_empty(),
            }
    }

    /// Writes a page of the disk to a stream of the host that [has room](Ftl::has_room).
    pub(super) fn append(&mut self, stream: Stream, page: u32) -> Appended {
        let old = self.map[page as usize].checked_sub(1);
        if old.is_some_and(|old| self.is_in_open_unit(old)) {
            return Appended::Merged;
        }
        self.place(stream, page, old)
    }

    /// Writes a valid page of flash anew; its owner is known, so the table of the whole disk need not be read.
    pub(super) fn move_page(&mut self, flash_page: u32, owner: u32) -> Appended {
        self.place(Stream::Moved, owner, Some(flash_page))
    }

    /// `old` is where the latest version was until now.
    fn place(&mut self, stream: Stream, page: u32, old: Option<u32>) -> Appended {
        if self.open[stream as usize].is_none() {
            self.open[stream as usize] = self.open_block(stream);
        }
        let Some(open) = &mut self.open[stream as usize] else { return Appended::Merged };
        let flash_page = self.geometry.first_page_of(open.block) + open.used;
        open.used += 1;
        open.unit_used += 1;
        let unit_used = open.unit_used;
        if unit_used == 1 {
            let unit = self.geometry.unit_of(flash_page) as usize;
            self.in_memory[unit / 64] |= 1 << (unit % 64);
        }
        if let Some(old) = old {
            self.invalidate(old);
        } else {
            self.mapped += 1;
            self.mapped_in_chunk[(page / CHUNK_PAGES) as usize] += 1;
            self.discarded[page as usize / 64] &= !(1 << (page % 64));
        }
        self.set(page, flash_page);
        if unit_used == self.region(stream).unit_pages {
            self.close_unit(stream).map_or(Appended::Buffered, Appended::Filled)
        } else {
            Appended::Buffered
        }
    }

    /// Gives away the open unit of a stream, full or padded; `None` if there is nothing in it.
    pub(super) fn close_unit(&mut self, stream: Stream) -> Option<Unit> {
        let open = self.open[stream as usize].as_mut().filter(|open| open.unit_used > 0)?;
        let region = if stream == Stream::Cache { &self.geometry.slc } else { &self.geometry.data };
        let (block, pages) = (open.block, open.unit_used);
        let used = open.used - pages;
        let first_page = self.geometry.first_page_of(block) + used;
        open.used = used + region.unit_pages;
        open.unit_used = 0;
        let is_full = open.used == region.block_pages;
        self.programming[block as usize] += 1;
        if is_full {
            self.open[stream as usize] = None;
            self.state[block as usize] = BlockState::Full;
            if stream == Stream::Cache {
                self.full_slc.push_back(block);
            }
        }
        Some(Unit { first_page, pages })
    }

    fn open_block(&mut self, stream: Stream) -> Option<OpenBlock> {
        let free = if stream == Stream::Cache { &mut self.free_slc } else { &mut self.free_data };
        let block = free.pop_front()?;
        self.state[block as usize] = BlockState::Open;
        Some(OpenBlock { block, used: 0, unit_used: 0 })
    }

    /// A unit is on the flash.
    pub(super) fn programmed(&mut self, unit: Unit) {
        self.programming[self.geometry.block_of(unit.first_page) as usize] -= 1;
        let index = self.geometry.unit_of(unit.first_page) as usize;
        self.in_memory[index / 64] &= !(1 << (index % 64));
    }

    fn is_in_open_unit(&self, flash_page: u32) -> bool {
        [Stream::Host, Stream::Cache].into_iter().any(|stream| {
            self.open[stream as usize].is_some_and(|open| {
                let next = self.geometry.first_page_of(open.block) + open.used;
                (next - open.unit_used..next).contains(&flash_page)
            })
        })
    }

    /// Lets a page of flash hold the latest version of a page of the disk, of which there is no other.
    pub(super) fn set(&mut self, page: u32, flash_page: u32) {
        self.map[page as usize] = flash_page + 1;
        self.owner[flash_page as usize] = page + 1;
        self.is_valid[flash_page as usize / 64] |= 1 << (flash_page % 64);
        self.valid[self.geometry.block_of(flash_page) as usize] += 1;
    }

    fn invalidate(&mut self, flash_page: u32) {
        self.is_valid[flash_page as usize / 64] &= !(1 << (flash_page % 64));
        self.valid[self.geometry.block_of(flash_page) as usize] -= 1;
    }

    /// Where to read a page of the disk, and where that lies.
    pub(super) fn find(&self, page: u32) -> PagePlace {
        match self.map[page as usize].checked_sub(1) {
            None if self.discarded[page as usize / 64] >> (page % 64) & 1 == 1 => PagePlace::Nothing,
            None => PagePlace::Flash(page),
            Some(flash_page) => {
                let unit = self.geometry.unit_of(flash_page) as usize;
                if self.in_memory[unit / 64] >> (unit % 64) & 1 == 1 {
                    PagePlace::Buffer
                } else {
                    PagePlace::Flash(flash_page)
                }
            }
        }
    }

    /// The page of the disk that a page of flash holds, if that is its latest version.
    pub(super) fn valid_owner(&self, flash_page: u32) -> Option<u32> {
        if self.is_valid(flash_page) { self.owner[flash_page as usize].checked_sub(1) } else { None }
    }

    pub(super) fn is_valid(&self, flash_page: u32) -> bool {
        self.is_valid[flash_page as usize / 64] >> (flash_page % 64) & 1 == 1
    }

    /// Closes the oldest of the cache's free blocks, whatever they will hold.
    pub(super) fn fill_slc(&mut self, blocks: u32) -> std::ops::Range<u32> {
        let filled = self.geometry.slc.first_block..self.geometry.slc.first_block + blocks;
        self.free_slc.retain(|block| !filled.contains(block));
        self.full_slc.extend(filled.clone());
        filled.clone().for_each(|block| self.state[block as usize] = BlockState::Full);
        filled
    }

    /// Closes the first of the data blocks, whatever they will hold, and lets the host write the next from its page
    /// `written` on.
    pub(super) fn fill_data(&mut self, blocks: u32, written: u32) {
        (0..blocks).for_each(|block| self.state[block as usize] = BlockState::Full);
        self.free_data.retain(|block| *block >= blocks);
        if let Some(mut open) = self.open_block(Stream::Host) {
            open.used = written;
            self.open[Stream::Host as usize] = Some(open);
        }
    }

    /// Counts every page of the disk as mapped, after the tables were filled directly.
    pub(super) fn all_mapped(&mut self) {
        self.mapped = self.geometry.logical_pages;
        for (chunk, mapped) in (0..).zip(&mut self.mapped_in_chunk) {
            *mapped = CHUNK_PAGES.min(self.geometry.logical_pages - chunk * CHUNK_PAGES) as u16;
        }
    }

    /// Forgets the pages from `first` up to, not including, `end`.
    pub(super) fn discard(&mut self, first: u32, end: u32) {
        let mut page = first;
        while page < end {
            let chunk = page / CHUNK_PAGES;
            let chunk_end = end.min((chunk + 1) * CHUNK_PAGES);
            for page in page..chunk_end {
                if self.mapped_in_chunk[chunk as usize] == 0 {
                    break;
                }
                if let Some(old) = std::mem::take(&mut self.map[page as usize]).checked_sub(1) {
                    self.invalidate(old);
                    self.mapped -= 1;
                    self.mapped_in_chunk[chunk as usize] -= 1;
                }
            }
            set_bits(&mut self.discarded, page, chunk_end);
            page = chunk_end;
        }
    }

    /// Pages of full density that can be written without collecting any.
    pub(super) fn free_pages(&self) -> u64 {
        let block_pages = self.geometry.data.block_pages;
        let open = [Stream::Host, Stream::Moved]
            .map(|stream| self.open[stream as usize].map_or(0, |open| block_pages - open.used));
        self.free_data.len() as u64 * u64::from(block_pages) + open.iter().map(|pages| u64::from(*pages)).sum::<u64>()
    }

    pub(super) fn free_slc_blocks(&self) -> u32 {
        self.free_slc.len() as u32
    }

    pub(super) fn cache_is_open(&self) -> bool {
        self.open[Stream::Cache as usize].is_some()
    }

    /// Free bytes of the open block of the cache count, too.
    pub(super) fn free_slc_pages(&self) -> u64 {
        let block_pages = self.geometry.slc.block_pages;
        let open = self.open[Stream::Cache as usize].map_or(0, |open| block_pages - open.used);
        self.free_slc.len() as u64 * u64::from(block_pages) + u64::from(open)
    }

    /// Pages of the host that are in units not given to a die yet.
    #[cfg(test)]
    pub(super) fn pages_in_open_units(&self) -> u32 {
        [Stream::Host, Stream::Cache]
            .map(|stream| self.open[stream as usize].map_or(0, |open| open.unit_used))
            .iter()
            .sum()
    }

    /// Takes the full block with the fewest valid pages, if it has any garbage.
    pub(super) fn take_greediest(&mut self) -> Option<u32> {
        let full = self.geometry.data.block_pages;
        let candidates = (0..self.geometry.data.blocks as usize)
            .filter(|&block| self.state[block] == BlockState::Full && self.programming[block] == 0);
        let block = candidates.min_by_key(|&block| self.valid[block]).filter(|&block| self.valid[block] < full)?;
        self.state[block] = BlockState::Reclaimed;
        Some(block as u32)
    }

    /// Takes the oldest full block of the cache.
    pub(super) fn take_oldest_cached(&mut self) -> Option<u32> {
        let block = *self.full_slc.front().filter(|block| self.programming[**block as usize] == 0)?;
        self.full_slc.pop_front();
        self.state[block as usize] = BlockState::Reclaimed;
        Some(block)
    }

    pub(super) fn has_full_cached(&self) -> bool {
        !self.full_slc.is_empty()
    }

    /// A block is erased on every die.
    pub(super) fn erased(&mut self, block: u32) {
        debug_assert_eq!(self.valid[block as usize], 0, "block {block} is erased with data in it");
        self.state[block as usize] = BlockState::Free;
        if block >= self.geometry.slc.first_block {
            self.free_slc.push_back(block);
        } else {
            self.free_data.push_back(block);
        }
    }
}

fn set_bits(bits: &mut [u64], first: u32, end: u32) {
    let mut at = first;
    while at < end {
        let stop = end.min((at / 64 + 1) * 64);
        let mask = if stop - at == 64 { u64::MAX } else { ((1 << (stop - at)) - 1) << (at % 64) };
        bits[at as usize / 64] |= mask;
        at = stop;
    }
}

/// Pages that are dealt together at most, each to another part of the blocks, so that none gets more than its share by
/// chance. A power of two.
const ROUND: usize = 1 << 17;

/// By how many parts of a page's share of the blocks a round may be shifted against another.
const SHIFTS: usize = 8;

/// Flash pages written for each page of the host under greedy collection of uniform random writes.
///
/// With x = 1 / A the formula is x = 1 - exp(-(1 + r) x), whose root between 0 and 1 this finds by bisection.
fn greedy_write_amplification(spare: f64) -> f64 {
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
