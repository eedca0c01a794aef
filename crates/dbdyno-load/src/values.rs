//! Flags by name, turned into values with messages that name the flag.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dbdyno_common::bounded;
use dbdyno_common::similar::did_you_mean;

use crate::error::Error;

/// Longest file of statements.
const STATEMENTS_BYTES_MAX: u64 = 64 << 20;

/// Flags under their canonical names; the last of a name counts.
pub struct Values<'a> {
    flags: Vec<(&'static str, Option<&'a str>)>,
    /// What was asked for with which default.
    defaults: RefCell<BTreeMap<String, String>>,
}

/// A number as a flag's value.
///
/// # Errors
/// It is none, or out of range; names the flag.
pub fn number<T: std::str::FromStr>(name: &str, text: Option<&str>) -> Result<Option<T>, Error> {
    let Some(text) = text else {
        return Ok(None);
    };
    text.trim()
        .parse()
        .map(Some)
        .map_err(|_| Error::Usage(format!("--{name}={text}: not a number that this flag takes")))
}

/// A duration: a number of seconds, or one with the unit `us`, `ms`, `s`, `m` or `h`.
///
/// # Errors
/// It is none, is negative or longer than ten years; names the flag.
pub fn duration(name: &str, text: &str) -> Result<Duration, Error> {
    const LONGEST_S: f64 = 10.0 * 365.0 * 86_400.0;
    let text = text.trim();
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let scale = match unit {
        "us" => Some(1e-6),
        "ms" => Some(1e-3),
        "" | "s" => Some(1.0),
        "m" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    };
    let seconds = number.trim().parse::<f64>().ok().zip(scale).map(|(number, scale)| number * scale);
    match seconds {
        Some(seconds @ 0.0..=LONGEST_S) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(Error::Usage(format!("--{name}={text}: not a duration such as 10, 500ms, 2m or 1h"))),
    }
}

impl<'a> Values<'a> {
    /// These flags.
    pub fn new(flags: Vec<(&'static str, Option<&'a str>)>) -> Self {
        Self { flags, defaults: RefCell::default() }
    }

    /// Flags as a test writes them.
    #[cfg(test)]
    pub fn of(flags: &[(&'static str, &'a str)]) -> Self {
        Self::new(flags.iter().map(|(name, value)| (*name, Some(*value))).collect())
    }

