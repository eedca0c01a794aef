//! What the drive does of its own accord: it collects garbage, and empties the cache of single-bit blocks.
//!
//! Both take a block, read its valid pages, program them elsewhere at full density, and erase it. Collection takes the
//! block with the fewest valid pages (greedy), and begins when little more is free than the host must leave (`geometry`
//! has both levels). In between, and while the host waits, the pages that the block under collection has been
//! relieved of count as free, so that the host goes on at the pace of collection, not by fits and starts.
//!
//! The cache is emptied (*folded*) when the host has written nothing for a while. When it is full, either the host
//! writes past it, to blocks of full density (Samsung's way), or it is emptied at once while the host's writes are held
//! down, until a good part of it is free again (the way of Intel's 600p and 760p). Meanwhile the host leaves so much
//! free that emptying gets its turn beside collection.

use super::dies::{Event, Job, Reader};
use super::ftl::{Appended, Stream, Unit};
use super::spec::PAGE_BYTES;
use super::spec::{SlcSpec, transfer_ns};
use super::{Host, Reclaim, Ssd, Victim};

/// Flash pages read and units programmed at a time for moving, for each die.
const MOVES_PER_DIE: u32 = 2;

/// Blocks that are erased at a time before the next of the cache is taken: with nothing valid in them all that a large
/// cache has would go at once.
const ERASING_MAX: usize = 8;

impl Reclaim {
    pub(super) fn new(slc: Option<&SlcSpec>) -> Self {
        let fold_after_ns = slc.map_or(0, |slc| (slc.fold_after_idle_ms * 1e6) as u64);
        Self { fold_after_ns, ..Self::default() }
    }
}

impl Ssd {
    /// Where the host's next page goes; `None` if it has to wait.
    pub(super) fn stream_of_host(&mut self) -> Option<Stream> {
        let Some(slc) = &self.spec.slc else { return self.host_has_room().then_some(Stream::Host) };
        let reclaim = &mut self.reclaim;
        if reclaim.draining {
            let blocks = f64::from(self.ftl.geometry.slc.blocks);
            reclaim.draining =
                f64::from(self.ftl.free_slc_blocks()) < slc.refill_at * blocks && self.ftl.has_full_cached();
        }
        let has_cache = self.ftl.cache_is_open() || self.cache_free_pages() > 0;
        if has_cache && !self.reclaim.draining {
            return Some(Stream::Cache);
        }
        self.cache_ran_out_ns.get_or_insert(self.now_ns);
        if let Some(rate_mb_s) = slc.write_while_folding_mb_s {
            self.reclaim.draining |= self.ftl.has_full_cached();
            if self.reclaim.pace_ns > self.now_ns {
                if !std::mem::replace(&mut self.reclaim.paced, true) {
                    self.events.push(self.reclaim.pace_ns, Event::Paced);
                }
                return None;
            }
            if self.reclaim.draining && self.host_has_room() {
                self.reclaim.pace_ns = self.now_ns + transfer_ns(PAGE_BYTES, rate_mb_s);
            }
        }
        self.host_has_room().then_some(Stream::Host)
    }

    fn host_has_room(&self) -> bool {
        let geometry = &self.ftl.geometry;
        let leaves = if self.reclaim.draining { geometry.collect_below_pages() } else { geometry.host_leaves_pages() };
        self.ftl.has_room(Stream::Host) && self.reclaimable_pages() > leaves
    }

    /// Free pages of full density, with those of blocks being erased and those that collection has passed.
    fn reclaimable_pages(&self) -> u64 {
        let reclaim = &self.reclaim;
        let passed = reclaim
            .victim
            .as_ref()
            .filter(|victim| !victim.is_cache)
            .map_or(0, |victim| u64::from(victim.next_page - self.ftl.geometry.first_page_of(victim.block)));
        let erasing = reclaim.erasing_data * u64::from(self.ftl.geometry.data.block_pages);
        (self.ftl.free_pages() + passed + erasing).saturating_sub(reclaim.moving)
    }

    /// Free pages of the cache as it is now: the dynamic part needs three unwritten pages for each of its own.
    pub(super) fn cache_free_pages(&self) -> u64 {
        let Some(slc) = &self.spec.slc else { return 0 };
        let region = &self.ftl.geometry.slc;
        let all = u64::from(region.blocks) * u64::from(region.block_pages);
        let dynamic = all as f64 * slc.dynamic_bytes as f64 / (slc.dynamic_bytes + slc.static_bytes) as f64;
        let unwritten = f64::from(self.ftl.geometry.logical_pages - self.ftl.mapped) + self.unwritten_behind as f64;
        let bits = self.spec.flash.read_us.len() as f64;
        let missing = (dynamic - unwritten / bits).max(0.0) as u64;
        self.ftl.free_slc_pages().saturating_sub(missing)
    }

    /// A write of the host is in the buffer.
    pub(super) fn host_wrote(&mut self) {
        self.reclaim.host_wrote_ns = self.now_ns;
        if self.spec.slc.is_some() && self.reclaim.host != Host::Watched {
            self.reclaim.host = Host::Watched;
            self.events.push(self.now_ns + self.reclaim.fold_after_ns, Event::Idle);
        }
    }

