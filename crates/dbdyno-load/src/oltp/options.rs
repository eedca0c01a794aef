//! Flags of `oltp` as checked values.

use crate::distribution::Distribution;
use crate::error::Error;
use crate::names;
use crate::run_options::CLIENTS_MAX;
use crate::values::Values;

use super::event::Event;
use super::load::{Counts, Lists, Load};
use super::tables::Tables;

/// All that shapes the load and its data.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "named as the flags")]
pub struct Options {
    pub load: Load,
    pub schema: String,
    pub tables: Tables,
    pub event: Event,
    pub lists: Lists,
    pub range_size: i64,
    pub distribution: Distribution,
    pub seed: u64,
    /// Statements are prepared on the server.
    pub prepared: bool,
    /// A client takes a new connection after so many events.
    pub reconnect_every: Option<u64>,
    /// Most connections of a run.
    pub clients: usize,
}

impl Options {
    /// Reads them.
    ///
    /// # Errors
    /// A load that is none, a value that is none, or flags of sysbench that cannot be honoured.
    pub fn read(values: &Values<'_>, load: &str) -> Result<Self, Error> {
        let load = Load::named(load).ok_or_else(|| Error::Usage(format!("{load}: no load of oltp; see --help")))?;
        let counts = Counts::read(values)?;
        let event = Event::new(load, &counts);
        let event = event.ok_or_else(|| Error::Usage("all counts are 0: the clients have nothing to send".into()))?;
        let reconnect_every = values.number("reconnect-every", 0)?;
        super::flags::refuse_unsupported(values)?;
        Ok(Self {
            load,
            schema: schema(values)?,
            tables: Tables::read(values)?,
            event,
            lists: counts.lists,
            range_size: i64::try_from(values.positive("range-size", 100)?).unwrap_or(i64::MAX),
            distribution: Distribution::parse(values, Distribution::SPECIAL)?,
            seed: values.number("seed", 1)?,
            prepared: values.choice("db-ps-mode", &[("auto", true), ("disable", false)], true)?,
            reconnect_every: (reconnect_every > 0).then_some(reconnect_every),
            clients: values.list("clients", 1, 1, CLIENTS_MAX)?.into_iter().max().unwrap_or(1),
        })
    }

    /// Whether a run needs rows that are there before.
    pub fn needs_rows(&self) -> bool {
        self.load != Load::Insert
    }

    /// Whether new rows get ids of ours, which must not be taken.
    pub fn makes_ids(&self) -> bool {
        self.load == Load::Insert && !self.tables.auto_inc
    }
}

/// The schema of the tables.
///
/// # Errors
/// It is no name, or the server's own.
pub fn schema(values: &Values<'_>) -> Result<String, Error> {
    names::schema(values, "schema", "sbtest")
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
