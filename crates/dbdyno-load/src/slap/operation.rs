//! The kinds of statement that slap counts apart.

use strum::VariantNames;

use crate::statements::Kind;

/// The kinds of statement that are counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, VariantNames)]
#[strum(serialize_all = "lowercase")]
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
    /// The kinds of all of them, by their number.
    pub fn kinds() -> Vec<Kind> {
        Self::VARIANTS
            .iter()
            .map(|name| if *name == "commit" { Kind::apart(name) } else { Kind::query(name) })
            .collect()
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_told_by_their_first_word() {
        assert_eq!(Operation::of("  Replace into t"), Operation::Insert);
        assert_eq!(Operation::of("call p()"), Operation::Other);
        let kinds = Operation::kinds();
        assert_eq!((kinds.len(), kinds[Operation::Delete as usize].name.as_str()), (6, "delete"));
        assert!(kinds.iter().all(|kind| kind.is_query == (kind.name != "commit")));
    }
}
