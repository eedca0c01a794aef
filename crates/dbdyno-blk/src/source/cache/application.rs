//! What runs on the page cache.

use super::file::Page;
use super::pages::Pages;

/// What a process does next; the next question comes when that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Writes to a page; `whole` if all of it, so that it need not be read first. Beyond the end the file grows.
    Write {
        /// Which.
        page: Page,
        /// All of its bytes.
        whole: bool,
    },
    /// Reads a page; if it is not in memory, so many from it on are read, as far as the file goes.
    Read {
        /// Which.
        page: Page,
        /// Pages from it on, read-ahead included.
        pages: u32,
    },
    /// Waits until all that was written to a file is on the drive, and what its commit holds.
    Fsync(u32),
    /// Computes, or pauses, so many nanoseconds.
    Compute(u64),
    /// Ends.
    Exit,
}

/// Processes that use files through the page cache.
pub trait Application {
    /// How many processes there are.
    fn processes(&self) -> u32;

    /// Creates its files; called once, at time 0.
    fn begin(&mut self, files: &mut Files);

    /// What a process does next. `Exit` is the last.
    fn act(&mut self, now_ns: u64, process: u32) -> Act;
}

/// The files that an application begins with.
pub struct Files<'a>(pub(super) &'a mut Pages);

impl Files<'_> {
    /// A new file of so many pages; files are numbered from 0.
    pub fn add(&mut self, pages: u32) -> u32 {
        let file = self.0.add_file();
        self.0.grow(file, pages);
        file
    }

    /// Makes a file longer, at least so long; files that are made longer in turn lie mixed, as those that grow at once.
    pub fn grow(&mut self, file: u32, pages: u32) {
        self.0.grow(file, pages);
    }

    /// The first pages of a file, as many as there is room for, are in memory.
    pub fn load(&mut self, file: u32) {
        self.0.preload(file);
    }
}
