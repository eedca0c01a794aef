//! Flags by name, turned into values with messages that name the flag.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::flags::nearest;
use crate::login::number;

use super::sql::Columns;

/// The verb's own flags; the last of a name counts.
pub struct Values<'a>(pub Vec<(&'static str, Option<&'a str>)>);

impl Values<'_> {
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(given, _)| *given == name)
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().rev().find(|(given, _)| *given == name);
        found.and_then(|(_, value)| *value)
    }

    pub fn number<T: std::str::FromStr>(&self, name: &str, default: T) -> Result<T, Error> {
        Ok(number(name, self.text(name))?.unwrap_or(default))
    }

    /// A number of at least one.
    pub fn positive(&self, name: &str, default: u64) -> Result<u64, Error> {
        match self.number(name, default)? {
            0 => Err(Error::Usage(format!("--{name}=0: give at least 1"))),
            number => Ok(number),
        }
    }

    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.text(name).map(PathBuf::from)
    }

    /// One of some names.
    pub fn choice<T: Copy>(&self, name: &str, all: &[(&str, T)], default: T) -> Result<T, Error> {
        let Some(text) = self.text(name) else {
            return Ok(default);
        };
        if let Some((_, found)) = all.iter().find(|(known, _)| *known == text) {
            return Ok(*found);
        }
        let names: Vec<&str> = all.iter().map(|(known, _)| *known).collect();
        let hint =
            nearest(text, names.iter().copied()).map_or_else(String::new, |near| format!("; did you mean {near}?"));
        Err(Error::Usage(format!("--{name}={text}: use one of {}{hint}", names.join(", "))))
    }

    /// `3` or `3:1`, the latter with an index on each column.
    pub fn columns(&self, name: &str) -> Result<Columns, Error> {
        const COUNT_MAX: u32 = 1000;
        let text = self.text(name).unwrap_or("1");
        let (count, indexed) = text.split_once(':').unwrap_or((text, "0"));
        let count = number(name, Some(count))?.unwrap_or(1);
        let indexed = number::<u32>(name, Some(indexed))?.unwrap_or(0) > 0;
        if count > COUNT_MAX {
            return Err(Error::Usage(format!("--{name}={text}: at most {COUNT_MAX} columns")));
        }
        Ok(Columns { count, indexed })
    }

    /// Statements given as such or as the name of a file, split at the delimiter.
    pub fn statements(&self, name: &str) -> Result<Vec<String>, Error> {
        let Some(text) = self.text(name) else {
            return Ok(Vec::new());
        };
        let path = Path::new(text);
        let text = if path.is_file() {
            std::fs::read_to_string(path).map_err(|error| Error::File(path.into(), error))?
        } else {
            text.to_owned()
        };
        let delimiter = self.text("delimiter").unwrap_or("\n").replace("\\n", "\n");
        if delimiter.is_empty() {
            return Err(Error::Usage("--delimiter= is empty".into()));
        }
        let pieces = text.split(delimiter.as_str()).map(str::trim);
        Ok(pieces.filter(|piece| !piece.is_empty()).map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_split_at_the_delimiter() {
        let own = vec![("query", Some("a; b ;")), ("delimiter", Some(";"))];
        assert_eq!(Values(own).statements("query").unwrap(), ["a", "b"]);
    }
}
