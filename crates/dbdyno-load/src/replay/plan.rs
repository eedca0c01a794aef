//! What is replayed of a log.

use crate::error::Error;
use crate::protocol::session::Session;
use crate::text::shown;

use super::lanes::Lane;
use super::log::Log;
use super::not_sent::NotSent;

/// A log with what is sent of it.
pub struct Replay {
    /// The file's name, without its folder.
    pub name: String,
    /// All that was read.
    pub log: Log,
    /// What each connection sends.
    pub lanes: Vec<Lane>,
    /// What is not sent.
    pub not_sent: NotSent,
    /// Sessions of which something is sent.
    pub sessions: usize,
    /// Start of the first statement that is sent, microseconds since 1970.
    pub first_us: i64,
    /// Each statement runs in the schema that it was logged in.
    pub follows_schemas: bool,
}

impl Replay {
    /// Sees that the server has the schemas that the log's statements were sent to.
    ///
    /// # Errors
    /// One is not there.
    pub fn find_schemas(&self, session: &mut Session) -> Result<(), Error> {
        let there = session.values("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")?;
        let sent = self.lanes.iter().flat_map(|lane| &lane.sent);
        let statements = sent.map(|sent| &self.log.statements[sent.number as usize]);
        let lacking = statements.filter(|one| one.schema != 0).find(|one| {
            let name = String::from_utf8_lossy(&self.log.schemas[usize::from(one.schema)]);
            !there.iter().any(|there| there.eq_ignore_ascii_case(&name))
        });
        let Some(lacking) = lacking else { return Ok(()) };
        let schema = shown(&String::from_utf8_lossy(&self.log.schemas[usize::from(lacking.schema)]));
        Err(Error::Usage(format!(
            "{}:{}: the server has no schema {schema}, in which this statement ran: make it and its tables first",
            self.name, lacking.line
        )))
    }
}
