//! The kinds of statement that slap counts apart.

use crate::statements::Kind;

/// The kinds of statement that are counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// INSERT or REPLACE.
    Insert,
    /// SELECT.
    Select,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
    /// COMMIT; not one of the queries.
    Commit,
    /// Anything else.
    Other,
}

impl Operation {
    /// All of them, by their number.
    pub const ALL: [Self; 6] = [Self::Insert, Self::Select, Self::Update, Self::Delete, Self::Commit, Self::Other];

    /// Their names, in the same order.
    pub const NAMES: [&'static str; 6] = ["insert", "select", "update", "delete", "commit", "other"];

    /// Its name in every output.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// By the first word of `sql`.
    pub fn of(sql: &str) -> Self {
        let word = sql.split_whitespace().next().unwrap_or_default();
        match word.to_ascii_lowercase().as_str() {
            "insert" | "replace" => Self::Insert,
            "select" => Self::Select,
            "update" => Self::Update,
            "delete" => Self::Delete,
            "commit" => Self::Commit,
            _ => Self::Other,
        }
    }

    /// As one of the workload's kinds.
    pub fn kind(self) -> Kind {
        Kind { name: self.name().into(), is_query: self != Self::Commit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_told_by_their_first_word() {
        assert_eq!(Operation::of("  Replace into t"), Operation::Insert);
        assert_eq!(Operation::of("call p()"), Operation::Other);
        for (number, operation) in Operation::ALL.into_iter().enumerate() {
            assert_eq!(operation as usize, number);
        }
    }
}
