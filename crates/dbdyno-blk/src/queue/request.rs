//! Bios, which are what a process asks of the block layer, and the requests that carry them.
//!
//! Requests are kept in slabs: places are used again, so nothing is allocated for a request.

use std::ops::{Index, IndexMut};

use slab::Slab;

/// Which way the data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the drive.
    Read,
    /// To the drive.
    Write,
}

impl Direction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Read, Self::Write];

    /// The place of what is kept per direction.
    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }

    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Read => Self::Write,
            Self::Write => Self::Read,
        }
    }
}

/// The class of an I/O priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Before all others.
    RealTime,
    /// What processes have that never called `ioprio_set`.
    BestEffort,
    /// Only while nobody else wants the drive.
    Idle,
}

/// One read, write or flush by a process.
#[allow(clippy::struct_excessive_bools)] // each is a flag of its own, as the kernel has them
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bio {
    /// Who asks; small numbers from 0, as tables are kept by them.
    pub process: u32,
    /// The source's own mark, given back when the bio is finished.
    pub token: u64,
    /// Which way the data goes.
    pub direction: Direction,
    /// A process waits for it: every read, and writes past the page cache or of an fsync.
    pub sync: bool,
    /// Its process is not expected to ask for more nearby soon (`REQ_NOIDLE`): writes of an fsync.
    pub no_idle: bool,
    /// First sector of 512 bytes.
    pub start_sector: u64,
    /// Length in sectors; 0 for a bare flush.
    pub sectors: u32,
    /// The drive's cache must be written out before the data.
    pub flush: bool,
    /// The data must be on the medium when it is finished.
    pub fua: bool,
    /// Class of the I/O priority.
    pub class: Class,
    /// Priority within the class, 0 (most) to 7; 4 is usual.
    pub priority: u8,
    /// When the process meant to ask, nanoseconds; latency counts from here.
    pub intended_ns: u64,
}

impl Bio {
    /// A synchronous bio of best effort that asks for nothing but its data.
    pub fn new(process: u32, direction: Direction, start_sector: u64, sectors: u32) -> Self {
        Self {
            process,
            token: 0,
            direction,
            sync: true,
            no_idle: false,
            start_sector,
            sectors,
            flush: false,
            fua: false,
            class: Class::BestEffort,
            priority: 4,
            intended_ns: 0,
        }
    }

    /// First sector after it.
    #[inline]
    pub fn end_sector(&self) -> u64 {
        self.start_sector + u64::from(self.sectors)
    }

    /// Pieces of memory it comes from: its pages of 4 KiB, none beside another.
    #[inline]
    pub fn segments(&self) -> u32 {
        self.sectors.div_ceil(8)
    }

    /// It may share a request with others.
    #[inline]
    pub fn can_merge(&self) -> bool {
        !self.flush && !self.fua && self.sectors > 0
    }
}

/// The place of a request in [`Requests`].
pub type RequestId = u32;

/// No request.
pub const NONE: RequestId = u32::MAX;

/// Where a bio or another request joins a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Behind its end.
    Back,
    /// Before its start.
    Front,
}

/// What is done now of a write that asks for flushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlushStep {
    /// The flush before its data.
    Before,
    /// Its data, or all of a request that asks for no flush.
    Data,
    /// The flush behind its data.
    Behind,
}

/// What is sent to the drive as one command.
#[allow(clippy::struct_excessive_bools)] // each is a flag of its own, as the kernel has them
#[derive(Debug, Clone)]
pub struct Request {
    /// Who asked first.
    pub process: u32,
    /// Which way the data goes.
    pub direction: Direction,
    /// A process waits for it.
    pub sync: bool,
    /// Its process is not expected to ask for more nearby soon.
    pub no_idle: bool,
    /// Class of the I/O priority.
    pub class: Class,
    /// Priority within the class.
    pub priority: u8,
    /// First sector.
    pub start_sector: u64,
    /// Length in sectors.
    pub sectors: u32,
    /// Pieces of memory.
    pub segments: u32,
    /// A flush of the drive's cache, without data.
    pub flush: bool,
    /// On the medium when it is finished.
    pub fua: bool,
    /// What is done now, if it asks for flushes.
    pub step: FlushStep,
    /// A flush must follow its data.
    pub flush_behind: bool,
    /// It does not pass through the scheduler.
    pub bypasses: bool,
    /// The driver has taken it, or looked at it as the next: nothing is sorted before it any more.
    pub started: bool,
    /// It stands in the table of ends, where bios find it to merge with.
    pub(super) findable: bool,
    /// When it was allocated, nanoseconds.
    pub arrived_ns: u64,
    /// When it was given to the drive, nanoseconds.
    pub issued_ns: u64,
    /// When it has waited long enough, by its scheduler.
    pub expires_ns: u64,
    /// Requests are numbered as they are allocated.
    pub number: u64,
    /// For the scheduler's own use: which of its queues holds the request.
    pub owner: u32,
    pub(super) previous: RequestId,
    pub(super) next: RequestId,
    pub(super) next_in_bucket: RequestId,
    first_bio: u32,
    last_bio: u32,
}

