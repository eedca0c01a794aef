//! The event loop: one thread, all connections, one statement under way on each.

use std::os::fd::OwnedFd;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::clock::now_ns;
use crate::error::Error;
use crate::measure::{Operation, Recorder};
use crate::protocol::connection::Connection;
use crate::protocol::packet::reply_sequence;
use crate::protocol::reply::{Reply, ReplyParser};
use crate::protocol::session::Session;
use crate::stop::Stop;

/// Bytes read at a time; a larger reply takes several reads.
const READ_SIZE: usize = 256 << 10;

/// Longest sleep, in nanoseconds: how soon a silent server, a signal or a deadline is noticed.
const SLEEP_MAX_NS: i64 = 100_000_000;

/// Edge-triggered: the kernel need not look at a socket again after it was read.
const READABLE: epoll::EventFlags = epoll::EventFlags::IN.union(epoll::EventFlags::ET);

/// What the clients say.
pub trait Statements {
    /// The next statement of `client` as whole packets, either kept or put into `scratch`; `None`
    /// when it has said all.
    fn next<'a>(&'a mut self, client: usize, scratch: &'a mut Vec<u8>) -> Option<(Operation, &'a [u8])>;
}

/// When a run ends other than by the clients having said all.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// No statement starts at or after this time (`CLOCK_MONOTONIC`, ns); those under way finish.
    pub deadline_ns: Option<u64>,
    /// The run is given up after more refused statements than this.
    pub errors_max: u64,
    /// The run is given up when no connection got a byte for this long, ns.
    pub stall_ns: u64,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// As planned.
    Finished,
    /// Early, for this cause.
    Aborted(String),
    /// By a signal.
    Interrupted,
}

/// A connection of the loop.
struct Client {
    socket: OwnedFd,
    parser: ReplyParser,
    /// What waits for a reply.
    operation: Operation,
    /// When it was meant to start.
    start_ns: u64,
    /// What the socket did not take yet.
    unsent: Vec<u8>,
}

/// All connections of a load.
pub struct Clients {
    all: Vec<Client>,
    /// None for a single client, which blocks on its socket.
    poll: Option<OwnedFd>,
    place: String,
}

impl Clients {
    /// Takes over logged-in sessions.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn new(sessions: Vec<Session>, place: String) -> Result<Self, Error> {
        let failed = |errno| Error::Failed(format!("cannot watch the connections: {errno}"));
        let alone = sessions.len() == 1;
        let poll = if alone { None } else { Some(epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?) };
        let mut all = Vec::with_capacity(sessions.len());
        for (number, session) in sessions.into_iter().enumerate() {
            let Connection { socket, parser, .. } = session.into_connection();
            rustix::io::ioctl_fionbio(&socket, !alone).map_err(failed)?;
            if let Some(poll) = &poll {
                let data = epoll::EventData::new_u64(number as u64);
                epoll::add(poll, &socket, data, READABLE).map_err(failed)?;
            }
            all.push(Client { socket, parser, operation: Operation::Other, start_ns: 0, unsent: Vec::new() });
        }
        Ok(Self { all, poll, place })
    }

    /// Ends all sessions politely.
    pub fn quit(self) {
        let packet = crate::protocol::packet::quit();
        for client in &self.all {
            let _ = send(&client.socket, &packet, SendFlags::NOSIGNAL);
        }
    }

    /// Lets all clients go at once and returns when none has a statement under way, or at once
    /// when the run is given up.
    pub fn drive<S: Statements>(
        &mut self,
        statements: &mut S,
        recorder: &mut Recorder<'_>,
        limits: Limits,
        stop: &Stop,
    ) -> End {
        let mut run = Run {
            statements,
            recorder,
            limits,
            busy: 0,
            stopping: false,
            scratch: Vec::new(),
            buffer: vec![0; READ_SIZE],
        };
        match run.all(self, stop) {
            Ok(()) if stop.asked() => End::Interrupted,
            Ok(()) => End::Finished,
            Err(cause) => End::Aborted(cause),
        }
    }
}

struct Run<'r, 's, S> {
    statements: &'r mut S,
    recorder: &'r mut Recorder<'s>,
    limits: Limits,
    /// Clients with a statement under way.
    busy: usize,
    /// No new statements.
    stopping: bool,
    scratch: Vec<u8>,
    buffer: Vec<u8>,
}

impl<S: Statements> Run<'_, '_, S> {
    fn all(&mut self, clients: &mut Clients, stop: &Stop) -> Result<(), String> {
        let started_ns = now_ns();
        let wire = Wire { poll: clients.poll.as_ref(), place: &clients.place };
        for (number, client) in clients.all.iter_mut().enumerate() {
            self.start_next(number, client, wire, started_ns)?;
        }
        match (clients.all.as_mut_slice(), wire.poll) {
            ([client], _) => self.alone(client, wire, started_ns, stop),
            (all, Some(poll)) => self.many(all, poll, wire, started_ns, stop),
            (_, None) => Ok(()),
        }
    }

