//! What this process asks of the kernel for itself: time, locked memory, priority, signals, memory for direct I/O.

use std::io::Write as _;

use dbdyno_common::random::Random;
use rustix::mm::MlockAllFlags;
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

use crate::error::DiskError;

/// From linux/prctl.h (Linux 5.6 and later); the libc crate does not have it.
const PR_SET_IO_FLUSHER: libc::c_int = 57;

/// `CLOCK_MONOTONIC`, nanoseconds.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// CPU time of all threads so far, seconds.
pub fn cpu_seconds() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// What of the wished-for privileges was granted.
#[derive(Debug, Default)]
pub struct Granted {
    pub locked_memory: bool,
    pub io_flusher: bool,
    pub realtime: bool,
    /// One sentence for each that was not, with what follows from it.
    pub notes: Vec<String>,
}

/// Makes this process fit to stand under a filesystem; call it before any thread is started, which inherit it all.
///
/// Its memory is locked, so that it never waits for a page that must come from a disk. As an I/O flusher its
/// allocations never wait for write-back, which might be to this very disk. Real-time priority makes it answer like a
/// device, whatever else the host computes.
pub fn prepare() -> Granted {
    let mut granted = Granted::default();
    let lock = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
    match rustix::mm::mlockall(lock) {
        Ok(()) => granted.locked_memory = true,
        Err(error) => granted.notes.push(format!(
            "mlockall was refused ({error}; it needs CAP_IPC_LOCK): if the host swaps, the disk may stall"
        )),
    }
    // SAFETY: PR_SET_IO_FLUSHER takes one integer and touches no memory.
    if unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) } == 0 {
        granted.io_flusher = true;
    } else {
        granted.notes.push(format!(
            "PR_SET_IO_FLUSHER was refused ({}; it needs CAP_SYS_RESOURCE): keep memory free on this host, or \
             write-back to this disk may stall its own allocations",
            std::io::Error::last_os_error()
        ));
    }
    // SAFETY: PR_SET_TIMERSLACK takes one integer and touches no memory. It cannot fail for 1 ns.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
    granted
}

/// Runs `start` with the lowest real-time priority, which the threads it starts inherit.
pub fn with_realtime_priority<R>(granted: &mut Granted, start: impl FnOnce() -> R) -> R {
    match set_scheduler(libc::SCHED_RR, 1) {
        Ok(()) => granted.realtime = true,
        Err(error) => granted.notes.push(format!(
            "real-time priority was refused ({error}; it needs CAP_SYS_NICE): on a busy host replies may be late"
        )),
    }
    let result = start();
    if granted.realtime {
        // Going back is always allowed.
        let _ = set_scheduler(libc::SCHED_OTHER, 0);
    }
    result
}

fn set_scheduler(policy: i32, priority: i32) -> std::io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer is to a live sched_param, which the call only reads; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// The signals that end the disk.
pub struct StopSignals(libc::sigset_t);

impl StopSignals {
    /// Keeps SIGTERM, SIGINT and SIGHUP from ending the process; call it before any thread is started.
    pub fn block() -> Self {
        // SAFETY: an all-zero sigset_t is a valid value to pass to sigemptyset, which then initialises it; all
        // pointers are to that live local, and the null one is allowed by pthread_sigmask.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
                libc::sigaddset(&raw mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            Self(set)
        }
    }

    /// Waits for one of them.
    pub fn wait(&self) {
        let mut signal = 0;
        // SAFETY: both pointers are to live values of the right type.
        while unsafe { libc::sigwait(&raw const self.0, &raw mut signal) } != 0 {}
    }
}

/// Direct I/O needs the memory, the offset and the length to be multiples of the drive's sector, 4 KiB at the most.
const ALIGN_BYTES: usize = 4096;

/// Bytes that direct I/O takes, and that a drive or filesystem can't compress.
pub struct Buffer {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Buffer {
    pub fn new(length: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let memory: Vec<u8> =
            (0..(length + ALIGN_BYTES).div_ceil(8)).flat_map(|_| random.bits().to_ne_bytes()).collect();
        let start = memory.as_ptr().align_offset(ALIGN_BYTES);
        Self { memory, start, length }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }

    /// Makes every sector unlike all written before, so that nothing is found to be there already.
    pub fn stamp(&mut self, mark: u64) {
        for (sector, number) in self.bytes_mut().chunks_mut(ALIGN_BYTES).zip(0_u64..) {
            sector[..8].copy_from_slice(&mark.wrapping_add(number).to_ne_bytes());
        }
    }
}

/// Prints a value as a line of JSON at once, for a program that reads along.
pub fn print_line(value: &Value) -> Result<(), DiskError> {
    let announce = |source| DiskError::Announce { source };
    let mut out = std::io::stdout().lock();
    writeln!(out, "{value}").map_err(announce)?;
    out.flush().map_err(announce)
}
