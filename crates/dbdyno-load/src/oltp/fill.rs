//! Makes sysbench's tables and fills them, several at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::error::Error;
use crate::protocol::session::Session;

use super::options::Options;
use super::rows::{BATCH_BYTES, Filler};
use super::stage::Stage;

/// Most connections that fill tables: more only wait for the server.
const SESSIONS_MAX: usize = 64;

/// Makes all tables with their rows and indexes, over as many connections as the load has clients, a table over one at a
/// time. A load that makes up ids finds its tables empty, as rows would take them.
///
/// # Errors
/// The server refuses; the first cause in the order of the tables' connections.
pub fn fill(session: &mut Session, stage: Stage<'_>, options: &Options) -> Result<(), Error> {
    let count = options.clients.min(options.tables.count as usize).clamp(1, SESSIONS_MAX);
    let more = (1..count).map(|_| {
        let mut session = session.another()?;
        stage.enter(&mut session)?;
        Ok(session)
    });
    let mut more = more.collect::<Result<Vec<Session>, Error>>()?;
    let given_up = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        let sessions = std::iter::once(session).chain(&mut more);
        let fillers: Vec<_> = sessions
            .zip(1..)
            .map(|(session, first)| {
                let given_up = &given_up;
                scope.spawn(move || {
                    let mut own = (first..=options.tables.count).step_by(count);
                    let outcome = own.try_for_each(|number| fill_one(session, options, number, given_up));
                    given_up.fetch_or(outcome.is_err(), Ordering::Relaxed);
                    outcome
                })
            })
            .collect();
        let ends = fillers.into_iter().map(|filler| filler.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
        // All are waited for before the first error is looked at.
        ends.collect::<Vec<_>>().into_iter().collect()
    });
    more.into_iter().for_each(Session::quit);
    outcome
}

fn fill_one(session: &mut Session, options: &Options, number: u32, given_up: &AtomicBool) -> Result<(), Error> {
    let tables = &options.tables;
    session.execute(&tables.create(number))?;
    if !options.makes_ids() {
        let mut filler = Filler::new(tables, number, options.distribution, options.seed, BATCH_BYTES);
        let mut statement = Vec::with_capacity(BATCH_BYTES);
        while !given_up.load(Ordering::Relaxed) && filler.write(&mut statement) > 0 {
            session.execute(&String::from_utf8_lossy(&statement))?;
        }
    }
    tables.create_index(number).map_or(Ok(()), |index| session.execute_long(&index))
}
