//! The contract of a wire: the sockets of all clients of a thread, sent to and waited for together.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;

/// What came for a client.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// Which client.
    pub client: usize,
    /// Bytes, or why there will be none: `CONNRESET` also when the server closed the connection.
    pub got: Result<&'a [u8], Errno>,
}

/// The sockets of all clients of a thread.
pub trait Wire {
    /// Its name in every output.
    fn name(&self) -> &'static str;

    /// The sockets of those clients that have one.
    fn sockets(&self) -> Box<dyn Iterator<Item = BorrowedFd<'_>> + '_>;

    /// Takes over the socket of a client that has none.
    ///
    /// # Errors
    /// The kernel refused it.
    fn attach(&mut self, client: usize, socket: OwnedFd) -> Result<(), Errno>;

    /// Closes the socket of a client. Nothing arrives from it any more.
    fn detach(&mut self, client: usize);

    /// The buffer whose bytes [`Wire::send`] sends.
    fn request(&mut self, client: usize) -> &mut Vec<u8>;

    /// Sends what the client's buffer holds, now or with the next [`Wire::wait`]. No caller uses this
    /// before the reply to what was sent before is complete. What fails becomes an arrival.
    fn send(&mut self, client: usize);

    /// Sleeps until something has arrived, at most for `longest`, or until a signal.
    ///
    /// # Errors
    /// The kernel refused to wait.
    fn wait(&mut self, longest: Duration) -> Result<(), Errno>;

    /// The next of what has arrived.
    fn next(&mut self) -> Option<Arrival<'_>>;
}

#[cfg(test)]
mod tests {
    //! The contract of a wire, over every implementation.

    use std::io::{Read as _, Write as _};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::thread;
    use std::time::{Duration, Instant};

    use rustix::io::Errno;
    use rustix::net::sockopt::set_socket_send_buffer_size;

    use super::*;
    use crate::event_loop::epoll::EpollWire;
    use crate::event_loop::uring::UringWire;

    const SOON: Duration = Duration::from_secs(60); // also on a busy host

    /// Runs a test on every wire that the kernel allows.
    fn test_all_wires(test: impl Fn(&dyn Fn(usize) -> Box<dyn Wire>)) {
        test(&|clients| Box::new(EpollWire::new(clients).unwrap()));
        match UringWire::new(1) {
            Ok(_) => test(&|clients| Box::new(UringWire::new(clients).unwrap())),
            Err(errno) => println!("io_uring is refused here ({errno}): not tested"),
        }
    }

