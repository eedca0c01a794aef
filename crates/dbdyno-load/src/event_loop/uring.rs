//! Sockets over io_uring: requests of many clients go out, and their replies come in, with one
//! system call.
//!
//! Each socket has a multishot receive posted, which fills buffers of a shared ring; a request
//! that fits the socket's own buffer is sent when it is submitted and says nothing if it succeeds.
//!
//! The kernel never reads a request that may have changed: a small one is read when it is submitted or
//! never, and submitted before the next is written; a large one, or what is left of a small one, is
//! kept until it is sent. That holds whatever a server does, also if it answers before it has read all.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use io_uring::types::{BufRingEntry, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use nix::libc;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::net::{Shutdown, shutdown};

use super::wire::{Arrival, Wire};

/// The only group of buffers.
const GROUP: u16 = 0;

/// Memory for what arrives, in bytes, and the least and greatest part of it for one buffer. The
/// kernel fills the buffers one after the other, so all of them together should stay in a
/// processor's cache; MariaDB sends long replies in pieces of 16 KiB.
const BUFFERS_SIZE: usize = 4 << 20;
const BUFFER_SIZE_MIN: usize = 4 << 10;
const BUFFER_SIZE_MAX: usize = 16 << 10;

/// Fewest buffers.
const BUFFERS_MIN: usize = 8;

/// Requests up to this size are mostly taken by a socket at once, as its buffer is empty when they come.
const SMALL_REQUEST: usize = 64 << 10;

/// Bits of an operation's user data: client, then generation of its socket, then kind.
const GENERATION_SHIFT: u32 = 32;
const KIND_SHIFT: u32 = 60;
const GENERATION_MASK: u64 = (1 << (KIND_SHIFT - GENERATION_SHIFT)) - 1;

const RECEIVE: u64 = 1;
/// A send that is reported only when it fails, or the socket takes a part.
const SEND: u64 = 2;
/// A send whose buffer is kept until it is reported; its number stands in place of the client.
const LARGE_SEND: u64 = 3;

#[derive(Default)]
struct Line {
    socket: Option<OwnedFd>,
    request: Vec<u8>,
    generation: u64,
    /// The batch in which the request waits to be submitted, or was.
    batch: u64,
}

/// A client, and the buffer that was filled for it and how far, or what went wrong.
type Completed = (usize, Result<(u16, usize), Errno>);

/// A large request being sent.
struct Large {
    client: usize,
    generation: u64,
    /// Read by the kernel until the send completes.
    _request: Vec<u8>,
}

/// The sockets of all clients.
pub struct UringWire {
    ring: IoUring,
    buffers: Buffers,
    lines: Vec<Line>,
    large: Vec<Option<Large>>,
    /// The buffer of the arrival that was given out last.
    lent: Option<u16>,
    /// Number of the operations that are submitted together next.
    batch: u64,
    /// Why an operation could not be handed to the kernel.
    broken: Option<Errno>,
}

