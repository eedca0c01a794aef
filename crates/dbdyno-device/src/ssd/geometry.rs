//! Where the pages are: dies, planes, and blocks of pages across all dies.
//!
//! A *page* here is the mapping unit of 4 KiB; what a plane reads at once is a *flash page* of some of them; what a die
//! programs at once (all planes, and all bits of the cell where they go together) is a *unit*. A *block* is one erase
//! block on every die, written, collected and erased together, unit by unit around the dies (the "superblock" of client
//! drives' controllers; from memory). So consecutive units lie on consecutive channels.
//!
//! A disk smaller than the drive keeps the drive's dies, planes, times and ratio of spare area, and has fewer blocks;
//! once there would be fewer than [`BLOCKS_MIN`], smaller ones, of one unit a die at the least. Then erasing one takes
//! less time in proportion, so that a byte costs as much erasing as on the whole drive. Its cache of single-bit blocks
//! is the drive's, in as many more of these blocks, or one in proportion where the drive file asks for that. A disk of
//! fewer than some 60 of the smallest blocks (200 MiB for 32 dies of 96 KiB units) has more spare area than the drive,
//! because collection needs it.

use super::spec::{PAGE_BYTES, SsdSpec};

/// Enough blocks for greedy collection to come within a percent of its formula at 7 % spare.
const BLOCKS_MIN: u64 = 1024;

/// Blocks beyond the nominal spare area: those being written and erased, and the reserve that collection works with.
const RESERVE_BLOCKS: u32 = 3;

/// Free blocks that the host's writes must leave: one for collection to write to, and one that stands for pages
/// collected from a block which is not erased yet.
const HOST_LEAVES: u64 = 2;

/// Units on each die that collection keeps free beyond those, two blocks at most: enough to keep the dies busy before
/// the host has to wait, and so little that a pause does not make a steady drive fast for long.
const UNITS_AHEAD: u64 = 4;

/// Blocks of one kind: of the cells' full density, or written with one bit a cell.
#[derive(Debug, Clone)]
pub(super) struct Region {
    pub first_page: u32,
    pub first_block: u32,
    pub blocks: u32,
    /// Pages programmed at once on a die.
    pub unit_pages: u32,
    pub block_pages: u32,
    /// Global number of the first unit.
    first_unit: u32,
    /// Flash pages of a plane programmed at once.
    shot: u32,
    by_unit_pages: Divisor,
    by_units_per_block: Divisor,
}

/// Where a page lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageAddress {
    pub die: u32,
    pub plane: u32,
    /// Number of the flash page on its word line and plane, counted on from word line to word line: which of the
    /// cells' bits it is, modulo their number.
    pub level: u32,
    pub is_slc: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Geometry {
    pub logical_pages: u32,
    pub dies: u32,
    /// Pages in a flash page.
    pub flash_pages: u32,
    pub data: Region,
    pub slc: Region,
    /// A data block here as a part of one of the whole drive.
    pub block_scale: f64,
    by_dies: Divisor,
    by_planes: Divisor,
    by_flash_pages: Divisor,
}

impl Geometry {
    pub(super) fn new(spec: &SsdSpec, size_bytes: u64) -> Self {
        let flash = &spec.flash;
        let dies = (flash.channels * flash.dies_per_channel) as u32;
        let flash_pages = (flash.page_bytes / PAGE_BYTES) as u32;
        let shot = flash.pages_per_program;
        let unit_pages = flash.planes * shot * flash_pages;
        let row_pages = u64::from(dies * unit_pages);
        let logical_pages = size_bytes.div_ceil(PAGE_BYTES);
        let wanted = (logical_pages as f64 * (1.0 + spec.ftl.over_provisioning)).ceil() as u64;
        let rows_max = (flash.block_bytes / (u64::from(unit_pages) * PAGE_BYTES)).max(1);
        let rows = (wanted / (BLOCKS_MIN * row_pages)).clamp(1, rows_max);
        let block_pages = (rows * row_pages) as u32;
        let nominal = wanted.div_ceil(u64::from(block_pages));
        // Collection must be able to come to its end: what it wants to have free, and the two blocks being written.
        let least = logical_pages.div_ceil(u64::from(block_pages)) + 4;
        let data = Region {
            first_page: 0,
            first_block: 0,
            blocks: nominal.max(least) as u32 + RESERVE_BLOCKS,
            unit_pages,
            block_pages,
            first_unit: 0,
            shot,
            by_unit_pages: Divisor::new(unit_pages),
            by_units_per_block: Divisor::new(block_pages / unit_pages),
        };
        let slc = Self::slc_region(spec, size_bytes, &data, dies, flash_pages);
        let block_scale = rows as f64 / rows_max as f64;
        Self {
            logical_pages: logical_pages as u32,
            dies,
            flash_pages,
            data,
            slc,
            block_scale,
            by_dies: Divisor::new(dies),
            by_planes: Divisor::new(flash.planes),
            by_flash_pages: Divisor::new(flash_pages),
        }
    }

