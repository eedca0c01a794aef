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

/// A client without a connection, and until when it is tried for.
#[derive(Debug, Clone, Copy)]
struct Wish {
    client: usize,
    until_ns: u64,
}

type Outcome = (usize, Result<Connection, Error>);

/// Makes connections; its threads start when the first is wished for.
pub struct Replacer {
    dialer: Dialer,
    wishes: Option<Sender<Wish>>,
    outcomes: Option<Receiver<Outcome>>,
    under_way: usize,
    /// Nobody waits for connections any more.
    over: Arc<AtomicBool>,
}

impl Replacer {
    /// Connections are made by `dialer`.
    pub fn new(dialer: Dialer) -> Self {
        Self { dialer, wishes: None, outcomes: None, under_way: 0, over: Arc::default() }
    }

    /// Asks for a connection; tries until `until_ns`, once at least.
    pub fn wish(&mut self, client: usize, until_ns: u64) {
        self.under_way += 1;
        let wishes = self.wishes.get_or_insert_with(|| {
            let (wishes, taken) = channel();
            let (told, outcomes) = channel();
            let taken = Arc::new(Mutex::new(taken));
            for _ in 0..THREADS {
                let (dialer, taken, told) = (self.dialer.clone(), Arc::clone(&taken), told.clone());
                let over = Arc::clone(&self.over);
                thread::spawn(move || serve(&dialer, &taken, &told, &over));
            }
            self.outcomes = Some(outcomes);
            wishes
        });
        // The threads live as long as this sender.
        let _ = wishes.send(Wish { client, until_ns });
    }

    /// Where the server is, in words.
    pub fn place(&self) -> String {
        self.dialer.place()
    }

    /// How many are under way.
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// A connection that was made, or why it could not be.
    pub fn take(&mut self) -> Option<Outcome> {
        let outcome = self.outcomes.as_ref()?.try_recv().ok()?;
        self.under_way -= 1;
        Some(outcome)
    }
}

impl Drop for Replacer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn serve(dialer: &Dialer, wishes: &Mutex<Receiver<Wish>>, told: &Sender<Outcome>, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        let next = wishes.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(wish) = next else { return };
        if told.send((wish.client, connect(dialer, wish.until_ns, over))).is_err() {
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
