//! The translation layer's tables: which page of flash holds which page of the disk, and what is in each block.
//!
//! Two tables of 32 bits a page, one each way: about 2.2 bytes of memory for a KiB of disk, touched only where written
//! (64 GiB take at most 140 MiB, 256 GiB 560 MiB). A page of flash is *valid* if the page of the disk it was written for
//! still points at it.

use std::collections::VecDeque;

use super::geometry::{Geometry, Region};

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
    /// By page of flash: whether that is the latest version. The owners' entries in `map` say the same, but lie all over the
    /// table, and collection asks for every page of a block.
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