    /// The cache's blocks are counted apart from the data blocks that a real drive would make them of.
    fn slc_region(spec: &SsdSpec, size_bytes: u64, data: &Region, dies: u32, flash_pages: u32) -> Region {
        let unit_pages = spec.flash.planes * flash_pages;
        let rows = (data.block_pages / (dies * unit_pages * spec.flash.read_us.len() as u32)).max(1);
        let block_pages = rows * dies * unit_pages;
        let cache_bytes = spec.slc.as_ref().map_or(0, |slc| slc.bytes_on(size_bytes, spec.capacity_bytes));
        let blocks = (cache_bytes as f64 / (f64::from(block_pages) * PAGE_BYTES as f64)).round() as u32;
        Region {
            first_page: data.blocks * data.block_pages,
            first_block: data.blocks,
            blocks: if spec.slc.is_none() { 0 } else { blocks.max(2) },
            unit_pages,
            block_pages,
            first_unit: data.blocks * (data.block_pages / data.unit_pages),
            shot: 1,
            by_unit_pages: Divisor::new(unit_pages),
            by_units_per_block: Divisor::new(block_pages / unit_pages),
        }
    }

    /// Free pages that the host's writes must leave.
    pub(super) fn host_leaves_pages(&self) -> u64 {
        HOST_LEAVES * u64::from(self.data.block_pages)
    }

    /// Free pages below which collection begins.
    pub(super) fn collect_below_pages(&self) -> u64 {
        let ahead = UNITS_AHEAD * u64::from(self.dies * self.data.unit_pages);
        self.host_leaves_pages() + ahead.min(2 * u64::from(self.data.block_pages))
    }

    pub(super) fn pages(&self) -> usize {
        self.slc.first_page as usize + self.slc.blocks as usize * self.slc.block_pages as usize
    }

    pub(super) fn blocks(&self) -> usize {
        (self.data.blocks + self.slc.blocks) as usize
    }

    pub(super) fn units(&self) -> usize {
        self.pages() / self.slc.unit_pages as usize + 1
    }

    pub(super) fn region_of_block(&self, block: u32) -> &Region {
        if block >= self.slc.first_block { &self.slc } else { &self.data }
    }

    fn region_of_page(&self, page: u32) -> &Region {
        if page >= self.slc.first_page { &self.slc } else { &self.data }
    }

    pub(super) fn first_page_of(&self, block: u32) -> u32 {
        let region = self.region_of_block(block);
        region.first_page + (block - region.first_block) * region.block_pages
    }

    pub(super) fn block_of(&self, page: u32) -> u32 {
        let region = self.region_of_page(page);
        region.first_block + region.by_units_per_block.quotient(region.by_unit_pages.quotient(page - region.first_page))
    }

    pub(super) fn unit_of(&self, page: u32) -> u32 {
        let region = self.region_of_page(page);
        region.first_unit + region.by_unit_pages.quotient(page - region.first_page)
    }

    /// Pages programmed at once there.
    pub(super) fn unit_pages_at(&self, place: PageAddress) -> u32 {
        if place.is_slc { self.slc.unit_pages } else { self.data.unit_pages }
    }

    pub(super) fn place_of(&self, page: u32) -> PageAddress {
        let region = self.region_of_page(page);
        let (unit, page_in_unit) = region.by_unit_pages.divide(page - region.first_page);
        let (block, unit_in_block) = region.by_units_per_block.divide(unit);
        let (word_line, plane) = self.by_planes.divide(self.by_flash_pages.quotient(page_in_unit));
        PageAddress {
            // Rotated from block to block, so that no die gets all the short flushes.
            die: self.by_dies.divide(unit_in_block + block).1,
            plane,
            level: self.by_dies.quotient(unit_in_block) * region.shot + word_line,
            is_slc: region.first_page == self.slc.first_page,
        }
    }
}

/// What to divide by: `n / d` is the upper half of `(n + 1) m`, with m = (2^64 - 1) / d rounded down. That is exact for
/// 32 bits, as the product falls short of `(n + 1) / d` by more than nothing and less than any `1 / d`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Divisor {
    by: u32,
    multiplier: u64,
}

impl Divisor {
    /// `by` is not 0.
    pub(super) fn new(by: u32) -> Self {
        Self { by, multiplier: u64::MAX / u64::from(by) }
    }

    fn quotient(self, number: u32) -> u32 {
        ((u128::from(self.multiplier) * (u128::from(number) + 1)) >> 64) as u32
    }

    /// Quotient and remainder.
    fn divide(self, number: u32) -> (u32, u32) {
        let quotient = self.quotient(number);
        (quotient, number - quotient * self.by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_divides_as_a_division_does() {
        let edges = |at: u32| [at.saturating_sub(1), at, at.saturating_add(1)];
        let numbers = (0..32).flat_map(|bit| edges(1 << bit)).chain([10, 48, 96, 1000, 3_000_000_019, u32::MAX]);
        let numbers: Vec<u32> = numbers.collect();
        for &by in numbers.iter().filter(|by| **by > 0) {
            let multiples = numbers.iter().filter_map(|times| by.checked_mul(*times)).flat_map(edges);
            for number in numbers.iter().copied().chain(multiples) {
                assert_eq!(Divisor::new(by).divide(number), (number / by, number % by), "{number} by {by}");
            }
        }
    }
}
