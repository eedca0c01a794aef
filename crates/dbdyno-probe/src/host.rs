//! What a host's wake-ups, timers, clock, memory and one disk take: each for a second or so, printed as it is known.
//!
//! Cannot: tell a slow host from a busy one; measure what a server's own threads meet.

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use dbdyno_common::histogram::{Exact, Summary, SummaryNs};
use dbdyno_common::results::HostTimes;
use hdrhistogram::Histogram;
use rustix::pipe::pipe;
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use serde_json::json;

use crate::awake::allowed;
use crate::cli::HostArgs;
use crate::error::ProbeError;
use crate::output;

/// Between two round trips, so that the other processor goes to rest as it does between two commits.
const REST: Duration = Duration::from_micros(300);
const TIMER: Duration = Duration::from_millis(1);
/// Larger than the caches of a processor, as a buffer pool is.
const COPIED_BYTES: usize = 64 << 20;
const BLOCK_BYTES: usize = 4096;
/// As many as a busy server has requests in flight.
const READERS: usize = 16;
const CLOCK_READS: u32 = 100_000;

/// `dbdyno-probe host`.
pub fn measure(args: &HostArgs) -> Result<(), ProbeError> {
    let cpus = allowed();
    say("wake_up", &wake_up(&cpus, args.duration)?)?;
    say("timer", &timer_lateness(args.duration))?;
    say("clock", &json!({"read_ns": clock_read_ns()}))?;
    say("memory", &json!({"copied_bytes_per_second": copied_bytes_per_second(args.duration / 2)}))?;
    if let Some(device) = &args.device {
        say("disk", &disk(device, args.duration)?)?;
    }
    Ok(())
}

fn say(what: &str, figures: &impl Serialize) -> Result<(), ProbeError> {
    output::print(&format!("{}\n", json!({"measured": what, "figures": figures})))
}

/// The clock of all measurements, in nanoseconds.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn until(lasting: Duration) -> u64 {
    now_ns() + lasting.as_nanos() as u64
}

fn histogram() -> Histogram<u64> {
    let mut times = Histogram::new_with_max(60_000_000_000, 3).unwrap_or_else(|_| Histogram::new(3).expect("3 digits"));
    times.auto(true);
    times
}

fn figures(times: &Histogram<u64>) -> HostTimes {
    HostTimes { times: SummaryNs(Summary::from_histogram(times, Exact::default())), ..HostTimes::default() }
}

/// A byte through a pipe to another processor and back through a second one, again and again.
fn wake_up(cpus: &[usize], lasting: Duration) -> Result<HostTimes, ProbeError> {
    let no_pipe = |error: rustix::io::Errno| ProbeError::Announce(error.into());
    let ((requests, ask), (answered, answer)) = (pipe().map_err(no_pipe)?, pipe().map_err(no_pipe)?);
    let (here, there) = (cpus.first().copied().unwrap_or(0), cpus.last().copied().unwrap_or(0));
    let other = thread::spawn(move || echo(there, requests, answer));
    let times = thread::spawn(move || round_trips(here, ask, answered, lasting)).join();
    let _ = other.join();
    let times = times.unwrap_or_else(|_| Ok(histogram())).map_err(ProbeError::Announce)?;
    Ok(HostTimes { processors: Some([here, there]), ..figures(&times) })
}

fn stay_on(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    // Where that is refused, the kernel places it: slower or faster, it is what loads meet.
    let _ = sched_setaffinity(None, &set);
}

fn echo(cpu: usize, requests: OwnedFd, answer: OwnedFd) {
    stay_on(cpu);
    let (mut requests, mut answer) = (File::from(requests), File::from(answer));
    let mut byte = [0];
    while requests.read_exact(&mut byte).is_ok() && answer.write_all(&byte).is_ok() {}
}

fn round_trips(cpu: usize, ask: OwnedFd, answered: OwnedFd, lasting: Duration) -> std::io::Result<Histogram<u64>> {
    stay_on(cpu);
    let (mut ask, mut answered) = (File::from(ask), File::from(answered));
    let (mut times, end, mut byte) = (histogram(), until(lasting), [0]);
    while now_ns() < end {
        let began = now_ns();
        ask.write_all(&byte)?;
        answered.read_exact(&mut byte)?;
        times.saturating_record(now_ns() - began);
        thread::sleep(REST);
    }
    Ok(times)
}

