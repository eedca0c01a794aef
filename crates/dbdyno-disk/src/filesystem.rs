//! The FUSE filesystem: one directory with one file, which is the disk.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dbdyno_device::Kind;
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs,
    ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use crate::engine::Engine;
use crate::pending::Answer;

/// The name of the file.
pub const FILE_NAME: &str = "disk.img";

const ROOT: INodeNo = INodeNo::ROOT;
const DISK: INodeNo = INodeNo(2);

/// The largest transfer in one request. The kernel's own limit for FUSE (256 pages) is the same.
const TRANSFER_BYTES_MAX: u32 = 1 << 20;

/// Requests the kernel lets wait at once: above the 128 of a loop device, so that only the model limits the depth.
const BACKGROUND_MAX: u16 = 1024;

/// Nothing here ever changes, so the kernel need not ask again.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// What the loop driver takes as the discard granularity.
const BLOCK_BYTES: u32 = 4096;

pub struct DiskFilesystem {
    engine: Arc<Engine>,
    made: SystemTime,
    uid: u32,
    gid: u32,
}

impl DiskFilesystem {
    pub fn new(engine: Arc<Engine>) -> Self {
        let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        Self { engine, made: SystemTime::now(), uid, gid }
    }

    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let (size, kind, perm, nlink) = match inode {
            ROOT => (0, FileType::Directory, 0o555, 2),
            DISK => (self.engine.content.size_bytes(), FileType::RegularFile, 0o600, 1),
            _ => return None,
        };
        Some(FileAttr {
            ino: inode,
            size,
            blocks: size / 512,
            atime: self.made,
            mtime: self.made,
            ctime: self.made,
            crtime: self.made,
            kind,
            perm,
            nlink,
            uid: self.uid,
            gid: self.gid,
            rdev: 0,
            blksize: BLOCK_BYTES,
            flags: 0,
        })
    }
}

impl Filesystem for DiskFilesystem {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Each is refused only by kernels that lack it; the disk then works with less parallelism.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_write(TRANSFER_BYTES_MAX);
        let _ = config.set_max_background(BACKGROUND_MAX);
        let _ = config.set_congestion_threshold(BACKGROUND_MAX);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(DISK) {
            Some(attributes) if parent == ROOT && name == FILE_NAME => {
                reply.entry(&FOREVER, &attributes, Generation(0));
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _request: &Request, inode: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(attributes) => reply.attr(&FOREVER, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// The size is fixed; owner, mode and times may be set, to no effect.
    fn setattr(
        &self,
        _request: &Request,
        inode: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.attributes(inode) {
            Some(attributes) if size.is_none_or(|size| size == attributes.size) => reply.attr(&FOREVER, &attributes),
            Some(_) => reply.error(Errno::EPERM),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _request: &Request, inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        if inode != DISK {
            return reply.error(Errno::EISDIR);
        }
        // Without the page cache between, every request of the loop device is one request here.
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES | FopenFlags::FOPEN_NOFLUSH;
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.engine.take(self.engine.arrived(Kind::Read, offset, u64::from(size)), Answer::Read(reply));
    }

    fn write(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut request = self.engine.arrived(Kind::Write, offset, data.len() as u64);
        // The kernel's way of saying "force unit access" to a file: it sends no fsync after such a write.
        request.fua = flags.0 & libc::O_DSYNC != 0;
        self.engine.take_change(request, Answer::Write(reply), |content| content.write(offset, data));
    }

    fn fsync(&self, _request: &Request, _inode: INodeNo, _handle: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        self.engine.take(self.engine.arrived(Kind::Flush, 0, 0), Answer::Done(reply));
    }

    fn fallocate(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        if mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) == 0 {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let request = self.engine.arrived(Kind::Discard, offset, length);
        self.engine.take_change(request, Answer::Done(reply), |content| content.discard(offset, length));
    }

    fn statfs(&self, _request: &Request, _inode: INodeNo, reply: ReplyStatfs) {
        let blocks = self.engine.content.size_bytes() / u64::from(BLOCK_BYTES);
        reply.statfs(blocks, 0, 0, 2, 0, BLOCK_BYTES, 255, BLOCK_BYTES);
    }

    fn readdir(&self, _request: &Request, inode: INodeNo, _handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if inode != ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let entries = [
            (ROOT, FileType::Directory, "."),
            (ROOT, FileType::Directory, ".."),
            (DISK, FileType::RegularFile, FILE_NAME),
        ];
        for (next, (inode, kind, name)) in (1..).zip(entries).skip(offset as usize) {
            if reply.add(inode, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}
