//! The loads, and how often each statement is in an event of theirs.

use strum::{EnumString, IntoStaticStr, VariantNames};

use crate::error::Error;
use crate::values::Values;

use super::tables::switch;

/// Statements of one kind in an event, at most.
const COUNT_MAX: u32 = 100_000;

/// Values or ranges of one statement, at most: a server takes 65,535 parameters, and a range has two.
const LISTED_MAX: u32 = 32_000;

/// sysbench's name of a load is one of ours after this.
const PREFIX: &str = "oltp_";

/// Which of sysbench's scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
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
    SelectRandomPoints,
    SelectRandomRanges,
}

impl Load {
    /// The load of that name, with or without sysbench's prefix.
    pub fn named(name: &str) -> Option<Self> {
        name.strip_prefix(PREFIX).unwrap_or(name).parse().ok()
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
    pub lists: Lists,
}

/// What a statement of `select_random_points` or `select_random_ranges` lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lists {
    /// Values of the indexed column.
    pub points: u32,
    /// Ranges of them.
    pub ranges: u32,
    /// How far a range goes from its first value.
    pub delta: u32,
}

impl Lists {
    /// Reads them.
    ///
    /// # Errors
    /// A value that is none or too great.
    fn read(values: &Values<'_>) -> Result<Self, Error> {
        Ok(Self {
            points: values.within("random-points", 10, 1..=LISTED_MAX)?,
            ranges: values.within("number-of-ranges", 10, 1..=LISTED_MAX)?,
            delta: values.within("delta", 5, 0..=COUNT_MAX)?,
        })
    }
}

impl Counts {
    /// Reads them.
    ///
    /// # Errors
    /// A value that is none or too great.
    pub fn read(values: &Values<'_>) -> Result<Self, Error> {
        let count = |name: &str, default| values.within(name, default, 0..=COUNT_MAX);
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
            lists: Lists::read(values)?,
        })
    }
}
