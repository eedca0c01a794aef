//! The flags of `tpcc` as one checked value.

use crate::error::Error;
use crate::flags::Flag;
use crate::run_options::CLIENTS_MAX;
use crate::tables::OwnTable;
use crate::values::Values;

use super::mix::Mix;
use super::schema::TABLES;

/// Terminals of a warehouse (clause 4.2.1).
pub const TERMINALS: i64 = 10;

/// Most warehouses: some 10 TB.
const WAREHOUSES_MAX: i64 = 100_000;

/// Connections that fill the tables, at least.
const FILLERS_MIN: usize = 4;

/// The flags.
pub const FLAGS: &[Flag] = &[
    Flag::value("warehouses", "warehouses, of about 100 MB each"),
    Flag::value("scale", "").same_as("warehouses"),
    Flag::value("mix", "weights of the transactions, or the name of one alone"),
    Flag::value("keying", "on or off: the standard's keying and think times, with 10 clients a warehouse"),
    Flag::value("engine", "storage engine (the server's default)").short('e'),
    Flag::value("schema", "schema of the tables"),
];

/// All options.
#[derive(Debug, Clone)]
pub struct Options {
    /// Schema of the tables.
    pub schema: String,
    /// In the order of [`TABLES`].
    pub tables: Vec<OwnTable>,
    /// How many.
    pub warehouses: i64,
    /// How often each transaction comes.
    pub mix: Mix,
    /// Terminals key and think.
    pub keying: bool,
    /// Of the rows that prepare makes.
    pub seed: u64,
    /// Connections that fill the tables.
    pub fillers: usize,
}

impl Options {
    /// Reads them.
    ///
    /// # Errors
    /// A value that is none or out of range, or flags that contradict each other.
    pub fn read(values: &Values<'_>) -> Result<Self, Error> {
        let table = |columns: &super::schema::Columns| OwnTable::read(values, "tpcc", columns.name, "dbdyno_tpcc");
        let tables = TABLES.iter().map(table).collect::<Result<Vec<_>, _>>()?;
        let clients = values.list("clients", 1, 1, CLIENTS_MAX)?;
        let options = Self {
            schema: tables[0].schema.clone(),
            tables,
            warehouses: values.within("warehouses", 1, 1..=WAREHOUSES_MAX)?,
            mix: Mix::read(values)?,
            keying: values.choice("keying", &[("off", false), ("on", true)], false)?,
            seed: values.number("seed", 1)?,
            fillers: clients.iter().copied().max().unwrap_or(1).max(FILLERS_MIN),
        };
        if options.keying {
            options.check_keying(values, &clients)?;
        }
        Ok(options)
    }

    fn check_keying(&self, values: &Values<'_>, clients: &[usize]) -> Result<(), Error> {
        if let Some(flag) = ["rate", "think-time"].into_iter().find(|flag| values.has(flag)) {
            return Err(Error::Usage(format!("--{flag} and --keying=on: terminals have times of their own; give one")));
        }
        let terminals = self.warehouses * TERMINALS;
        if terminals > CLIENTS_MAX as i64 {
            return Err(Error::Usage(format!(
                "--keying=on with --warehouses={}: more than {CLIENTS_MAX} clients",
                self.warehouses
            )));
        }
        if values.has("clients") && clients.iter().any(|clients| *clients as i64 != terminals) {
            let text =
                format!("--clients with --keying=on: there are {terminals}, 10 for each warehouse; leave it out");
            return Err(Error::Usage(text));
        }
        Ok(())
    }

    /// How many clients there are where that follows from the warehouses.
    pub fn terminals(&self) -> Option<usize> {
        self.keying.then_some((self.warehouses * TERMINALS) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(flags: &[(&'static str, &'static str)]) -> Result<Options, String> {
        Options::read(&Values::of(flags)).map_err(|error| error.to_string())
    }

    #[test]
    fn terminals_come_with_warehouses() {
        assert_eq!(read(&[("warehouses", "3")]).unwrap().terminals(), None);
        let keying = [("warehouses", "3"), ("keying", "on")];
        assert_eq!(read(&keying).unwrap().terminals(), Some(30));
        assert!(read(&[("keying", "on"), ("clients", "10")]).is_ok());
        assert!(read(&[("keying", "on"), ("clients", "8")]).unwrap_err().contains("there are 10"));
        assert!(read(&[("keying", "on"), ("rate", "8")]).unwrap_err().contains("--rate and --keying=on"));
        assert!(read(&[("keying", "on"), ("warehouses", "20000")]).unwrap_err().contains("more than 100000"));
    }

    #[test]
    fn mistakes_name_their_flag() {
        assert!(read(&[("warehouses", "0")]).unwrap_err().contains("--warehouses=0: give 1 to"));
        assert!(read(&[("keying", "yes")]).unwrap_err().contains("--keying=yes: use one of off, on"));
        assert!(read(&[("schema", "mysql")]).unwrap_err().contains("belongs to the server"));
    }
}