/// How late a sleep of 1 ms ends, with the slack that every program has (`PR_GET_TIMERSLACK`, 50 us).
fn timer_lateness(lasting: Duration) -> HostTimes {
    let (mut times, end) = (histogram(), until(lasting));
    while now_ns() < end {
        let due = now_ns() + TIMER.as_nanos() as u64;
        thread::sleep(TIMER);
        times.saturating_record(now_ns().saturating_sub(due));
    }
    figures(&times)
}

/// Mean time of reading the clock: tens of nanoseconds without a system call, hundreds with one.
fn clock_read_ns() -> f64 {
    let began = now_ns();
    for _ in 0..CLOCK_READS {
        black_box(now_ns());
    }
    (now_ns() - began) as f64 / f64::from(CLOCK_READS)
}

/// Of one thread: what is copied counts once, though it is read and written.
fn copied_bytes_per_second(lasting: Duration) -> f64 {
    let (from, mut to) = (vec![1_u8; COPIED_BYTES], vec![0_u8; COPIED_BYTES]);
    let (began, end, mut copied) = (now_ns(), until(lasting), 0_u64);
    while now_ns() < end {
        black_box(&mut to).copy_from_slice(black_box(&from));
        copied += COPIED_BYTES as u64;
    }
    copied as f64 * 1e9 / (now_ns() - began).max(1) as f64
}

/// Random reads of 4 KiB past the page cache: one after the other, then many at once.
fn disk(device: &Path, lasting: Duration) -> Result<HostTimes, ProbeError> {
    let mut file =
        OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(device).map_err(ProbeError::at(device))?;
    let blocks = file.seek(SeekFrom::End(0)).map_err(ProbeError::at(device))? / BLOCK_BYTES as u64;
    let alone = reads(&file, blocks, 1, until(lasting)).map_err(ProbeError::at(device))?;
    let (done, began) = (AtomicU64::new(0), now_ns());
    let end = until(lasting);
    thread::scope(|scope| {
        for seed in 0..READERS as u64 {
            let (done, file) = (&done, &file);
            scope.spawn(move || {
                if let Ok(times) = reads(file, blocks, seed + 2, end) {
                    done.fetch_add(times.len(), Ordering::Relaxed);
                }
            });
        }
    });
    let iops = done.load(Ordering::Relaxed) as f64 * 1e9 / (now_ns() - began).max(1) as f64;
    Ok(HostTimes { iops: Some(iops), readers: Some(READERS), ..figures(&alone) })
}

fn reads(file: &File, blocks: u64, seed: u64, end: u64) -> std::io::Result<Histogram<u64>> {
    // Direct I/O wants the memory aligned: a block more than needed holds an aligned one.
    let mut room = vec![0_u8; 2 * BLOCK_BYTES];
    let aligned = room.as_ptr().align_offset(BLOCK_BYTES);
    let page = &mut room[aligned..aligned + BLOCK_BYTES];
    let (mut times, mut place) = (histogram(), seed);
    while now_ns() < end {
        place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let began = now_ns();
        file.read_exact_at(page, (place >> 16) % blocks.max(1) * BLOCK_BYTES as u64)?;
        times.saturating_record(now_ns() - began);
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_measurement_has_figures() {
        let short = Duration::from_millis(20);
        let host_times = wake_up(&allowed(), short).unwrap();
        let SummaryNs(times) = host_times.times;
        assert!(times.count > 0 && times.p99() >= times.p50() && host_times.processors.is_some());
        assert!(timer_lateness(short).times.0.count > 0);
        assert!(clock_read_ns() > 0.0);
        assert!(copied_bytes_per_second(short) > 0.0);
    }

    #[test]
    fn a_device_that_is_none_is_named() {
        let message = disk(Path::new("/nowhere"), TIMER).unwrap_err().to_string();
        assert!(message.starts_with("/nowhere: "), "{message}");
    }
}
