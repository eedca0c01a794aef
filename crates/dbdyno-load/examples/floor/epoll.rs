//! The client over epoll: one system call to wait, two for each round trip.

use std::error::Error;
use std::os::fd::OwnedFd;

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::Exchange;

/// All connections.
pub struct Epoll<'a> {
    poll: OwnedFd,
    sockets: &'a [OwnedFd],
    request: &'a [u8],
    reply_size: usize,
    /// Bytes of the reply in flight, by connection.
    received: Vec<usize>,
    buffer: Vec<u8>,
    events: Vec<epoll::Event>,
}

impl<'a> Epoll<'a> {
    /// Watches `sockets`.
    pub fn new(sockets: &'a [OwnedFd], request: &'a [u8], reply_size: usize) -> Result<Self, Box<dyn Error>> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (number, socket) in sockets.iter().enumerate() {
            epoll::add(&poll, socket, epoll::EventData::new_u64(number as u64), epoll::EventFlags::IN)?;
        }
        Ok(Self {
            poll,
            sockets,
            request,
            reply_size,
            received: vec![0; sockets.len()],
            buffer: vec![0; reply_size],
            events: Vec::with_capacity(sockets.len()),
        })
    }

    fn say(&self, number: usize) -> Result<(), Box<dyn Error>> {
        send(&self.sockets[number], self.request, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

impl Exchange for Epoll<'_> {
    fn run(&mut self, round_trips: u64) -> Result<(), Box<dyn Error>> {
        let (mut started, mut done) = (0, 0);
        for number in 0..self.sockets.len().min(round_trips as usize) {
            self.say(number)?;
            started += 1;
        }
        while done < round_trips {
            self.events.clear();
            epoll::wait(&self.poll, spare_capacity(&mut self.events), None)?;
            for at in 0..self.events.len() {
                let number = self.events[at].data.u64() as usize;
                let (got, _) = recv(&self.sockets[number], &mut self.buffer[..], RecvFlags::empty())?;
                if got == 0 {
                    return Err("the server closed a connection".into());
                }
                self.received[number] += got;
                if self.received[number] < self.reply_size {
                    continue;
                }
                self.received[number] = 0;
                done += 1;
                if started < round_trips {
                    self.say(number)?;
                    started += 1;
                }
            }
        }
        Ok(())
    }
}
