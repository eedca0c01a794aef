//! Keeps processors from halting, so that waking one up costs no more than a switch of tasks.
//!
//! A processor that halts in a virtual machine leaves it to the hypervisor, and a wake-up is a trip through both. Two
//! means: the kernel's own idle loop polls where its driver has such a state
//! (`Documentation/power/pm_qos_interface.rst`), or a thread of the class `SCHED_IDLE` on each processor takes what
//! nothing else wants (sched(7)).
//!
//! Cannot: keep the hypervisor from taking a processor away (steal); outlive the process that started it.

use std::fs::{File, OpenOptions};
use std::hint::spin_loop;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::json;

use crate::cli::{AwakeArgs, Means};
use crate::error::ProbeError;
use crate::output;

/// Held open with 0 us in it, the kernel enters no idle state that takes time to leave.
const LATENCY: &str = "/dev/cpu_dma_latency";
/// The weakest nice value: /proc/stat then counts a poller's time as `nice`, not as `user`.
const NICE: i32 = 19;

/// `dbdyno-probe awake`: until standard input ends, or the process that started it does.
pub fn keep(args: &AwakeArgs) -> Result<(), ProbeError> {
    die_with_parent(args.parent)?;
    let cpus = args.cpus.clone().map_or_else(allowed, |list| list.0);
    let _guard = match args.by {
        Means::Kernel => Some(hold_latency(Path::new(LATENCY))?),
        Means::Pollers => {
            if let Some(group) = &args.cgroup {
                join(group)?;
            }
            start_pollers(&cpus)?;
            None
        }
    };
    output::print(&format!("{}\n", json!({"awake": args.by.word(), "cpus": cpus})))?;
    // Nothing is read from it: the process at the other end lives as long as it is open.
    std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink()).map_err(ProbeError::Announce)?;
    Ok(())
}

/// Asks for SIGKILL at the parent's end, and sees that it has not ended before.
fn die_with_parent(expected: Option<i32>) -> Result<(), ProbeError> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| refused(format!("PR_SET_PDEATHSIG was refused: {error}")))?;
    let parent = getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    match expected {
        Some(pid) if pid != parent => Err(refused(format!("process {pid}, which was to start it, has ended"))),
        _ => Ok(()),
    }
}

fn refused(why: String) -> ProbeError {
    ProbeError::NotAwake(why)
}

/// The processors that this process may use.
pub fn allowed() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

/// Puts 0 us into the file, which counts while it is open, and reads it back.
fn hold_latency(path: &Path) -> Result<File, ProbeError> {
    let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(ProbeError::at(path))?;
    let mut took = [0xff_u8; 4];
    file.write_all(&0_i32.to_ne_bytes()).map_err(ProbeError::at(path))?;
    let _ = file.rewind(); // a character device has one place only
    file.read_exact(&mut took).map_err(ProbeError::at(path))?;
    match i32::from_ne_bytes(took) {
        0 => Ok(file),
        other => Err(refused(format!("{}: asked for 0 us, the kernel took {other}", path.display()))),
    }
}

/// Moves this process into a control group that yields to all others.
fn join(group: &Path) -> Result<(), ProbeError> {
    let (members, idle) = (group.join("cgroup.procs"), group.join("cpu.idle"));
    let is_idle = std::fs::read_to_string(&idle).map_err(ProbeError::at(&idle))?;
    if is_idle.trim() != "1" {
        return Err(refused(format!("{} is {}, not 1", idle.display(), is_idle.trim())));
    }
    std::fs::write(&members, "0").map_err(ProbeError::at(&members))
}

/// A poller on each processor; all of them run when this returns.
fn start_pollers(cpus: &[usize]) -> Result<(), ProbeError> {
    let (sender, receiver) = mpsc::channel();
    for &cpu in cpus {
        let sender = sender.clone();
        thread::Builder::new()
            .name(format!("awake-{cpu}"))
            .stack_size(64 << 10)
            .spawn(move || {
                let settled = settle_on(cpu);
                let runs = settled.is_ok();
                let _ = sender.send(settled); // whoever asked may have given up
                if runs {
                    loop {
                        spin_loop();
                    }
                }
            })
            .map_err(|error| refused(format!("no thread for processor {cpu}: {error}")))?;
    }
    cpus.iter().try_for_each(|_| receiver.recv().map_err(|error| refused(error.to_string()))?)
}

/// Gives this thread its processor and its class, and reads both back.
fn settle_on(cpu: usize) -> Result<(), ProbeError> {
    let mut cpu_set = CpuSet::new();
    if cpu >= CpuSet::MAX_CPU {
        return Err(refused(format!("there is no processor {cpu}")));
    }
    cpu_set.set(cpu);
    let pinned = sched_setaffinity(None, &cpu_set).and_then(|()| sched_getaffinity(None));
    match pinned {
        Ok(took) if took == cpu_set => be_idle().map_err(|error| refused(format!("SCHED_IDLE was refused: {error}"))),
        Ok(_) => Err(refused(format!("processor {cpu}: the kernel put its poller elsewhere"))),
        Err(error) => Err(refused(format!("processor {cpu}: {error}"))),
    }
}

fn be_idle() -> std::io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is to a live sched_param, which the call only reads; 0 is the calling thread.
    let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
    // SAFETY: it takes integers only; 0 is the calling thread.
    if set != 0 || unsafe { libc::sched_getscheduler(0) } != libc::SCHED_IDLE {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: it takes integers only; 0 is the calling thread on Linux.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_settles_on_a_processor_with_the_class_idle() {
        let cpu = allowed()[0];
        thread::spawn(move || {
            settle_on(cpu).unwrap();
            let took = sched_getaffinity(None).unwrap();
            assert!(took.is_set(cpu) && took.count() == 1);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn what_is_refused_says_so() {
        let message = settle_on(CpuSet::MAX_CPU).unwrap_err().to_string();
        assert!(message.contains("there is no processor"), "{message}");
        let message = die_with_parent(Some(1 << 30)).unwrap_err().to_string();
        assert!(message.contains("has ended"), "{message}");
        let message = hold_latency(Path::new("/dev/null")).unwrap_err().to_string();
        assert!(message.contains("/dev/null"), "{message}");
        let message = join(Path::new("/nowhere")).unwrap_err().to_string();
        assert!(message.contains("/nowhere/cpu.idle"), "{message}");
    }
}