    /// All values of a flag, in the order given.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.flags.iter().filter(move |(flag, _)| *flag == name).filter_map(|(_, value)| *value)
    }

    /// The defaults of all flags that were read so far: they are stated where a flag is read, and nowhere else.
    pub fn defaults(&self) -> BTreeMap<String, String> {
        self.defaults.borrow().clone()
    }

    fn note_default(&self, name: &str, default: impl Display) {
        self.defaults.borrow_mut().insert(name.to_owned(), default.to_string());
    }

    /// Whether the flag was given.
    pub fn has(&self, name: &str) -> bool {
        self.flags.iter().any(|(flag, _)| *flag == name)
    }

    /// Its value as text.
    pub fn text(&self, name: &str) -> Option<&str> {
        let last = self.flags.iter().rev().find(|(flag, _)| *flag == name);
        last.and_then(|(_, value)| *value)
    }

    /// Its value as text.
    pub fn text_or<'t>(&'t self, name: &str, default: &'t str) -> &'t str {
        self.note_default(name, default);
        self.text(name).unwrap_or(default)
    }

    /// Its value as a number.
    ///
    /// # Errors
    /// It is none.
    pub fn number<T: std::str::FromStr + Display>(&self, name: &str, default: T) -> Result<T, Error> {
        self.note_default(name, &default);
        Ok(number(name, self.text(name))?.unwrap_or(default))
    }

    /// A number of at least one.
    ///
    /// # Errors
    /// It is less, or none.
    pub fn positive(&self, name: &str, default: u64) -> Result<u64, Error> {
        match self.number(name, default)? {
            0 => Err(Error::Usage(format!("--{name}=0: give at least 1"))),
            number => Ok(number),
        }
    }

    /// A number within a range.
    ///
    /// # Errors
    /// It is outside, or none.
    pub fn within<T>(&self, name: &str, default: T, range: RangeInclusive<T>) -> Result<T, Error>
    where
        T: std::str::FromStr + PartialOrd + Display,
    {
        let number = self.number(name, default)?;
        if range.contains(&number) {
            return Ok(number);
        }
        Err(Error::Usage(format!("--{name}={number}: give {} to {}", range.start(), range.end())))
    }

    /// Its value as a path.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.text(name).map(PathBuf::from)
    }

    /// One of some names.
    ///
    /// # Errors
    /// It is none of them; says which there are.
    pub fn choice<T: Copy + PartialEq>(&self, name: &str, all: &[(&str, T)], default: T) -> Result<T, Error> {
        if let Some((usual, _)) = all.iter().find(|(_, value)| *value == default) {
            self.note_default(name, usual);
        }
        let Some(text) = self.text(name) else {
            return Ok(default);
        };
        if let Some((_, value)) = all.iter().find(|(known, _)| *known == text) {
            return Ok(*value);
        }
        let names: Vec<&str> = all.iter().map(|(known, _)| *known).collect();
        let hint = did_you_mean(text, names.iter().copied());
        Err(Error::Usage(format!("--{name}={text}: use one of {}{hint}", names.join(", "))))
    }

    /// A duration; see [`duration`].
    ///
    /// # Errors
    /// It is none.
    pub fn duration(&self, name: &str, default: Duration) -> Result<Duration, Error> {
        self.note_default(name, default.as_secs_f64());
        self.text(name).map_or(Ok(default), |text| duration(name, text))
    }

    /// Numbers between commas, each within `least..=most`.
    ///
    /// # Errors
    /// One that is none or out of range.
    pub fn list<T>(&self, name: &str, default: T, least: T, most: T) -> Result<Vec<T>, Error>
    where
        T: std::str::FromStr + PartialOrd + Copy + Display,
    {
        self.note_default(name, default);
        let Some(text) = self.text(name) else {
            return Ok(vec![default]);
        };
        let numbers = text.split(',').map(|part| match number::<T>(name, Some(part))? {
            Some(value) if value >= least && value <= most => Ok(value),
            _ => Err(Error::Usage(format!("--{name}={text}: {least} to {most} each"))),
        });
        numbers.collect()
    }

    /// Statements given as such or as the name of a file, split at the delimiter.
    ///
    /// # Errors
    /// A file that cannot be read, an empty delimiter.
    pub fn statements(&self, name: &str) -> Result<Vec<String>, Error> {
        let Some(text) = self.text(name) else {
            return Ok(Vec::new());
        };
        let path = Path::new(text);
        let text = if path.is_file() {
            bounded::read_text(path, STATEMENTS_BYTES_MAX).map_err(|error| Error::File(path.into(), error))?
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
    fn durations_have_units() {
        let parse = |text| duration("time", text).map_err(|error| error.to_string());
        assert_eq!(parse("10"), Ok(Duration::from_secs(10)));
        assert_eq!(parse("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "-1", "ms", "1x", "nan", "inf", "1e300"] {
            assert!(parse(wrong).unwrap_err().contains("--time="), "{wrong}");
        }
    }

    #[test]
    fn a_range_includes_its_ends() {
        let within = |text| Values::new(vec![("rows", Some(text))]).within("rows", 5, 1..=9);
        assert_eq!((within("1").unwrap(), within("9").unwrap()), (1, 9));
        assert!(within("10").unwrap_err().to_string().contains("--rows=10: give 1 to 9"));
        assert_eq!(Values::new(Vec::new()).within("rows", 5, 1..=9).unwrap(), 5);
    }

    #[test]
    fn lists_keep_their_bounds() {
        let list = |text| Values::new(vec![("clients", Some(text))]).list("clients", 1, 1, 9);
        assert_eq!(list("1,9").unwrap(), [1, 9]);
        assert!(list("1,10").unwrap_err().to_string().contains("1 to 9 each"));
        assert!(list("1,,2").is_err());
    }

    #[test]
    fn statements_are_split_at_the_delimiter() {
        let own = vec![("query", Some("a; b ;")), ("delimiter", Some(";"))];
        assert_eq!(Values::new(own).statements("query").unwrap(), ["a", "b"]);
    }
}
