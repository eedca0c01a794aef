//! `dbdyno-disk serve`: raises one disk, waits for its end, lowers it.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use dbdyno_device::ModelOptions;
use fuser::{Config, MountOption, Session};
use rustix::mount::UnmountFlags;
use serde_json::json;

use crate::cli::ServeArgs;
use crate::content::Content;
use crate::control::{self, Asker, Event};
use crate::engine::{Drive, Engine};
use crate::error::DiskError;
use crate::filesystem::{DiskFilesystem, FILE_NAME};
use crate::margin;
use crate::process::{Granted, StopSignals, prepare, with_realtime_priority};

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
    spawn("idle", margin::watch(&engine.idle))?;
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
fn usable_mount_point(given: &Path) -> Result<PathBuf, DiskError> {
    let refused = |reason: String| DiskError::MountPoint { path: given.to_owned(), reason };
    let metadata = std::fs::metadata(given).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOTCONN) => {
            refused(format!("the filesystem mounted there is dead; clear it with: umount -l {}", given.display()))
        }
        Some(libc::ENOENT) => refused(format!("it does not exist; make it with: mkdir -p {}", given.display())),
        _ => refused(error.to_string()),
    })?;
    if !metadata.is_dir() {
        return Err(refused("it is not a directory".into()));
    }
    let path = given.canonicalize().map_err(|error| refused(error.to_string()))?;
    let above = path.parent().map(std::fs::metadata).transpose().map_err(|error| refused(error.to_string()))?;
    if above.is_none_or(|above| above.dev() != metadata.dev()) {
        return Err(refused(format!(
            "something is mounted there already; choose another directory, or: umount {}",
            given.display()
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