    /// Empties the cache if nothing was written for long enough, else looks again when that may be.
    pub(super) fn idle_fold(&mut self) {
        let idle_ns = self.reclaim.host_wrote_ns + self.reclaim.fold_after_ns;
        if idle_ns > self.now_ns {
            self.events.push(idle_ns, Event::Idle);
        } else {
            self.reclaim.host = Host::Idle;
            self.reclaim();
        }
    }

    /// Goes on with the block in work, or takes the next one if there is a reason to.
    pub(super) fn reclaim(&mut self) {
        loop {
            self.write_arrived();
            let Some(mut victim) = self.reclaim.victim else {
                if !self.choose_victim() {
                    return;
                }
                continue;
            };
            let limit = MOVES_PER_DIE * self.dies.count();
            while victim.next_page < victim.end_page && victim.reads < limit && self.reclaim.programs < limit {
                let flash_page = victim.next_page;
                victim.next_page += self.ftl.geometry.flash_pages;
                victim.reads += u32::from(self.read_to_move(flash_page));
            }
            self.reclaim.victim = Some(victim);
            let is_moved = victim.next_page >= victim.end_page && victim.reads == 0 && self.reclaim.arrived.is_empty();
            if !is_moved {
                return;
            }
            self.reclaim.victim = None;
            self.erase(victim);
        }
    }

    fn choose_victim(&mut self) -> bool {
        let (free, enough) = (self.reclaimable_pages(), self.ftl.geometry.collect_below_pages());
        let folds = (self.reclaim.draining || self.reclaim.host == Host::Idle) && self.ftl.has_full_cached();
        if !folds && free >= enough {
            return false;
        }
        let mut block = None;
        if free < enough {
            block = self.ftl.take_greediest();
        }
        // Folding needs a block to write to; collection, which can always go on, must have had its turn by then.
        let erases = self.reclaim.erasing.len() < ERASING_MAX;
        if block.is_none() && folds && erases && free > self.ftl.geometry.host_leaves_pages() {
            block = self.ftl.take_oldest_cached();
        }
        let Some(block) = block else { return false };
        let first_page = self.ftl.geometry.first_page_of(block);
        let region = self.ftl.geometry.region_of_block(block);
        let is_cache = block >= self.ftl.geometry.slc.first_block;
        let end_page = first_page + region.block_pages;
        self.reclaim.victim = Some(Victim { block, next_page: first_page, end_page, reads: 0, is_cache });
        true
    }

    /// Begins to read a flash page if any of it is valid.
    fn read_to_move(&mut self, flash_page: u32) -> bool {
        let pages = flash_page..flash_page + self.ftl.geometry.flash_pages;
        let valid = pages.filter(|page| self.ftl.is_valid(*page)).count() as u64;
        if valid == 0 {
            return false;
        }
        self.reclaim.moving += valid;
        self.read_flash(flash_page, valid * PAGE_BYTES, Reader::Moved(flash_page));
        true
    }

    pub(super) fn moved_page_arrived(&mut self, flash_page: u32, pages: u64) {
        self.reclaim.arrived.push_back((flash_page, pages));
        if let Some(victim) = &mut self.reclaim.victim {
            victim.reads -= 1;
        }
        self.reclaim();
        if !self.blocked.is_empty() {
            self.admit_writes();
        }
    }

    /// Writes what has been read to move, as far as there is a block to write to.
    fn write_arrived(&mut self) {
        while let Some((flash_page, pages)) = self.reclaim.arrived.front().copied() {
            let is_cache = flash_page >= self.ftl.geometry.slc.first_page;
            for page in flash_page..flash_page + self.ftl.geometry.flash_pages {
                let Some(owner) = self.ftl.valid_owner(page) else { continue };
                // The rest follows when a block has been erased; what has been moved is no longer valid here.
                if !self.ftl.has_room(Stream::Moved) {
                    return;
                }
                if is_cache {
                    self.counts.folded += 1;
                } else {
                    self.counts.collected += 1;
                }
                if let Appended::Filled(unit) = self.ftl.move_page(page, owner) {
                    self.program_moved(unit);
                }
            }
            self.reclaim.arrived.pop_front();
            self.reclaim.moving -= pages;
        }
    }

    fn program_moved(&mut self, unit: Unit) {
        self.reclaim.programs += 1;
        self.give_to_die(unit, 0);
    }

    pub(super) fn moved_programmed(&mut self) {
        self.reclaim.programs -= 1;
        self.reclaim();
    }

    fn erase(&mut self, victim: Victim) {
        let dies = self.dies.count();
        self.reclaim.erasing.push((victim.block, dies));
        self.reclaim.erasing_data += u64::from(!victim.is_cache);
        for die in 0..dies {
            self.dies.add_job(die, Job::Erase(victim.block), self.now_ns, &mut self.events);
        }
    }

    pub(super) fn die_erased(&mut self, block: u32) {
        let erasing = &mut self.reclaim.erasing;
        let Some(index) = erasing.iter().position(|(erased, _)| *erased == block) else { return };
        erasing[index].1 -= 1;
        if erasing[index].1 > 0 {
            return;
        }
        erasing.swap_remove(index);
        self.reclaim.erasing_data -= u64::from(block < self.ftl.geometry.slc.first_block);
        self.ftl.erased(block);
        self.admit_writes();
    }
}