impl UringWire {
    /// A wire for so many clients. It belongs to the thread that makes it.
    ///
    /// # Errors
    /// The kernel has no io_uring for this process, or one too old (before 6.1).
    pub fn new(clients: usize) -> Result<Self, Errno> {
        let entries = (clients * 2).next_power_of_two().clamp(64, 4096) as u32;
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_clamp()
            .setup_cqsize(entries * 4)
            .build(entries)
            .map_err(|error| errno(&error))?;
        ring.submitter().register_files_sparse(clients as u32).map_err(|error| errno(&error))?;
        let buffers = Buffers::new((clients * 2).next_power_of_two().clamp(BUFFERS_MIN, 4096) as u16)?;
        // SAFETY: the ring of entries stays mapped as long as `buffers` lives, and `ring` is
        // dropped before it (fields drop in order), which ends the kernel's use of both.
        unsafe { ring.submitter().register_buf_ring_with_flags(buffers.ring_address(), buffers.count, GROUP, 0) }
            .map_err(|error| errno(&error))?;
        let mut lines = Vec::new();
        lines.resize_with(clients, Line::default);
        Ok(Self { ring, buffers, lines, large: Vec::new(), lent: None, batch: 1, broken: None })
    }

    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: every operation reads or writes only memory that outlives it: receives use the
        // buffer ring; a small request is read at submission, which `request` sees to before its
        // buffer can change; a large one is kept in `large` until it completes.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            if let Err(errno) = self.submit() {
                self.broken = Some(errno);
                return;
            }
        }
    }

    fn submit(&mut self) -> Result<(), Errno> {
        self.batch += 1;
        self.ring.submit().map(drop).map_err(|error| errno(&error))
    }

    fn receive(&mut self, client: usize) {
        let entry = opcode::RecvMulti::new(Fixed(client as u32), GROUP).build();
        self.push(&entry.user_data(self.data(RECEIVE, client)));
    }

    fn data(&self, kind: u64, client: usize) -> u64 {
        kind << KIND_SHIFT | (self.lines[client].generation & GENERATION_MASK) << GENERATION_SHIFT | client as u64
    }

    fn current(&self, client: usize, generation: u64) -> bool {
        self.lines[client].socket.is_some() && self.lines[client].generation & GENERATION_MASK == generation
    }

    /// Sends the client's request from byte `sent` on, and keeps it until the kernel has read it.
    fn send_kept(&mut self, client: usize, sent: usize) {
        let line = &mut self.lines[client];
        let request = std::mem::take(&mut line.request);
        let entry = send_entry(client, &request[sent.min(request.len())..], 0);
        let kept = Large { client, generation: line.generation & GENERATION_MASK, _request: request };
        let number = self.large.iter().position(Option::is_none).unwrap_or_else(|| {
            self.large.push(None);
            self.large.len() - 1
        });
        self.large[number] = Some(kept);
        self.push(&entry.user_data(LARGE_SEND << KIND_SHIFT | number as u64));
    }

    /// What a completion means: a client and how it went, or nothing that matters.
    fn completed(&mut self, entry: &cqueue::Entry) -> Option<Completed> {
        let data = entry.user_data();
        let (client, generation, kind) =
            (data as u32 as usize, data >> GENERATION_SHIFT & GENERATION_MASK, data >> KIND_SHIFT);
        let outcome = match entry.result() {
            result @ 0.. => Ok(result as usize),
            error => Err(Errno::from_raw_os_error(-error)),
        };
        if kind == LARGE_SEND {
            let sent = self.large[client].take()?;
            return match outcome {
                Err(errno) if self.current(sent.client, sent.generation) => Some((sent.client, Err(errno))),
                _ => None,
            };
        }
        let current = self.current(client, generation);
        let buffer = cqueue::buffer_select(entry.flags());
        if !current {
            // From a socket that was given up.
            if let Some(buffer) = buffer {
                self.buffers.give_back(buffer);
            }
            return None;
        }
        if kind == SEND {
            return match outcome {
                Ok(sent) => {
                    self.send_kept(client, sent);
                    None
                }
                Err(Errno::AGAIN) => {
                    self.send_kept(client, 0);
                    None
                }
                Err(errno) => Some((client, Err(errno))),
            };
        }
        let again = !cqueue::more(entry.flags());
        match (outcome, buffer) {
            (Ok(length @ 1..), Some(buffer)) => {
                if again {
                    self.receive(client);
                }
                Some((client, Ok((buffer, length))))
            }
            // All buffers were full at that moment; they are not any more.
            (Err(Errno::NOBUFS), _) => {
                self.receive(client);
                None
            }
            (outcome, buffer) => {
                if let Some(buffer) = buffer {
                    self.buffers.give_back(buffer);
                }
                Some((client, Err(outcome.err().unwrap_or(Errno::CONNRESET))))
            }
        }
    }
}

fn send_entry(client: usize, request: &[u8], flags: i32) -> squeue::Entry {
    const WHOLE: i32 = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
    opcode::Send::new(Fixed(client as u32), request.as_ptr(), request.len() as u32).flags(WHOLE | flags).build()
}

