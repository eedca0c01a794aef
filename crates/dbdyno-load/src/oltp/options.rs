//! Flags of `oltp` as checked values.

use crate::distribution::Distribution;
use crate::error::Error;
use crate::names;
use crate::run_options::CLIENTS_MAX;
use crate::values::Values;

use super::event::Event;
use super::tables::{Tables, switch};

/// Statements of one kind in an event, at most.
const COUNT_MAX: u32 = 100_000;

/// sysbench's name of a load is one of ours after this.
const PREFIX: &str = "oltp_";

/// Which of sysbench's scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Load {
    ReadOnly,
    ReadWrite,
    WriteOnly,
    PointSelect,
    UpdateIndex,
    UpdateNonIndex,
    Insert,
    Delete,
}

impl Load {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::ReadOnly,
        Self::ReadWrite,
        Self::WriteOnly,
        Self::PointSelect,
        Self::UpdateIndex,
        Self::UpdateNonIndex,
        Self::Insert,
        Self::Delete,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::ReadWrite => "read_write",
            Self::WriteOnly => "write_only",
            Self::PointSelect => "point_select",
            Self::UpdateIndex => "update_index",
            Self::UpdateNonIndex => "update_non_index",
            Self::Insert => "insert",
            Self::Delete => "delete",
        }
    }

    /// The load of that name, with or without sysbench's prefix.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.strip_prefix(PREFIX).unwrap_or(name);
        Self::ALL.into_iter().find(|load| load.name() == name)
    }

    /// Whether its events are transactions.
    pub fn has_transactions(self) -> bool {
        matches!(self, Self::ReadOnly | Self::ReadWrite | Self::WriteOnly)
    }
}

/// How often each statement is in an event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as the flags")]
pub struct Counts {
    pub point_selects: u32,
    pub simple_ranges: u32,
    pub sum_ranges: u32,
    pub order_ranges: u32,
    pub distinct_ranges: u32,
    pub range_selects: bool,
    pub index_updates: u32,
    pub non_index_updates: u32,
    pub delete_inserts: u32,
    pub skip_trx: bool,
}

impl Counts {
    /// Reads them.
    ///
    /// # Errors
    /// A value that is none or too great.
    pub fn read(values: &Values<'_>) -> Result<Self, Error> {
        let count = |name: &str, default| match values.number(name, default)? {
            count @ 0..=COUNT_MAX => Ok(count),
            count => Err(Error::Usage(format!("--{name}={count}: 0 to {COUNT_MAX}"))),
        };
        Ok(Self {
            point_selects: count("point-selects", 10)?,
            simple_ranges: count("simple-ranges", 1)?,
            sum_ranges: count("sum-ranges", 1)?,
            order_ranges: count("order-ranges", 1)?,
            distinct_ranges: count("distinct-ranges", 1)?,
            range_selects: switch(values, "range-selects", true)?,
            index_updates: count("index-updates", 1)?,
            non_index_updates: count("non-index-updates", 1)?,
            delete_inserts: count("delete-inserts", 1)?,
            skip_trx: switch(values, "skip-trx", false)?,
        })
    }
}

/// All that shapes the load and its data.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "named as the flags")]
pub struct Options {
    pub load: Load,
    pub schema: String,
    pub tables: Tables,
    pub event: Event,
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
        let event = Event::new(load, &Counts::read(values)?);
        let event = event.ok_or_else(|| Error::Usage("all counts are 0: the clients have nothing to say".into()))?;
        let reconnect_every = values.number("reconnect-every", 0)?;
        super::flags::refuse_unsupported(values)?;
        Ok(Self {
            load,
            schema: schema(values)?,
            tables: Tables::read(values)?,
            event,
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
