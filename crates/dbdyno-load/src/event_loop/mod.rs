//! The event loop: one thread, its connections, one statement in flight on each.

use engine::Engine;
use epoll::EpollWire;
use rustix::io::Errno;
use uring::UringWire;
use wire::Wire;

use self::dial::{Dialer, Replacer};
use self::engine::Client;
use crate::error::Error;
use crate::measure::Recorder;
use crate::network::NetworkState;
use crate::protocol::session::Connection;
use crate::run_options::Io;
use crate::statements::Statements;
use crate::stop::Stop;

mod arrivals;
pub mod dial;
mod engine;
mod epoll;
mod uring;
mod wire;

pub use arrivals::{Limits, Shared};

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

/// The connections of one thread. It belongs to the thread that makes it.
pub struct Connections {
    wire: Box<dyn Wire>,
    clients: Vec<Client>,
    replacer: Replacer,
    /// Why io_uring is not used though it might have been.
    pub note: Option<String>,
}

impl Connections {
    /// Takes over connections. `dialer` makes new ones in place of those that are lost.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn new(connections: Vec<Connection>, dialer: &Dialer, io: Io) -> Result<Self, Error> {
        let failed = |errno: Errno| Error::Failed(format!("cannot watch the connections: {errno}"));
        let count = connections.len();
        let epoll = || Ok::<Box<dyn Wire>, Error>(Box::new(EpollWire::new(count).map_err(failed)?));
        let mut note = None;
        let mut wire = match io {
            Io::Epoll => epoll()?,
            Io::Uring | Io::Auto => match UringWire::new(count) {
                Ok(wire) => Box::new(wire),
                Err(errno) if io == Io::Uring => {
                    let remedy = remedy(errno);
                    return Err(Error::Failed(format!("io_uring is refused: {errno}: {remedy}, or use --io=epoll")));
                }
                Err(errno) => {
                    let remedy = remedy(errno);
                    note = Some(format!(
                        "io_uring is refused here ({errno}): epoll is used, which costs more CPU: {remedy}"
                    ));
                    epoll()?
                }
            },
        };
        let mut clients = Vec::with_capacity(count);
        for (number, connection) in connections.into_iter().enumerate() {
            let (client, socket) = Client::new(connection);
            wire.attach(number, socket).map_err(failed)?;
            clients.push(client);
        }
        Ok(Self { wire, clients, replacer: Replacer::new(dialer.clone()), note })
    }

    /// What waits for the sockets, by name.
    pub fn io(&self) -> &'static str {
        self.wire.name()
    }

    /// What the kernel knows of the sockets now.
    pub fn network_state(&self) -> NetworkState {
        NetworkState::now(self.wire.sockets())
    }

    /// Lets all clients go at once and returns when none has a statement in flight, or at once
    /// when the run is given up.
    pub fn drive(
        &mut self,
        statements: &mut dyn Statements,
        recorder: &mut Recorder<'_>,
        limits: Limits<'_>,
        shared: &Shared,
        stop: &Stop,
    ) -> End {
        let Self { wire, clients, replacer, .. } = self;
        match Engine::new(&mut **wire, clients, replacer, statements, recorder, limits, shared).run(stop) {
            Ok(()) if stop.is_requested() => End::Interrupted,
            Ok(()) => End::Finished,
            Err(cause) => {
                shared.give_up();
                End::Aborted(cause)
            }
        }
    }

    /// Ends all sessions politely.
    pub fn quit(mut self) {
        for (number, client) in self.clients.iter_mut().enumerate() {
            if client.is_ready() {
                let out = self.wire.request(number);
                client.write(out, |encoder| encoder.packets(&crate::protocol::packet::quit()));
                if client.seal(out).is_ok() {
                    self.wire.send(number);
                }
            }
        }
        let _ = self.wire.wait(std::time::Duration::ZERO);
    }
}

/// What to do about a refused io_uring.
fn remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::NOMEM => "raise ulimit -l, the memory that may be locked",
        _ => "see /proc/sys/kernel/io_uring_disabled and the container's seccomp profile",
    }
}
