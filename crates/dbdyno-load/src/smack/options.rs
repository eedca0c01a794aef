//! The flags of `smack` as one checked value.

use std::ops::RangeInclusive;

use crate::distribution::{Distribution, FLAGS as RANDOM, Sampler};
use crate::error::Error;
use crate::flags::{Flag, joined};
use crate::tables::OwnTable;
use crate::values::Values;

use super::query::Load;
use super::row::{Content, Key};

/// Name of the table.
const TABLE: &str = "smack";

/// The server allows rows of 65,535 bytes, what it notes about them included.
const ROW_SIZES: RangeInclusive<usize> = 32..=65_000;

/// Every row takes a bit while DELETEs are counted.
const ROWS_MAX: i64 = 10_000_000_000;

/// The flags.
pub const FLAGS: &[Flag] = &joined::<{ OWN.len() + RANDOM.len() }>(&[OWN, RANDOM]);

const OWN: &[Flag] = &[
    Flag::value("rows", "rows in the table"),
    Flag::value("table-size", "").same_as("rows"),
    Flag::value("row-size", "bytes of a row, its key included: 32 to 65000"),
    Flag::value("key", "primary key: integer is a BIGINT, char a CHAR(25) as Super-Smack's user names"),
    Flag::value("compressible", "percent of a row's content that compresses away"),
    Flag::value("db-ps-mode", "auto: prepared statements; disable: text"),
    Flag::value("engine", "storage engine (the server's default)").short('e'),
    Flag::value("schema", "schema of the table"),
];

/// All options.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Options {
    pub load: Load,
    pub table: OwnTable,
    pub rows: i64,
    pub row_size: usize,
    pub key: Key,
    pub compressible: u8,
    /// Of the keys 1 to `rows`.
    pub sampler: Sampler,
    /// Prepared statements are used.
    pub prepared: bool,
    /// Of the rows that prepare makes.
    pub seed: u64,
}

impl Options {
    /// Reads them.
    ///
    /// # Errors
    /// A value that is none or out of range.
    pub fn read(values: &Values<'_>, load: &str) -> Result<Self, Error> {
        let unknown = |_| Error::Usage(format!("smack has no load {load:?}; loads: {}", Load::NAMES.join(", ")));
        let load = load.parse().map_err(unknown)?;
        let rows = values.within("rows", 90_000, 1..=ROWS_MAX)?;
        let distribution = Distribution::parse(values, Distribution::Uniform)?;
        Ok(Self {
            load,
            table: OwnTable::read(values, "smack", TABLE, "dbdyno_smack")?,
            rows,
            row_size: values.within("row-size", 1024, ROW_SIZES)?,
            key: values.choice("key", &[("integer", Key::Integer), ("char", Key::Char)], Key::Integer)?,
            compressible: values.within("compressible", 50, 0..=100)?,
            sampler: Sampler::new(distribution, 1, rows),
            prepared: values.choice("db-ps-mode", &[("auto", true), ("disable", false)], true)?,
            seed: values.number("seed", 1)?,
        })
    }

    /// Bytes of a row besides its key.
    pub fn content_size(&self) -> usize {
        self.row_size - self.key.bytes()
    }

    /// Content of rows.
    pub fn content(&self) -> Content {
        Content::new(self.content_size(), self.compressible)
    }

    /// The key with `number` as SQL takes it.
    pub fn key_literal(&self, number: i64) -> String {
        let mut key = Vec::new();
        self.key.write(number, true, &mut key);
        String::from_utf8_lossy(&key).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(flags: &[(&'static str, &'static str)], load: &str) -> Result<Options, String> {
        Options::read(&Values::of(flags), load).map_err(|error| error.to_string())
    }

    #[test]
    fn a_row_has_the_size_asked_for_whatever_its_key() {
        for (key, rest) in [("integer", 1016), ("char", 999)] {
            assert_eq!(read(&[("key", key)], "insert").unwrap().content_size(), rest);
        }
    }

    #[test]
    fn values_out_of_range_are_named_with_the_range() {
        let said = |name, value| read(&[(name, value)], "select").unwrap_err();
        assert!(said("row-size", "31").contains("--row-size=31: give 32 to 65000"));
        assert!(said("compressible", "101").contains("0 to 100"));
        assert!(said("rows", "0").contains("--rows=0"));
        assert!(said("rand-type", "zipf").contains("zipfian"));
        assert!(read(&[], "selekt").unwrap_err().contains("insert, select"));
    }
}
