//! Makes sysbench's tables and fills them.

use crate::error::Error;
use crate::protocol::session::Session;

use super::options::Options;
use super::rows::{BATCH_BYTES, Filler};

/// Makes all tables, with their rows if they are to have some.
///
/// # Errors
/// The server refuses.
pub fn fill(session: &mut Session, options: &Options, with_rows: bool) -> Result<(), Error> {
    options.tables.numbers().try_for_each(|number| fill_one(session, options, number, with_rows))
}

fn fill_one(session: &mut Session, options: &Options, number: u32, with_rows: bool) -> Result<(), Error> {
    let tables = &options.tables;
    session.execute(&tables.create(number))?;
    if with_rows {
        let mut filler = Filler::new(tables, number, options.distribution, options.seed, BATCH_BYTES);
        let mut statement = Vec::with_capacity(BATCH_BYTES);
        while filler.write(&mut statement) > 0 {
            session.execute(&String::from_utf8_lossy(&statement))?;
        }
    }
    tables.create_index(number).map_or(Ok(()), |index| session.execute(&index))
}
