//! What Andrew Morton measured of three schedulers in February 2003 (LKML, 20 Feb 2003), run again.
//!
//! `cargo test --release -p dbdyno-blk --test morton -- --nocapture` prints the table of `docs/simulate-validation.md`. Kernel
//! 2.6.9 stands for 2.5.61, ext3 with `data=writeback` for ext2, and a disk of today, slowed down, for one of then.

#![allow(clippy::unwrap_used)]

use dbdyno_blk::kernel::{Kernel, Settings};
use dbdyno_blk::queue::Limits;
use dbdyno_blk::run;
use dbdyno_blk::source::{Act, Application, CacheConfig, Cached, Data, Files, Filesystem, Page};

const SECOND_NS: u64 = 1_000_000_000;
const MIB_PAGES: u32 = 256;
/// CPU of a page that is read or written, nanoseconds.
const PAGE_NS: u64 = 10_000;
/// Files of a kernel tree, and pages of each.
const TREE_FILES: u32 = 12_000;
const TREE_PAGES: u32 = 3;

/// What a process does with a file of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Role {
    /// Reads it, with so much read ahead at most.
    Read {
        pages: u32,
        ahead_pages: u32,
    },
    /// Reads the files of a tree: an inode block for every 32 of them, elsewhere.
    Tree,
    /// Writes it and calls fsync.
    WriteSync {
        pages: u32,
    },
    /// Reads and writes by turns, and calls fsync.
    Copy {
        pages: u32,
    },
    /// Beside the others, until they have ended.
    StreamRead,
    StreamWrite,
}

impl Role {
    fn is_background(self) -> bool {
        matches!(self, Self::StreamRead | Self::StreamWrite)
    }

