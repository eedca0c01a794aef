//! Sockets over epoll: where the kernel has no io_uring for us.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::thread::set_current_timer_slack;

use super::wire::{Arrival, Wire};

/// Bytes read at a time; a larger reply takes several reads.
const READ_SIZE: usize = 256 << 10;

/// That no more will come.
const HANGUP: epoll::EventFlags = epoll::EventFlags::RDHUP.union(epoll::EventFlags::HUP);

/// Edge-triggered: the kernel need not look at a socket again after it was read.
const READABLE: epoll::EventFlags = epoll::EventFlags::IN.union(epoll::EventFlags::RDHUP).union(epoll::EventFlags::ET);

#[derive(Default)]
struct Line {
    socket: Option<OwnedFd>,
    request: Vec<u8>,
    /// Bytes of the request that the socket took.
    sent: usize,
}

/// The sockets of all clients.
pub struct EpollWire {
    poll: OwnedFd,
    lines: Vec<Line>,
    events: Vec<epoll::Event>,
    /// Events looked at so far.
    seen: usize,
    /// Clients whose sending failed.
    failed: VecDeque<(usize, Errno)>,
    buffer: Vec<u8>,
}

impl EpollWire {
    /// A wire for so many clients.
    /// It belongs to the thread that makes it.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn new(clients: usize) -> Result<Self, Errno> {
        // The kernel lets a thread sleep 50 us longer than it asked for, to save power.
        let _ = set_current_timer_slack(Some(NonZeroU64::MIN));
        let mut lines = Vec::new();
        lines.resize_with(clients, Line::default);
        Ok(Self {
            poll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            lines,
            events: Vec::with_capacity(clients.clamp(1, 1024)),
            seen: 0,
            failed: VecDeque::new(),
            buffer: vec![0; READ_SIZE],
        })
    }

    /// Takes in what the sockets report, in whole milliseconds at most.
    fn fetch(&mut self, longest: &Timespec) -> Result<usize, Errno> {
        epoll::wait(&self.poll, spare_capacity(&mut self.events), Some(longest))
    }

    /// As [`Self::fetch`], to the nanosecond, which an event that is due in an open loop needs: the poll is a file
    /// that can be waited for as well. (`epoll_pwait2` does it at once, from Linux 5.11 on.)
    fn fetch_later(&mut self, longest: &Timespec) -> Result<usize, Errno> {
        match poll(&mut [PollFd::new(&self.poll, PollFlags::IN)], Some(longest))? {
            0 => Ok(0),
            _ => self.fetch(&Timespec::default()),
        }
    }

    /// Sends the rest of a request; the poll reports when a full socket takes more.
    fn flush(&mut self, client: usize) {
        let line = &mut self.lines[client];
        let Some(socket) = &line.socket else { return };
        let waited = line.sent > 0;
        let outcome = match send(socket, &line.request[line.sent..], SendFlags::NOSIGNAL) {
            Ok(sent) => {
                line.sent += sent;
                Ok(())
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(errno) => Err(errno),
        };
        let more = line.sent < line.request.len();
        let flags = if more { READABLE | epoll::EventFlags::OUT } else { READABLE };
        let data = epoll::EventData::new_u64(client as u64);
        let watched = if more || waited { epoll::modify(&self.poll, socket, data, flags) } else { Ok(()) };
        let outcome = outcome.and(watched);
        if let Err(errno) = outcome {
            self.failed.push_back((client, errno));
        }
    }
}

impl Wire for EpollWire {
    fn name(&self) -> &'static str {
        "epoll"
    }

    fn sockets(&self) -> Box<dyn Iterator<Item = BorrowedFd<'_>> + '_> {
        Box::new(self.lines.iter().filter_map(|line| line.socket.as_ref()).map(AsFd::as_fd))
    }

    fn attach(&mut self, client: usize, socket: OwnedFd) -> Result<(), Errno> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        epoll::add(&self.poll, &socket, epoll::EventData::new_u64(client as u64), READABLE)?;
        self.lines[client] = Line { socket: Some(socket), ..Line::default() };
        Ok(())
    }

    fn detach(&mut self, client: usize) {
        // Closing takes it out of the poll; events already fetched find no socket.
        self.lines[client].socket = None;
        self.failed.retain(|(failed, _)| *failed != client);
    }

    fn request(&mut self, client: usize) -> &mut Vec<u8> {
        &mut self.lines[client].request
    }

    #[inline]
    fn send(&mut self, client: usize) {
        self.lines[client].sent = 0;
        self.flush(client);
    }

    fn wait(&mut self, longest: Duration) -> Result<(), Errno> {
        if self.seen < self.events.len() || !self.failed.is_empty() {
            return Ok(());
        }
        self.events.clear();
        self.seen = 0;
        let sleep = Timespec::try_from(longest).map_err(|_| Errno::INVAL)?;
        let fetched = if longest.subsec_nanos().is_multiple_of(1_000_000) {
            self.fetch(&sleep)
        } else {
            self.fetch(&Timespec::default()).and_then(|got| if got == 0 { self.fetch_later(&sleep) } else { Ok(got) })
        };
        match fetched {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    fn next(&mut self) -> Option<Arrival<'_>> {
        if let Some((client, errno)) = self.failed.pop_front() {
            return Some(Arrival { client, got: Err(errno) });
        }
        while let Some(event) = self.events.get(self.seen) {
            let client = event.data.u64() as usize;
            let flags = event.flags;
            let line = &self.lines[client];
            if flags.contains(epoll::EventFlags::OUT) && line.sent < line.request.len() {
                self.flush(client);
            }
            let Some(socket) = &self.lines[client].socket else {
                self.seen += 1;
                continue;
            };
            let got = match recv(socket, &mut self.buffer[..], RecvFlags::empty()) {
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {
                    self.seen += 1;
                    continue;
                }
                Ok((0, _)) => Err(Errno::CONNRESET),
                Ok((got, _)) => Ok(got),
                Err(errno) => Err(errno),
            };
            // Of more behind a full buffer, and of the end behind the last bytes, an edge-triggered poll
            // does not report it again.
            if !matches!(got, Ok(got) if got == self.buffer.len() || flags.intersects(HANGUP)) {
                self.seen += 1;
            }
            return Some(Arrival { client, got: got.map(|got| &self.buffer[..got]) });
        }
        None
    }
}
