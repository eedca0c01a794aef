//! The server: answers each whole request with the canned reply.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;
use std::{io, thread};

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, accept, recv, send};
use rustix::time::{ClockId, clock_gettime};

use crate::{Echo, Options};

/// Larger than any request; what a client may have sent beyond one would be the next.
const BUFFER_SIZE: usize = 16 << 10;

/// Stack of a thread that needs next to none.
const STACK_SIZE: usize = 64 << 10;

/// Serves until all clients have gone; the listening socket is standard input.
pub fn serve(options: &Options) -> io::Result<()> {
    let listener = io::stdin();
    let mut clients = Vec::with_capacity(options.clients);
    for _ in 0..options.clients {
        let socket = accept(listener.as_fd())?;
        if options.tcp {
            rustix::net::sockopt::set_tcp_nodelay(&socket, true)?;
        }
        clients.push(Client { socket, received: 0 });
    }
    match options.echo {
        Echo::Threads => with_threads(clients, options),
        Echo::Epoll => with_epoll(clients, options),
    }
}

struct Client {
    socket: OwnedFd,
    /// Bytes of the request in flight.
    received: usize,
}

impl Client {
    /// Takes what is there and answers what is complete; says whether the client is still there.
    fn serve(&mut self, buffer: &mut [u8], options: &Options) -> io::Result<bool> {
        match recv(&self.socket, buffer, RecvFlags::empty()) {
            Ok((0, _)) | Err(Errno::CONNRESET) => return Ok(false),
            Ok((got, _)) => self.received += got,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let size = options.message.request.len();
        while self.received >= size {
            self.received -= size;
            work(options.work);
            send(&self.socket, &options.message.reply, SendFlags::NOSIGNAL)?;
        }
        Ok(true)
    }
}

/// Spends CPU time; that of this thread, as others may have the core for a while.
fn work(duration: Duration) {
    let spent = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    if !duration.is_zero() {
        let end = spent() + duration;
        while spent() < end {}
    }
}

fn with_threads(clients: Vec<Client>, options: &Options) -> io::Result<()> {
    thread::scope(|scope| {
        for mut client in clients {
            let body = move || {
                let mut buffer = vec![0; BUFFER_SIZE];
                while client.serve(&mut buffer, options)? {}
                Ok::<_, io::Error>(())
            };
            thread::Builder::new().stack_size(STACK_SIZE).spawn_scoped(scope, body)?;
        }
        Ok(())
    })
}

fn with_epoll(mut clients: Vec<Client>, options: &Options) -> io::Result<()> {
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (number, client) in clients.iter().enumerate() {
        epoll::add(&poll, &client.socket, epoll::EventData::new_u64(number as u64), epoll::EventFlags::IN)?;
    }
    let mut left = clients.len();
    let mut buffer = vec![0; BUFFER_SIZE];
    let mut events = Vec::with_capacity(left);
    while left > 0 {
        events.clear();
        epoll::wait(&poll, spare_capacity(&mut events), None)?;
        for event in &events {
            let client = &mut clients[event.data.u64() as usize];
            if !client.serve(&mut buffer, options)? {
                epoll::delete(&poll, &client.socket)?;
                left -= 1;
            }
        }
    }
    Ok(())
}
