//! How each client of a load connects, and connects anew: in threads of their own, since logging in blocks.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::clock::now_ns;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::protocol::session::{Connection, Session};
use crate::stop::Stop;
use crate::workload::Workload;

/// Threads that log clients in; they end before anything is measured.
const LOGIN_THREADS: usize = 8;

/// Connects clients of one workload.
#[derive(Debug, Clone)]
pub struct Dialer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    endpoint: Endpoint,
    schema: String,
    setup: Vec<String>,
    prepared: Vec<String>,
    stop: Stop,
}

impl Dialer {
    /// For the clients of `workload`.
    pub fn new(endpoint: &Endpoint, workload: &dyn Workload, stop: &Stop) -> Self {
        Self(Arc::new(Inner {
            endpoint: endpoint.clone(),
            schema: workload.schema().to_owned(),
            setup: workload.setup(),
            prepared: workload.prepared(),
            stop: stop.clone(),
        }))
    }

    /// Where the server is, in words.
    pub fn place(&self) -> String {
        self.0.endpoint.place()
    }

    /// One client: logged in, set up, its statements prepared.
    ///
    /// # Errors
    /// One line that names the place, the code and the remedy.
    pub fn connect(&self) -> Result<Connection, Error> {
        self.session().map(Session::into_connection)
    }

    fn session(&self) -> Result<Session, Error> {
        let inner = &*self.0;
        let mut session = Session::connect(&inner.endpoint, Some(&inner.schema), &inner.stop)?;
        for statement in &inner.setup {
            session.execute(statement)?;
        }
        session.prepare_all(&inner.prepared)?;
        Ok(session)
    }

    /// Connects so many clients, several at a time; also gives the server's version text.
    ///
    /// # Errors
    /// As [`Dialer::connect`]; too many for the limit of open files.
    pub fn connect_all(&self, clients: usize) -> Result<(Vec<Connection>, String), Error> {
        allow_files(clients)?;
        let taken = AtomicUsize::new(0);
        let work = || {
            let mut sessions = Vec::new();
            while taken.fetch_add(1, Ordering::Relaxed) < clients {
                match self.session() {
                    Ok(session) => sessions.push(session),
                    Err(error) => {
                        taken.store(clients, Ordering::Relaxed);
                        return Err(error);
                    }
                }
            }
            Ok(sessions)
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..LOGIN_THREADS.min(clients)).map(|_| scope.spawn(work)).collect();
            let mut sessions = Vec::with_capacity(clients);
            for thread in threads {
                match thread.join() {
                    Ok(some) => sessions.extend(some?),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            let version = sessions.first().map_or_else(String::new, |session| session.server_version().to_owned());
            Ok((sessions.into_iter().map(Session::into_connection).collect(), version))
        })
    }
}

/// Raises the limit of open files to what the clients need.
fn allow_files(clients: usize) -> Result<(), Error> {
    // A connection can stand in the table of an io_uring too, which counts apart.
    const OTHER_FILES: u64 = 64;
    let needed = clients as u64 + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    let enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= needed);
    if enough(limit.current) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(needed), maximum: limit.maximum };
    if enough(limit.maximum) && setrlimit(Resource::Nofile, raised).is_ok() {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "{clients} clients need {needed} open files, this process may have {}: raise ulimit -n",
        limit.maximum.unwrap_or(0)
    )))
}

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
