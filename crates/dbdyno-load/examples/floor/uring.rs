//! The client over io_uring: one system call to wait and to send all that is due; receives stay
//! armed, take their memory from a ring of buffers, and sends report nothing but failure.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::error::Error;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::{BufRingEntry, Fixed};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::io::Errno;

use crate::Exchange;

/// The only group of buffers.
const GROUP: u16 = 0;

/// Most that the kernel takes in one group of buffers, and in a submission queue.
const BUFFERS_MAX: usize = 1 << 15;
const ENTRIES_MAX: usize = 1 << 15;

/// Marks the completion of a send, of which there is one only if it failed.
const SEND: u64 = 1 << 63;

/// All connections.
pub struct Uring<'a> {
    // Declared, and so dropped, before the memory that the kernel writes to.
    ring: IoUring,
    buffers: Buffers,
    request: &'a [u8],
    reply_size: usize,
    /// Bytes of the reply in flight, by connection.
    received: Vec<usize>,
    /// Completions of one turn.
    turn: Vec<(u64, i32, u32)>,
}

impl<'a> Uring<'a> {
    /// Arms a receive on each of `sockets`.
    pub fn new(sockets: &[OwnedFd], request: &'a [u8], reply_size: usize) -> Result<Self, Box<dyn Error>> {
        let entries = (2 * sockets.len()).next_power_of_two().clamp(8, ENTRIES_MAX);
        let ring = IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(entries as u32)?;
        let files: Vec<i32> = sockets.iter().map(AsRawFd::as_raw_fd).collect();
        ring.submitter().register_files(&files)?;
        let buffers = Buffers::new((2 * sockets.len()).next_power_of_two().min(BUFFERS_MAX), reply_size);
        // SAFETY: the entries live, at this address and length, as long as the ring does.
        unsafe {
            ring.submitter().register_buf_ring_with_flags(buffers.entries as u64, buffers.count, GROUP, 0)?;
        }
        let received = vec![0; sockets.len()];
        let mut uring = Self { ring, buffers, request, reply_size, received, turn: Vec::with_capacity(2 * entries) };
        for number in 0..sockets.len() {
            uring.listen(number as u32)?;
        }
        Ok(uring)
    }

    /// Arms the receive of a connection, which stays so.
    fn listen(&mut self, number: u32) -> io::Result<()> {
        self.push(&opcode::RecvMulti::new(Fixed(number), GROUP).build().user_data(number.into()))
    }

    fn say(&mut self, number: u32) -> io::Result<()> {
        let send = opcode::Send::new(Fixed(number), self.request.as_ptr(), self.request.len() as u32).build();
        self.push(&send.flags(squeue::Flags::SKIP_SUCCESS).user_data(SEND | u64::from(number)))
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: what an entry points to is the request, which outlives the ring.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }
}

impl Exchange for Uring<'_> {
    fn run(&mut self, round_trips: u64) -> Result<(), Box<dyn Error>> {
        let (mut started, mut done) = (0, 0);
        for number in 0..self.received.len().min(round_trips as usize) {
            self.say(number as u32)?;
            started += 1;
        }
        while done < round_trips {
            self.ring.submit_and_wait(1)?;
            let mut turn = std::mem::take(&mut self.turn);
            turn.extend(self.ring.completion().map(|entry| (entry.user_data(), entry.result(), entry.flags())));
            for (tag, result, flags) in turn.drain(..) {
                if let Some(buffer) = cqueue::buffer_select(flags) {
                    self.buffers.give(buffer);
                }
                let number = tag as u32;
                if result <= 0 && (tag & SEND != 0 || -result != Errno::NOBUFS.raw_os_error()) {
                    return Err(format!("connection {number}: {}", Errno::from_raw_os_error(-result)).into());
                }
                if !cqueue::more(flags) {
                    self.listen(number)?;
                }
                let received = &mut self.received[number as usize];
                *received += usize::try_from(result).unwrap_or(0);
                if *received < self.reply_size {
                    continue;
                }
                *received = 0;
                done += 1;
                if started < round_trips {
                    self.say(number)?;
                    started += 1;
                }
            }
            self.turn = turn;
            self.buffers.publish();
        }
        Ok(())
    }
}

/// Buffers for what is received, and the ring through which the kernel is given them.
struct Buffers {
    entries: *mut BufRingEntry,
    layout: Layout,
    count: u16,
    /// Entries given so far, modulo its range.
    tail: u16,
    memory: Vec<u8>,
    size: usize,
}

impl Buffers {
    /// `count` (a power of two) buffers of `size` bytes, all given to the kernel.
    fn new(count: usize, size: usize) -> Self {
        const PAGE: usize = 4096;
        let layout = Layout::array::<BufRingEntry>(count).and_then(|layout| layout.align_to(PAGE));
        let layout = layout.unwrap_or_else(|_| unreachable!("at most {BUFFERS_MAX} entries of 16 bytes"));
        #[allow(clippy::cast_ptr_alignment, reason = "the layout is aligned to a page")]
        // SAFETY: the layout is not empty.
        let entries = unsafe { alloc_zeroed(layout) }.cast::<BufRingEntry>();
        if entries.is_null() {
            handle_alloc_error(layout);
        }
        let mut buffers = Self { entries, layout, count: count as u16, tail: 0, memory: vec![0; count * size], size };
        for number in 0..buffers.count {
            buffers.give(number);
        }
        buffers.publish();
        buffers
    }

    /// Lets the kernel have buffer `number` (again) from the next [`Self::publish`] on.
    fn give(&mut self, number: u16) {
        let at = usize::from(self.tail & (self.count - 1));
        // SAFETY: `at` is below the number of entries, which were allocated and zeroed; the kernel
        // does not read an entry at or behind the published tail.
        let entry = unsafe { &mut *self.entries.add(at) };
        entry.set_addr(self.memory[usize::from(number) * self.size..].as_mut_ptr() as u64);
        entry.set_len(self.size as u32);
        entry.set_bid(number);
        self.tail = self.tail.wrapping_add(1);
    }

    fn publish(&self) {
        // SAFETY: the tail lies within the first entry, is aligned, and is written only here.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(self.entries).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.entries.cast(), self.layout) };
    }
}
