//! The second half of an answer: the kernel ends a loop device's request in a soft interrupt.
//!
//! One that a thread raises waits for `ksoftirqd`, which has no real-time priority and the thread's own processor: behind
//! a burst of answers for hundreds of microseconds. The kernel also runs what is pending whenever a thread enables soft
//! interrupts again, which it does after each lock of a socket (`__local_bh_enable_ip` in kernel/softirq.c).

use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// A way to have them run now.
pub struct SoftInterrupts(Option<OwnedFd>);

impl SoftInterrupts {
    /// Without a socket they run when the kernel comes to it.
    pub fn new() -> Self {
        Self(socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None).ok())
    }

    /// Runs the soft interrupts that this thread has raised, by setting an option of a socket that nothing else uses.
    pub fn run(&self) {
        if let Some(socket) = &self.0 {
            // If it failed, they would run when the kernel comes to it.
            let _ = rustix::net::sockopt::set_socket_reuseaddr(socket, true);
        }
    }
}