impl Wire for UringWire {
    fn name(&self) -> &'static str {
        "io_uring"
    }

    fn sockets(&self) -> Box<dyn Iterator<Item = BorrowedFd<'_>> + '_> {
        Box::new(self.lines.iter().filter_map(|line| line.socket.as_ref()).map(AsFd::as_fd))
    }

    fn attach(&mut self, client: usize, socket: OwnedFd) -> Result<(), Errno> {
        rustix::io::ioctl_fionbio(&socket, false)?;
        let update = self.ring.submitter().register_files_update(client as u32, &[socket.as_fd().as_raw_fd()]);
        update.map_err(|error| errno(&error))?;
        self.lines[client].socket = Some(socket);
        self.receive(client);
        Ok(())
    }

    fn detach(&mut self, client: usize) {
        // An operation names the socket's slot: those not submitted yet would find the next socket there.
        let _ = self.submit();
        let line = &mut self.lines[client];
        line.generation += 1;
        if let Some(socket) = line.socket.take() {
            // Ends the receive that is posted, which holds the socket.
            let _ = shutdown(&socket, Shutdown::Both);
        }
    }

    fn request(&mut self, client: usize) -> &mut Vec<u8> {
        if self.lines[client].batch == self.batch {
            // The one before has not left yet.
            let _ = self.submit();
        }
        &mut self.lines[client].request
    }

    #[inline]
    fn send(&mut self, client: usize) {
        let line = &mut self.lines[client];
        if line.request.len() > SMALL_REQUEST {
            self.send_kept(client, 0);
            return;
        }
        line.batch = self.batch;
        let entry = send_entry(client, &line.request, libc::MSG_DONTWAIT).user_data(self.data(SEND, client));
        self.push(&entry.flags(squeue::Flags::SKIP_SUCCESS));
    }

    fn wait(&mut self, longest: Duration) -> Result<(), Errno> {
        if let Some(buffer) = self.lent.take() {
            self.buffers.give_back(buffer);
        }
        if let Some(errno) = self.broken {
            return Err(errno);
        }
        self.batch += 1;
        let sleep = Timespec::from(longest);
        let arguments = SubmitArgs::new().timespec(&sleep);
        match self.ring.submitter().submit_with_args(1, &arguments) {
            Ok(_) => Ok(()),
            Err(error) => match errno(&error) {
                Errno::TIME | Errno::INTR | Errno::BUSY => Ok(()),
                errno => Err(errno),
            },
        }
    }

    #[inline]
    fn next(&mut self) -> Option<Arrival<'_>> {
        if let Some(buffer) = self.lent.take() {
            self.buffers.give_back(buffer);
        }
        loop {
            let entry = self.ring.completion().next()?;
            if let Some((client, outcome)) = self.completed(&entry) {
                let got = outcome.map(|(buffer, length)| {
                    self.lent = Some(buffer);
                    self.buffers.bytes(buffer, length)
                });
                return Some(Arrival { client, got });
            }
        }
    }
}

impl Drop for UringWire {
    fn drop(&mut self) {
        // What is still in flight must not reach memory that is about to be unmapped.
        (0..self.lines.len()).for_each(|client| self.detach(client));
        let _ = self.ring.submitter().unregister_buf_ring(GROUP);
    }
}

/// Buffers that the kernel takes from a ring to receive into, and that are given back to it.
struct Buffers {
    entries: NonNull<BufRingEntry>,
    memory: NonNull<u8>,
    count: u16,
    /// Bytes from one buffer to the next.
    stride: usize,
    tail: u16,
}

impl Buffers {
    fn new(count: u16) -> Result<Self, Errno> {
        // Buffers at distances of a power of two would all fall into the same few lines of the cache.
        let stride = (BUFFERS_SIZE / usize::from(count)).clamp(BUFFER_SIZE_MIN, BUFFER_SIZE_MAX) + 192;
        let mut buffers = Self {
            entries: map(usize::from(count) * size_of::<BufRingEntry>())?.cast(),
            memory: map(usize::from(count) * stride)?,
            count,
            stride,
            tail: 0,
        };
        (0..count).for_each(|buffer| buffers.give_back(buffer));
        Ok(buffers)
    }

    fn ring_address(&self) -> u64 {
        self.entries.as_ptr() as u64
    }

    fn bytes(&self, buffer: u16, length: usize) -> &[u8] {
        debug_assert!(buffer < self.count && length <= self.stride);
        // SAFETY: within the mapping, and the kernel writes to it no more until it is given back,
        // which needs `&mut self`.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().add(usize::from(buffer) * self.stride), length) }
    }

    fn give_back(&mut self, buffer: u16) {
        let slot = usize::from(self.tail & (self.count - 1));
        // SAFETY: the slot and the buffer are within their mappings; the kernel reads the slot only
        // after the tail, stored last, has passed it.
        unsafe {
            let entry = &mut *self.entries.as_ptr().add(slot);
            entry.set_addr(self.memory.as_ptr().add(usize::from(buffer) * self.stride) as u64);
            entry.set_len(self.stride as u32);
            entry.set_bid(buffer);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(self.entries.as_ptr()).cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: both were mapped with these sizes and nothing uses them any more.
        unsafe {
            let _ = munmap(self.entries.as_ptr().cast(), usize::from(self.count) * size_of::<BufRingEntry>());
            let _ = munmap(self.memory.as_ptr().cast(), usize::from(self.count) * self.stride);
        }
    }
}

fn map(size: usize) -> Result<NonNull<u8>, Errno> {
    // SAFETY: a fresh private mapping touches no other memory.
    let address =
        unsafe { mmap_anonymous(std::ptr::null_mut(), size, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) }?;
    NonNull::new(address.cast()).ok_or(Errno::NOMEM)
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