impl Request {
    /// First sector after it.
    #[inline]
    pub fn end_sector(&self) -> u64 {
        self.start_sector + u64::from(self.sectors)
    }

    /// It may grow.
    #[inline]
    pub fn can_merge(&self) -> bool {
        !self.started && !self.bypasses && !self.fua
    }
}

#[derive(Debug)]
struct Carried {
    bio: Bio,
    next: u32,
}

/// All requests there are.
#[derive(Debug, Default)]
pub struct Requests {
    slab: Slab<Request>,
    bios: Slab<Carried>,
    numbered: u64,
}

impl Requests {
    /// A new request for a bio.
    pub fn allocate(&mut self, now_ns: u64, bio: Bio) -> RequestId {
        let first_bio = self.bios.insert(Carried { bio, next: NONE }) as u32;
        self.numbered += 1;
        self.slab.insert(Request {
            process: bio.process,
            direction: bio.direction,
            sync: bio.sync,
            no_idle: bio.no_idle,
            class: bio.class,
            priority: bio.priority,
            start_sector: bio.start_sector,
            sectors: bio.sectors,
            segments: bio.segments(),
            flush: bio.flush && bio.sectors == 0,
            fua: bio.fua,
            step: if bio.flush && bio.sectors > 0 { FlushStep::Before } else { FlushStep::Data },
            flush_behind: false,
            bypasses: bio.flush,
            started: false,
            findable: false,
            arrived_ns: now_ns,
            issued_ns: now_ns,
            expires_ns: u64::MAX,
            number: self.numbered,
            owner: NONE,
            previous: NONE,
            next: NONE,
            next_in_bucket: NONE,
            first_bio,
            last_bio: first_bio,
        }) as RequestId
    }

    /// A flush of the layer's own, for no bio.
    pub fn allocate_flush(&mut self, now_ns: u64) -> RequestId {
        let id = self.allocate(now_ns, Bio { flush: true, ..Bio::new(0, Direction::Write, 0, 0) });
        let bio = std::mem::replace(&mut self[id].first_bio, NONE);
        self.bios.remove(bio as usize);
        id
    }

    /// Adds a bio to a request that lies beside it.
    pub fn join(&mut self, id: RequestId, bio: Bio, side: Side) {
        let place = self.bios.insert(Carried { bio, next: NONE }) as u32;
        let last = self[id].last_bio;
        self.bios[last as usize].next = place;
        let request = &mut self[id];
        request.last_bio = place;
        request.sectors += bio.sectors;
        request.segments += bio.segments();
        if side == Side::Front {
            request.start_sector = bio.start_sector;
        }
    }

    /// Makes the request `behind`, which begins where `id` ends, a part of it. It keeps the earlier arrival.
    pub fn absorb(&mut self, id: RequestId, behind: RequestId) {
        let gone = self.slab.remove(behind as usize);
        let last = self[id].last_bio;
        self.bios[last as usize].next = gone.first_bio;
        let request = &mut self[id];
        request.last_bio = gone.last_bio;
        request.sectors += gone.sectors;
        request.segments += gone.segments;
        request.arrived_ns = request.arrived_ns.min(gone.arrived_ns);
    }

    /// Takes the next bio out of a finished request; with the last one the request is gone, too.
    pub fn take_bio(&mut self, id: RequestId) -> Option<Bio> {
        let first = self.slab.get(id as usize)?.first_bio;
        if first == NONE {
            self.slab.remove(id as usize);
            return None;
        }
        let carried = self.bios.remove(first as usize);
        self[id].first_bio = carried.next;
        Some(carried.bio)
    }

    /// Requests there are.
    pub fn len(&self) -> usize {
        self.slab.len()
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.slab.is_empty()
    }
}

impl Index<RequestId> for Requests {
    type Output = Request;

    #[inline]
    fn index(&self, id: RequestId) -> &Request {
        &self.slab[id as usize]
    }
}

impl IndexMut<RequestId> for Requests {
    #[inline]
    fn index_mut(&mut self, id: RequestId) -> &mut Request {
        &mut self.slab[id as usize]
    }
}
