//! Sends the statements, one after the other, on a thread and a connection of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::clock::now_ns;
use crate::error::Error;
use crate::protocol::session::Session;

use super::super::content::Key;
use super::super::cuts::Cuts;
use super::super::log::{Log, Pen};
use super::super::record::{End, Line, Record};
use super::steps::Step;

/// Between two statements: without a pause DDL would be most of what the server does.
const PAUSE: Duration = Duration::from_millis(10);

/// What sends.
pub struct Runner {
    session: Session,
    schema: String,
    engine: String,
    pen: Option<Pen>,
    cuts: Option<Arc<Cuts>>,
    log: Option<Arc<Log>>,
}

/// A runner at work; it stops when this goes.
pub struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Runner {
    /// Over a connection of its own.
    pub fn new(
        session: Session,
        (schema, engine): (&str, &str),
        log: Option<&Arc<Log>>,
        cuts: Option<&Arc<Cuts>>,
    ) -> Self {
        Self {
            session,
            schema: schema.into(),
            engine: engine.into(),
            pen: log.map(Pen::new),
            cuts: cuts.cloned(),
            log: log.cloned(),
        }
    }

    /// Begins.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn start(self) -> Result<Running, Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let thread = thread::Builder::new().name("ddl".into()).spawn(move || self.work(&asked));
        let thread = thread.map_err(|error| Error::Failed(format!("cannot start a thread for DDL: {error}")))?;
        Ok(Running { stop, thread: Some(thread) })
    }

    fn work(mut self, stop: &AtomicBool) {
        for number in 1.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            if !self.send(number) {
                return;
            }
            thread::park_timeout(PAUSE);
        }
        self.session.quit();
    }

    /// Sends one statement; false at the end.
    fn send(&mut self, number: u64) -> bool {
        let step = Step::of(number);
        let sql = step.sql(&self.schema, &self.engine);
        let invoke_ns = now_ns();
        let answer = self.session.execute(&sql);
        let end = match &answer {
            Ok(()) => End::Acked(now_ns()),
            Err(Error::Statement { error, .. }) if !error.ends_session() => End::Refused,
            Err(_) => End::Unanswered,
        };
        if let Some(pen) = &mut self.pen {
            pen.write(Line::Ddl(Record { key: Key { connection: 0, sequence: number }, invoke_ns, end }));
        }
        let cut = match &self.cuts {
            Some(cuts) if step.is_ddl() => match end {
                End::Acked(now_ns) => cuts.ddl_acked(now_ns),
                _ => Ok(()),
            },
            _ => Ok(()),
        };
        let trouble = match (answer, cut) {
            (Ok(()), Ok(())) => return true,
            (Ok(()), Err(why)) => why,
            // The clients of the load say what has become of the server.
            (Err(_), _) if end == End::Unanswered => return false,
            (Err(error), _) => error.to_string(),
        };
        if let Some(log) = &self.log {
            log.fail(std::io::Error::other(trouble));
        }
        false
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}
