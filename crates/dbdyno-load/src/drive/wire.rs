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
