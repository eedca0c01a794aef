//! Makes sysbench's tables and fills them, several at once.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;
use crate::fill::share_out;
use crate::protocol::session::Session;

use super::options::Options;
use super::rows::{BATCH_BYTES, Filler};
use super::stage::Stage;

/// Makes all tables with their rows and indexes, over as many connections as the load has clients, a table over one at a
/// time. A load that makes up ids finds its tables empty, as rows would take them.
///
/// # Errors
/// The server refuses.
pub fn fill(session: &mut Session, stage: Stage<'_>, options: &Options) -> Result<(), Error> {
    let tables = options.tables.count;
    let sessions = options.clients.min(tables as usize);
    let enter = |session: &mut Session| stage.enter(session);
    share_out(session, sessions, tables.into(), enter, |session, table, given_up| {
        fill_one(session, options, table as u32 + 1, given_up)
    })
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