    /// A single client blocks on its socket, which spares it a system call per statement.
    fn alone(&mut self, client: &mut Client, wire: Wire<'_>, started_ns: u64, stop: &Stop) -> Result<(), String> {
        let mut heard_ns = started_ns;
        while self.busy > 0 {
            if !client.unsent.is_empty() {
                flush(0, client, wire)?;
            }
            let before_ns = heard_ns;
            heard_ns = self.receive(0, client, wire, heard_ns)?;
            self.stopping |= stop.asked();
            if heard_ns == before_ns && self.silence(heard_ns, wire.place)? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn many(
        &mut self,
        all: &mut [Client],
        poll: &OwnedFd,
        wire: Wire<'_>,
        started_ns: u64,
        stop: &Stop,
    ) -> Result<(), String> {
        let mut heard_ns = started_ns;
        let mut events = Vec::with_capacity(all.len().clamp(1, 1024));
        while self.busy > 0 {
            events.clear();
            match epoll::wait(poll, spare_capacity(&mut events), Some(&SLEEP)) {
                Ok(_) => {}
                // A signal: what is under way may still come.
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(format!("cannot wait for the server: {errno}")),
            }
            self.stopping |= stop.asked();
            if events.is_empty() && self.silence(heard_ns, wire.place)? {
                return Ok(());
            }
            for event in &events {
                let number = event.data.u64() as usize;
                let client = &mut all[number];
                if !client.unsent.is_empty() {
                    flush(number, client, wire)?;
                }
                heard_ns = self.receive(number, client, wire, heard_ns)?;
            }
        }
        Ok(())
    }

    /// Nothing came for a while: tells whether to leave without the replies under way, since a
    /// server that hangs must not hold up whoever wants to stop.
    #[cold]
    fn silence(&mut self, heard_ns: u64, place: &str) -> Result<bool, String> {
        let now = now_ns();
        self.recorder.pass_time(now);
        let silent_ns = now.saturating_sub(heard_ns);
        if silent_ns >= self.limits.stall_ns {
            let seconds = silent_ns / 1_000_000_000;
            return Err(format!("{place} answered no client for {seconds} s: see the server's error log"));
        }
        Ok(self.stopping)
    }

    /// Reads what there is for a client; when its reply is complete, counts it and goes on.
    fn receive(
        &mut self,
        number: usize,
        client: &mut Client,
        wire: Wire<'_>,
        mut heard_ns: u64,
    ) -> Result<u64, String> {
        loop {
            let got = match recv(&client.socket, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((0, _)) => return Err(wire.lost(number, Errno::CONNRESET)),
                Ok((got, _)) => got,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Ok(heard_ns),
                Err(errno) => return Err(wire.lost(number, errno)),
            };
            let reply = client.parser.feed(&self.buffer[..got]);
            let now = now_ns();
            heard_ns = now;
            if let Some(reply) = reply.map_err(|error| format!("client {number}: {error}"))? {
                self.busy -= 1;
                self.count(client, &reply, now)?;
                self.start_next(number, client, wire, now)?;
                return Ok(now);
            }
            // A full buffer means there may be more, of which an edge-triggered poll does not tell again.
            if got < self.buffer.len() {
                return Ok(now);
            }
        }
    }

    #[inline]
    fn count(&mut self, client: &Client, reply: &Reply, now: u64) -> Result<(), String> {
        let Some(error) = &reply.error else {
            self.recorder.answered(client.operation, now - client.start_ns, now);
            return Ok(());
        };
        self.recorder.refused(client.operation, error, now);
        let operation = client.operation.name();
        if error.ends_session() {
            return Err(format!("the server ended the session: error {error}"));
        }
        if self.recorder.error_count() > self.limits.errors_max {
            return Err(format!(
                "more than {} refused statements; the last, {operation}: error {error}",
                self.limits.errors_max
            ));
        }
        Ok(())
    }

    /// Sends the client's next statement, whose intended start is `now`.
    #[inline]
    fn start_next(&mut self, number: usize, client: &mut Client, wire: Wire<'_>, now: u64) -> Result<(), String> {
        if self.stopping || self.limits.deadline_ns.is_some_and(|end| now >= end) {
            return Ok(());
        }
        let Some((operation, request)) = self.statements.next(number, &mut self.scratch) else {
            return Ok(());
        };
        client.operation = operation;
        client.start_ns = now;
        client.parser.expect(reply_sequence(request));
        self.busy += 1;
        let sent = match send(&client.socket, request, SendFlags::NOSIGNAL) {
            Ok(sent) => sent,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(errno) => return Err(wire.lost(number, errno)),
        };
        if sent < request.len() {
            client.unsent.extend_from_slice(&request[sent..]);
            wire.watch(number, client, READABLE | epoll::EventFlags::OUT)?;
        }
        Ok(())
    }
}

const SLEEP: Timespec = Timespec { tv_sec: 0, tv_nsec: SLEEP_MAX_NS };

/// What the connections of a loop have in common.
#[derive(Clone, Copy)]
struct Wire<'a> {
    poll: Option<&'a OwnedFd>,
    place: &'a str,
}

impl Wire<'_> {
    /// Has the poll, if there is one, tell of `flags`.
    fn watch(self, number: usize, client: &Client, flags: epoll::EventFlags) -> Result<(), String> {
        let Some(poll) = self.poll else { return Ok(()) };
        let data = epoll::EventData::new_u64(number as u64);
        epoll::modify(poll, &client.socket, data, flags).map_err(|errno| self.lost(number, errno))
    }

    fn lost(self, number: usize, errno: Errno) -> String {
        format!("client {number} {}", Error::Lost(self.place.to_owned(), errno))
    }
}

/// Sends more of a statement that the socket did not take at once.
fn flush(number: usize, client: &mut Client, wire: Wire<'_>) -> Result<(), String> {
    match send(&client.socket, &client.unsent, SendFlags::NOSIGNAL) {
        Ok(sent) => drop(client.unsent.drain(..sent)),
        Err(Errno::AGAIN | Errno::INTR) => {}
        Err(errno) => return Err(wire.lost(number, errno)),
    }
    if client.unsent.is_empty() {
        wire.watch(number, client, READABLE)?;
    }
    Ok(())
}
