//! New connections in place of old ones, made by threads of their own, since logging in blocks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::clock::now_ns;
use crate::dial::Dialer;
use crate::error::Error;
use crate::protocol::connection::Connection;

/// Logins at a time.
const THREADS: usize = 8;

/// Pause after the first failure; doubled after each, up to the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_LONGEST: Duration = Duration::from_secs(1);

/// A client without a connection, and until when one is tried for.
#[derive(Debug, Clone, Copy)]
struct ReconnectRequest {
    client: usize,
    until_ns: u64,
}

type Outcome = (usize, Result<Connection, Error>);

/// Makes connections; its threads start with the first request.
pub struct Replacer {
    dialer: Dialer,
    requests: Option<Sender<ReconnectRequest>>,
    outcomes: Option<Receiver<Outcome>>,
    pending: usize,
    /// No client waits for connections any more.
    over: Arc<AtomicBool>,
}

impl Replacer {
    /// Connections are made by `dialer`.
    pub fn new(dialer: Dialer) -> Self {
        Self { dialer, requests: None, outcomes: None, pending: 0, over: Arc::default() }
    }

    /// Asks for a connection; tries until `until_ns`, once at least.
    pub fn request(&mut self, client: usize, until_ns: u64) {
        self.pending += 1;
        let requests = self.requests.get_or_insert_with(|| {
            let (requests, taken) = channel();
            let (done, outcomes) = channel();
            let taken = Arc::new(Mutex::new(taken));
            for _ in 0..THREADS {
                let (dialer, taken, done) = (self.dialer.clone(), Arc::clone(&taken), done.clone());
                let over = Arc::clone(&self.over);
                thread::spawn(move || serve(&dialer, &taken, &done, &over));
            }
            self.outcomes = Some(outcomes);
            requests
        });
        // The threads live as long as this sender.
        let _ = requests.send(ReconnectRequest { client, until_ns });
    }

    /// Where the server is, in words.
    pub fn place(&self) -> String {
        self.dialer.place()
    }

    /// Requests without an outcome yet.
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// A connection that was made, or why it could not be.
    pub fn take(&mut self) -> Option<Outcome> {
        let outcome = self.outcomes.as_ref()?.try_recv().ok()?;
        self.pending -= 1;
        Some(outcome)
    }
}

impl Drop for Replacer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn serve(dialer: &Dialer, requests: &Mutex<Receiver<ReconnectRequest>>, done: &Sender<Outcome>, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        let next = requests.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(request) = next else { return };
        if done.send((request.client, connect(dialer, request.until_ns, over))).is_err() {
            return;
        }
    }
}

fn connect(dialer: &Dialer, until_ns: u64, over: &AtomicBool) -> Result<Connection, Error> {
    let mut pause = PAUSE_FIRST;
    loop {
        match dialer.connect() {
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) if now_ns() >= until_ns || over.load(Ordering::Relaxed) => return Err(error),
            Err(_) => thread::sleep(pause),
            Ok(connection) => return Ok(connection),
        }
        pause = (pause * 2).min(PAUSE_LONGEST);
    }
}