    fn pages(self) -> u32 {
        match self {
            Self::Read { pages, .. } | Self::WriteSync { pages } | Self::Copy { pages } => pages,
            Self::Tree => TREE_FILES * TREE_PAGES,
            Self::StreamRead | Self::StreamWrite => 6 * 1024 * MIB_PAGES,
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    file: u32,
    /// The second file that a tree or a copy has.
    other: u32,
    page: u32,
    ahead_pages: u32,
    computed: bool,
    turn: u32,
    synced: bool,
}

struct Morton {
    roles: Vec<Role>,
    at: Vec<Progress>,
    left: usize,
    /// When the last of those that are timed ended.
    ended_ns: u64,
}

impl Morton {
    fn new(roles: Vec<Role>) -> Self {
        let left = roles.iter().filter(|role| !role.is_background()).count();
        Self { at: vec![Progress { ahead_pages: 4, ..Progress::default() }; roles.len()], roles, left, ended_ns: 0 }
    }

    fn next(&mut self, process: usize) -> Act {
        let (role, at) = (self.roles[process], &mut self.at[process]);
        let page = |file, page| Page { file, page };
        let now = at.page % role.pages();
        match role {
            Role::Read { ahead_pages: most, .. } => {
                let pages = at.ahead_pages.min(most);
                at.ahead_pages = (pages * 2).min(most);
                at.page += pages;
                Act::Read { page: page(at.file, now), pages }
            }
            Role::StreamRead => {
                at.page += 32;
                Act::Read { page: page(at.file, now), pages: 32 }
            }
            Role::Tree => {
                let nth = at.page / TREE_PAGES;
                if at.turn == nth / 32 {
                    at.turn += 1;
                    return Act::Read { page: page(at.other, nth / 32), pages: 1 };
                }
                at.page += TREE_PAGES;
                Act::Read { page: page(at.file, now), pages: TREE_PAGES }
            }
            Role::WriteSync { .. } | Role::StreamWrite => {
                at.page += 1;
                Act::Write { page: page(at.file, now), whole: true }
            }
            Role::Copy { .. } => {
                // A window is read, then its pages are written.
                if at.turn == 0 {
                    at.turn = 32;
                    return Act::Read { page: page(at.file, now), pages: 32 };
                }
                at.turn -= 1;
                at.page += 1;
                Act::Write { page: page(at.other, now), whole: true }
            }
        }
    }
}

impl Application for Morton {
    fn processes(&self) -> u32 {
        self.roles.len() as u32
    }

    fn begin(&mut self, files: &mut Files) {
        for (role, at) in self.roles.iter().zip(&mut self.at) {
            at.file = files.add(role.pages());
            at.other = match role {
                Role::Tree => files.add(TREE_FILES / 32),
                Role::Copy { pages } => files.add(*pages),
                _ => at.file,
            };
        }
    }

    fn act(&mut self, now_ns: u64, process: u32) -> Act {
        let process = process as usize;
        let role = self.roles[process];
        if !std::mem::replace(&mut self.at[process].computed, true) {
            return Act::Compute(PAGE_NS);
        }
        self.at[process].computed = false;
        let is_over = if role.is_background() { self.left == 0 } else { self.at[process].page >= role.pages() };
        if !is_over {
            return self.next(process);
        }
        let writes = matches!(role, Role::WriteSync { .. } | Role::Copy { .. });
        if writes && !std::mem::replace(&mut self.at[process].synced, true) {
            return Act::Fsync(self.at[process].other);
        }
        if !role.is_background() {
            self.left -= 1;
            self.ended_ns = now_ns;
        }
        Act::Exit
    }
}

/// Seconds until all that are timed have ended; an hour at most.
fn seconds(scheduler: &str, roles: &[Role]) -> f64 {
    // IDE disks took 256 sectors at a time.
    let kernel = Kernel { limits: Limits { sectors: 256, segments: 128 }, ..Kernel::named("2.6.9").unwrap() };
    let drive = dbdyno_device::model("hdd-7200(outer_mb_s=45,inner_mb_s=25)", 40 << 30, 1).unwrap();
    let settings = Settings { scheduler: Some(scheduler), depth: Some(1), ..Settings::default() };
    let mut layer = kernel.layer(&settings, drive).unwrap();
    let cache = CacheConfig {
        memory_bytes: 256 << 20,
        mapped_bytes: 32 << 20,
        processors: 1,
        filesystem: Filesystem::Ext3,
        data: Data::Writeback,
        barrier: false,
        page_cpu_ns: PAGE_NS,
        ..CacheConfig::default()
    };
    let mut load = Cached::new(&kernel, &cache, Morton::new(roles.to_vec())).unwrap();
    let (mut now_ns, step_ns) = (0, SECOND_NS);
    while load.application().left > 0 && now_ns < 3600 * SECOND_NS {
        run(&mut layer, &mut load, now_ns, now_ns + step_ns);
        now_ns += step_ns;
    }
    if load.application().left > 0 { f64::INFINITY } else { load.application().ended_ns as f64 / 1e9 }
}

const READ: Role = Role::Read { pages: 100 * MIB_PAGES, ahead_pages: 32 };
const READ_NARROW: Role = Role::Read { pages: 100 * MIB_PAGES, ahead_pages: 2 };

#[test]
fn the_table_of_2003() {
    let write = Role::WriteSync { pages: 100 * MIB_PAGES };
    let copy = Role::Copy { pages: 1024 * MIB_PAGES };
    // Seconds published of deadline, cfq, anticipatory.
    let rows: [(&str, Vec<Role>, [f64; 3]); 9] = [
        ("tree alone", vec![Role::Tree], [7.9, 7.9, 7.9]),
        ("100 MB read beside streaming write", vec![READ, Role::StreamWrite], [48.0, 27.0, 3.8]),
        ("tree beside streaming write", vec![Role::Tree, Role::StreamWrite], [447.0, 595.0, 17.0]),
        ("tree beside streaming read", vec![Role::Tree, Role::StreamRead], [219.0, 307.0, 17.0]),
        ("100 MB write and fsync beside streaming read", vec![write, Role::StreamRead], [7.7, 8.4, 11.9]),
        ("ten readers of 100 MB", vec![READ; 10], [133.0, 92.0, 35.0]),
        ("the same, 8 KB read ahead", vec![READ_NARROW; 10], [500.0, 500.0, 29.0]),
        ("six trees", vec![Role::Tree; 6], [237.0, 351.0, 53.0]),
        ("1 GB copy and sync", vec![copy], [71.0, 86.0, 82.0]),
    ];
    for (name, roles, published) in rows {
        let simulated = ["deadline", "cfq", "anticipatory"].map(|scheduler| seconds(scheduler, &roles));
        println!("| {name} | {published:?} | {simulated:.1?} |");
        // Nothing is calibrated: a third to three and a half times of each.
        for (simulated, published) in simulated.iter().zip(published) {
            let ratio = simulated / published;
            assert!((0.3..3.5).contains(&ratio), "{name}: {simulated} s, published {published} s");
        }
        // Reads that deadline and cfq starve, anticipatory saves; where no read waits for another it cannot.
        let saves = published[0] > 3.0 * published[2];
        assert_eq!(saves, simulated[0] > 2.0 * simulated[2], "{name}: {simulated:?}");
    }
}
