//! What `verify` prints, and the JSON that it writes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::error::Error;
use crate::text::shown;

use super::super::verdict::{Counts, Example};
use super::scan::Balances;
use super::tables::TableState;

/// All that was found.
pub struct Report {
    /// Transactions.
    pub counts: Counts,
    /// The accounts.
    pub balances: Balances,
    /// Whether the ledger, its index and the transfers could be read to their ends.
    pub complete: bool,
    /// Each table.
    pub tables: Vec<TableState>,
    /// Some transactions that are not as they should be.
    pub examples: Vec<Example>,
    /// What took how long.
    pub seconds: BTreeMap<&'static str, f64>,
}

impl Report {
    fn json(&self) -> Result<Value, serde_json::Error> {
        let mut counts = self.counts.clone();
        if !self.complete {
            // What could not be read is not lost by that.
            (counts.lost, counts.holes, counts.torn) = (0, 0, 0);
            (counts.oldest_lost_ack_ns, counts.index_differences) = (None, 0);
        }
        let mut value = serde_json::to_value(&counts)?;
        value["balance_off"] = json!(self.balances == Balances::Off);
        value["complete"] = json!(self.complete);
        value["tables"] = json!(self.tables);
        value["examples"] = json!(self.examples().collect::<Vec<_>>());
        value["seconds"] = json!(self.seconds);
        Ok(value)
    }

    /// Of what can be judged.
    fn examples(&self) -> impl Iterator<Item = &Example> {
        self.examples.iter().filter(|example| self.complete || matches!(example.what, "ghost" | "wrong"))
    }

    /// Writes it as JSON.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let failed = |error: std::io::Error| Error::File(path.into(), error);
        let value = self.json().map_err(|error| failed(error.into()))?;
        fs::write(path, format!("{value:#}\n")).map_err(failed)
    }

    /// For people.
    pub fn text(&self) -> String {
        let Counts { acked, unknown, refused, kept, lost, holes, ghost, torn, wrong, index_differences, .. } =
            self.counts;
        let mut text = format!("{acked} acknowledged, {unknown} unknown, {refused} refused\n");
        // Writing to a string cannot fail.
        let _ = if self.complete {
            writeln!(
                text,
                "kept {kept}, lost {lost} ({holes} of them with a younger one kept), ghost {ghost}, torn {torn}, \
                 wrong {wrong}; index and table differ in {index_differences}"
            )
        } else {
            writeln!(
                text,
                "a table could not be read to its end: what is lost is not known; ghost {ghost}, wrong {wrong}"
            )
        };
        let _ = match self.balances {
            Balances::Right => Ok(()),
            Balances::Off => writeln!(text, "the balances are not what the transfers make of them"),
            Balances::Unknown => writeln!(text, "the balances could not be read"),
        };
        for TableState { table, text: said, .. } in self.tables.iter().filter(|state| !state.ok) {
            let _ = writeln!(text, "table {table}: {}", shown(said));
        }
        for Example { connection, sequence, text: said, .. } in self.examples() {
            let _ = writeln!(text, "  transaction {sequence} of connection {connection} {said}");
        }
        text
    }
}
