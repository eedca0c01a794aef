//! How each client of a load connects.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::protocol::connection::Connection;
use crate::protocol::session::Session;
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