    fn pair(wire: &mut dyn Wire, client: usize) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().unwrap();
        wire.attach(client, OwnedFd::from(ours)).unwrap();
        theirs
    }

    fn send(wire: &mut dyn Wire, client: usize, bytes: &[u8]) {
        let request = wire.request(client);
        request.clear();
        request.extend_from_slice(bytes);
        wire.send(client);
    }

    /// Waits for `wanted` bytes of a client, or the end of its connection.
    fn on_bytes(wire: &mut dyn Wire, client: usize, wanted: usize) -> Result<Vec<u8>, Errno> {
        let (start, mut bytes) = (Instant::now(), Vec::new());
        while bytes.len() < wanted {
            assert!(start.elapsed() < SOON, "{} of {wanted} bytes came", bytes.len());
            wire.wait(Duration::from_millis(10)).unwrap();
            // The end of the connection may come with its last bytes.
            while bytes.len() < wanted {
                let Some(arrival) = wire.next() else { break };
                assert_eq!(arrival.client, client);
                bytes.extend_from_slice(arrival.got?);
            }
        }
        Ok(bytes)
    }

    /// What another side does with a connection: gives back so many bytes as they come.
    fn echo(mut stream: UnixStream, count: usize) -> thread::JoinHandle<()> {
        thread::spawn(move || {
            let (mut buffer, mut left) = (vec![0; 100_000], count);
            while left > 0 {
                let got = stream.read(&mut buffer).unwrap();
                assert!(got > 0, "closed with {left} to come");
                stream.write_all(&buffer[..got]).unwrap();
                left -= got;
            }
        })
    }

    #[test]
    fn requests_and_replies_of_any_size_pass() {
        test_all_wires(|make| {
            let mut wire = make(1);
            let other = pair(&mut *wire, 0);
            let sizes = [1, 100, 65_536, 65_537, 3_000_000, 5];
            let echo = echo(other, sizes.iter().sum());
            for size in sizes {
                let statement: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
                send(&mut *wire, 0, &statement);
                assert!(on_bytes(&mut *wire, 0, size).unwrap() == statement, "{} changed {size} bytes", wire.name());
            }
            echo.join().unwrap();
        });
    }

    #[test]
    fn more_may_come_at_once_than_there_are_buffers() {
        const CLIENTS: usize = 40;
        const SIZE: usize = 1_000_000;
        test_all_wires(|make| {
            let mut wire = make(CLIENTS);
            let writers: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    let mut other = pair(&mut *wire, client);
                    thread::spawn(move || other.write_all(&vec![client as u8; SIZE]).map(|()| other))
                })
                .collect();
            let (start, mut got) = (Instant::now(), vec![0; CLIENTS]);
            while got.iter().any(|got| *got < SIZE) {
                assert!(start.elapsed() < 4 * SOON, "{}: {got:?}", wire.name());
                wire.wait(Duration::from_millis(10)).unwrap();
                while let Some(arrival) = wire.next() {
                    let bytes = arrival.got.unwrap();
                    assert!(bytes.iter().all(|byte| *byte == arrival.client as u8));
                    got[arrival.client] += bytes.len();
                }
            }
            assert_eq!(got, [SIZE; CLIENTS]);
            for writer in writers {
                drop(writer.join().unwrap().unwrap());
            }
        });
    }

    #[test]
    fn the_end_of_a_connection_arrives_after_its_last_bytes() {
        test_all_wires(|make| {
            let mut wire = make(1);
            let mut other = pair(&mut *wire, 0);
            other.write_all(b"bye").unwrap();
            drop(other);
            assert_eq!(on_bytes(&mut *wire, 0, 3).unwrap(), b"bye");
            assert_eq!(on_bytes(&mut *wire, 0, 1), Err(Errno::CONNRESET));
        });
    }

    #[test]
    fn a_send_that_fails_arrives() {
        test_all_wires(|make| {
            for size in [10, 1_000_000] {
                let mut wire = make(1);
                drop(pair(&mut *wire, 0));
                send(&mut *wire, 0, &vec![0; size]);
                let errno = on_bytes(&mut *wire, 0, 1).unwrap_err();
                assert!([Errno::PIPE, Errno::CONNRESET].contains(&errno), "{}: {errno}", wire.name());
            }
        });
    }

    #[test]
    fn nothing_arrives_from_a_connection_that_was_given_up() {
        test_all_wires(|make| {
            let mut wire = make(1);
            for _ in 0..100 {
                let mut old = pair(&mut *wire, 0);
                old.write_all(b"old").unwrap();
                wire.detach(0);
                let mut new = pair(&mut *wire, 0);
                new.write_all(b"new").unwrap();
                assert_eq!(on_bytes(&mut *wire, 0, 3).unwrap(), b"new", "{}", wire.name());
                wire.detach(0);
            }
        });
    }

    #[test]
    fn silence_is_waited_for_no_longer_than_asked() {
        test_all_wires(|make| {
            let mut wire = make(1);
            let _other = pair(&mut *wire, 0);
            let start = Instant::now();
            wire.wait(Duration::from_millis(30)).unwrap();
            assert!(start.elapsed() >= Duration::from_millis(29), "{}", wire.name());
            assert!(wire.next().is_none());
        });
    }

    #[test]
    fn a_sleep_is_not_rounded_to_milliseconds() {
        const ASKED: Duration = Duration::from_micros(200);
        test_all_wires(|make| {
            let mut wire = make(1);
            let _other = pair(&mut *wire, 0);
            // The shortest of many: a busy machine makes others longer.
            let timed = |sleep: &mut dyn FnMut()| {
                let start = Instant::now();
                sleep();
                start.elapsed()
            };
            let (slept, kernel): (Vec<_>, Vec<_>) = (0..50)
                .map(|_| (timed(&mut || wire.wait(ASKED).unwrap()), timed(&mut || std::thread::sleep(ASKED))))
                .unzip();
            let (shortest, kernel) = (slept.into_iter().min().unwrap(), kernel.into_iter().min().unwrap());
            assert!(ASKED <= shortest && shortest < kernel * 3, "{}: {shortest:?} beside {kernel:?}", wire.name());
        });
    }

    /// A server that answers before it has heard all, as an honest one does not.
    #[test]
    fn a_request_is_sent_as_it_was_however_soon_the_next_is_written() {
        const SIZE: usize = 60_000;
        test_all_wires(|make| {
            if make(1).name() == "epoll" {
                // It sends from the client's own buffer, and so what is there by then.
                return;
            }
            for whole in [true, false] {
                let mut wire = make(1);
                let (ours, mut other) = UnixStream::pair().unwrap();
                if !whole {
                    set_socket_send_buffer_size(&ours, 8192).unwrap();
                }
                wire.attach(0, OwnedFd::from(ours)).unwrap();
                send(&mut *wire, 0, &vec![b'a'; SIZE]);
                if !whole {
                    wire.wait(Duration::from_millis(20)).unwrap();
                    assert!(wire.next().is_none());
                }
                // Another buffer of the same size takes the place of the first in memory.
                *wire.request(0) = Vec::new();
                *wire.request(0) = vec![b'b'; SIZE];
                let reader = thread::spawn(move || {
                    let mut got = vec![0; SIZE];
                    other.read_exact(&mut got).map(|()| (got, other))
                });
                let start = Instant::now();
                while !reader.is_finished() {
                    assert!(start.elapsed() < SOON);
                    wire.wait(Duration::from_millis(10)).unwrap();
                    assert!(wire.next().is_none());
                }
                let (got, _other) = reader.join().unwrap().unwrap();
                assert!(got == vec![b'a'; SIZE], "something else was sent");
            }
        });
    }

    #[test]
    fn a_socket_that_takes_little_at_a_time_gets_all() {
        const SIZE: usize = 60_000;
        test_all_wires(|make| {
            let mut wire = make(1);
            let (ours, other) = UnixStream::pair().unwrap();
            set_socket_send_buffer_size(&ours, 4608).unwrap();
            wire.attach(0, OwnedFd::from(ours)).unwrap();
            let echo = echo(other, 3 * SIZE);
            for letter in [b'x', b'y', b'z'] {
                let statement = vec![letter; SIZE];
                send(&mut *wire, 0, &statement);
                assert!(on_bytes(&mut *wire, 0, SIZE).unwrap() == statement, "{}", wire.name());
            }
            echo.join().unwrap();
        });
    }
}
