//! `dbdyno-disk serve`: raises one disk, waits for its end, lowers it. The disk is the one file of a FUSE filesystem.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use dbdyno_device::{Kind, ModelOptions};
use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyStatfs, ReplyWrite, Request, Session, TimeOrNow, WriteFlags,
};
use rustix::mount::UnmountFlags;
use serde_json::json;

use crate::cli::ServeArgs;
use crate::content::Content;
use crate::control::{self, Asker, Event};
use crate::engine::{Drive, Engine};
use crate::error::DiskError;
use crate::pending::Answer;
use crate::process::{Granted, StopSignals, prepare, with_realtime_priority};
use crate::wake_margin;

/// How a disk ended.
struct End {
    /// False if it had to be detached while in use.
    unmounted: bool,
    asker: Option<Asker>,
}

/// Serves until a signal, a `stop` or an unmount.
pub fn serve(args: &ServeArgs) -> Result<(), DiskError> {
    let signals = StopSignals::block();
    let mount = usable_mount_point(&args.mount)?;
    // A snapshot and a live image that differ everywhere: nothing a disk does with one snapshot can exceed it.
    let held_bytes_max = args.max_content_bytes.unwrap_or(args.size_bytes.saturating_mul(2));
    let content = if args.content.as_os_str() == "memory" {
        Content::in_memory(args.size_bytes, held_bytes_max)
    } else {
        Content::in_file(&args.content, args.size_bytes, held_bytes_max).map_err(DiskError::Content)?
    };
    let options = ModelOptions { state: args.state };
    let engine = Engine::new(content, Drive { name: args.model.clone(), seed: args.seed, options }, args.mode)?;
    let listener = bind(&args.control)?;
    let socket = RemoveOnDrop(&args.control);
    let mut granted = prepare();
    let (events, happened) = channel();
    let session = mount_filesystem(&mount, &engine)?;
    let (session, completions) = with_realtime_priority(&mut granted, || {
        let session = spawn("fuse", {
            let events = events.clone();
            move || {
                // However the session ended, the disk is gone. Nobody listens only if it is already on its way out.
                let _ = session.run();
                let _ = events.send(Event::Unmounted);
            }
        })?;
        let completions = spawn("completions", {
            let engine = Arc::clone(&engine);
            move || engine.answer_when_due()
        })?;
        Ok::<_, DiskError>((session, completions))
    })?;
    wait_for_signals(signals, events.clone())?;
    spawn("idle", wake_margin::watch(&engine.idle))?;
    spawn("listener", {
        let engine = Arc::clone(&engine);
        move || control::serve(&listener, &engine, &events)
    })?;
    announce(&mount, &granted)?;
    engine.granted(granted);
    let end = wait_for_end(&mount, &happened);
    drop(socket);
    engine.stop();
    // What has been traced is kept; most disks trace nothing.
    let _ = engine.trace.stop();
    if end.unmounted {
        // After a forced detach these threads live on until the last user of the file is gone, or this process is.
        let _ = session.join();
        let _ = completions.join();
    }
    if let Some(asker) = end.asker {
        asker.answer(Ok(()));
    }
    Ok(())
}

fn wait_for_signals(signals: StopSignals, events: Sender<Event>) -> Result<(), DiskError> {
    let wait = move || {
        signals.wait();
        let _ = events.send(Event::Signal);
    };
    spawn("signals", wait).map(drop)
}

/// Waits for something that ends the disk, and unmounts.
fn wait_for_end(mount: &Path, happened: &Receiver<Event>) -> End {
    for event in happened {
        match event {
            Event::Unmounted => break,
            Event::Signal => return End { unmounted: unmount(mount) || !detach(mount), asker: None },
            Event::Stop { force, asker } => {
                let unmounted = unmount(mount);
                if unmounted || force {
                    return End { unmounted: unmounted || !detach(mount), asker: Some(asker) };
                }
                asker.answer(Err(format!(
                    "{} is in use; unmount what is on it and detach its loop device (losetup -d), or stop with \
                     \"force\":true and lose what is written after",
                    mount.join(FILE_NAME).display()
                )));
            }
        }
    }
    End { unmounted: true, asker: None }
}

fn unmount(mount: &Path) -> bool {
    rustix::mount::unmount(mount, UnmountFlags::empty()).is_ok()
}

fn detach(mount: &Path) -> bool {
    rustix::mount::unmount(mount, UnmountFlags::DETACH).is_ok()
}

fn announce(mount: &Path, granted: &Granted) -> Result<(), DiskError> {
    let ready = json!({
        "ready": true,
        "file": mount.join(FILE_NAME),
        "pid": std::process::id(),
        "locked_memory": granted.locked_memory,
        "io_flusher": granted.io_flusher,
        "realtime": granted.realtime,
        "notes": granted.notes,
    });
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{ready}").and_then(|()| stdout.flush()).map_err(|source| DiskError::Announce { source })
}

fn mount_filesystem(mount: &Path, engine: &Arc<Engine>) -> Result<Session<DiskFilesystem>, DiskError> {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("dbdyno-disk".into()),
        MountOption::Subtype("dbdyno".into()),
        MountOption::NoSuid,
        MountOption::NoDev,
    ];
    Session::new(DiskFilesystem::new(Arc::clone(engine)), mount, &config)
        .map_err(|source| DiskError::Mount { path: mount.to_owned(), source })
}

/// The mount point as an absolute path, if it is an existing directory on which nothing is mounted.
fn usable_mount_point(mount_point: &Path) -> Result<PathBuf, DiskError> {
    let refused = |reason: String| DiskError::MountPoint { path: mount_point.to_owned(), reason };
    let metadata = std::fs::metadata(mount_point).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOTCONN) => {
            refused(format!("the filesystem mounted there is dead; clear it with: umount -l {}", mount_point.display()))
        }
        Some(libc::ENOENT) => refused(format!("it does not exist; make it with: mkdir -p {}", mount_point.display())),
        _ => refused(error.to_string()),
    })?;
    if !metadata.is_dir() {
        return Err(refused("it is not a directory".into()));
    }
    let path = mount_point.canonicalize().map_err(|error| refused(error.to_string()))?;
    let above = path.parent().map(std::fs::metadata).transpose().map_err(|error| refused(error.to_string()))?;
    if above.is_none_or(|above| above.dev() != metadata.dev()) {
        return Err(refused(format!(
            "something is mounted there already; choose another directory, or: umount {}",
            mount_point.display()
        )));
    }
    Ok(path)
}

/// Listens on a new socket that only this user can open.
fn bind(path: &Path) -> Result<UnixListener, DiskError> {
    let refused = |reason: String| DiskError::Control { path: path.to_owned(), reason };
    if std::fs::symlink_metadata(path).is_ok() {
        return Err(refused(if UnixStream::connect(path).is_ok() {
            "another disk is listening there; choose another path, or stop that one".into()
        } else {
            format!("it exists, and no process listens there; remove it with: rm {}", path.display())
        }));
    }
    let listener = UnixListener::bind(path).map_err(|error| refused(error.to_string()))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
        .map_err(|error| refused(error.to_string()))?;
    Ok(listener)
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, DiskError> {
    std::thread::Builder::new().name(name.into()).spawn(body).map_err(|source| DiskError::Thread { source })
}

struct RemoveOnDrop<'a>(&'a Path);

impl Drop for RemoveOnDrop<'_> {
    fn drop(&mut self) {
        // Gone already is what was wanted.
        let _ = std::fs::remove_file(self.0);
    }
}

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
