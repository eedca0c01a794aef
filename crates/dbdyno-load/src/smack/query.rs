//! The loads and the statements they are made of.

use strum::{EnumString, IntoStaticStr, VariantArray, VariantNames};

/// What the clients do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Load {
    /// INSERTs of new keys.
    Insert,
    /// SELECTs.
    Select,
    /// UPDATEs.
    Update,
    /// DELETEs.
    Delete,
    /// UPDATE and SELECT in turn.
    Mixed,
}

/// One statement. The table is that of [`super::options`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// Of a new row.
    Insert,
    /// Of all of a row.
    Select,
    /// Of all of a row but its key.
    Update,
    /// Of a row, there or not.
    Delete,
}

impl Load {
    /// Their names.
    pub const NAMES: &'static [&'static str] = <Self as VariantNames>::VARIANTS;

    /// Its statements: prepared ones are numbered in this order, and a client says them in turn.
    pub fn queries(self) -> &'static [Query] {
        match self {
            Self::Insert => &[Query::Insert],
            Self::Select => &[Query::Select],
            Self::Update => &[Query::Update],
            Self::Delete => &[Query::Delete],
            Self::Mixed => &[Query::Update, Query::Select],
        }
    }

    /// Kinds that are counted apart: one for each of [`Self::queries`], then that of a DELETE in vain.
    pub fn kinds(self) -> &'static [&'static str] {
        match self {
            Self::Insert => &["insert"],
            Self::Select => &["select"],
            Self::Update => &["update"],
            Self::Delete => &["delete", "delete_gone"],
            Self::Mixed => &["update", "select"],
        }
    }
}

impl Query {
    /// As it is prepared.
    pub fn with_parameters(self) -> &'static str {
        match self {
            Self::Insert => "INSERT INTO smack (id, data) VALUES (?, ?)",
            Self::Select => "SELECT * FROM smack WHERE id = ?",
            Self::Update => "UPDATE smack SET data = ? WHERE id = ?",
            Self::Delete => "DELETE FROM smack WHERE id = ?",
        }
    }

    /// As a text with these literals; `content` is for between quotes.
    pub fn parts<'a>(self, key: &'a [u8], content: &'a [u8]) -> [&'a [u8]; 5] {
        match self {
            Self::Insert => [b"INSERT INTO smack (id, data) VALUES (", key, b", _binary'", content, b"')"],
            Self::Select => [b"SELECT * FROM smack WHERE id = ", key, b"", b"", b""],
            Self::Update => [b"UPDATE smack SET data = _binary'", content, b"' WHERE id = ", key, b""],
            Self::Delete => [b"DELETE FROM smack WHERE id = ", key, b"", b"", b""],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_kinds_fit_the_loads() {
        for (load, name) in <Load as VariantArray>::VARIANTS.iter().zip(<Load as VariantNames>::VARIANTS) {
            assert_eq!(<&str>::from(load), *name);
            assert!(load.kinds().len() >= load.queries().len());
        }
    }

    #[test]
    fn a_text_is_the_prepared_statement_with_its_values() {
        for query in [Query::Insert, Query::Select, Query::Update, Query::Delete] {
            let text = String::from_utf8(query.parts(b"?", b"?").concat()).unwrap();
            assert_eq!(text.replace("_binary'?'", "?"), query.with_parameters());
        }
    }
}
