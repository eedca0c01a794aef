//! How drives are named: `hdd-15k`, `my-disk.toml`, `ebs-io1(iops=20000)`, `raid1(hdd-15k, 2)`.
//!
//! What stands in parentheses is separated by commas: `key=value` replaces a number of the drive file; the arrays
//! `raid0`, `raid1` and `raid10` take a member's name, how many of it, and perhaps the stripe's size first. Names nest:
//! `raid0(ebs-gp2(volume_gib=500), 4, 256KiB)`.

use std::path::Path;

use toml::{Table, Value};

/// A name taken apart.
#[derive(Debug, PartialEq)]
pub(crate) struct DriveName<'a> {
    pub base: &'a str,
    /// Arguments without a key.
    pub plain: Vec<&'a str>,
    pub overrides: Table,
}

impl<'a> DriveName<'a> {
    /// Takes a name apart; the error goes on after "the drive name ...".
    pub(crate) fn parse(name: &'a str) -> Result<Self, String> {
        let name = name.trim();
        // A folder may be called anything.
        if is_path(name) {
            return Ok(Self { base: name, plain: Vec::new(), overrides: Table::new() });
        }
        let Some((base, rest)) = name.split_once('(') else {
            return match name.find(')') {
                Some(_) => Err("has a ) without a (".into()),
                None => Ok(Self { base: name, plain: Vec::new(), overrides: Table::new() }),
            };
        };
        let Some(inside) = rest.strip_suffix(')') else { return Err("does not end with the ) of its (".into()) };
        let (mut plain, mut overrides) = (Vec::new(), Table::new());
        for argument in arguments(inside)? {
            let key_ends = argument.find(['=', '(']).filter(|at| argument.as_bytes()[*at] == b'=');
            if let Some(at) = key_ends {
                let (key, text) = (argument[..at].trim(), argument[at + 1..].trim());
                if overrides.insert(key.to_owned(), value(text)).is_some() {
                    return Err(format!("gives {key} twice"));
                }
            } else {
                plain.push(argument);
            }
        }
        Ok(Self { base: base.trim(), plain, overrides })
    }

    /// The `[raid]` section that an array's name stands for, or `None` if it is not the name of an array.
    pub(crate) fn array(&self) -> Option<Result<Table, String>> {
        let level = match self.base {
            "raid0" => 0,
            "raid1" => 1,
            "raid10" => 10,
            other => {
                let level = other.strip_prefix("raid").filter(|level| level.parse::<u32>().is_ok());
                return level.map(|_| Err("is no array that can be: there are raid0, raid1 and raid10".into()));
            }
        };
        Some(self.array_of(level))
    }

    fn array_of(&self, level: i64) -> Result<Table, String> {
        let form =
            || format!("is not of the form {}(MEMBER, COUNT) or {}(MEMBER, COUNT, STRIPE)", self.base, self.base);
        let (member, count, stripe) = match self.plain[..] {
            [member, count] => (member, count, None),
            [member, count, stripe] => (member, count, Some(stripe)),
            _ => return Err(form()),
        };
        let count = count.parse::<usize>().ok().filter(|count| *count <= 64).ok_or_else(form)?;
        let mut raid = Table::new();
        raid.insert("level".into(), level.into());
        raid.insert("members".into(), vec![member; count].into());
        if let Some(stripe) = stripe {
            raid.insert("stripe_bytes".into(), size(stripe).ok_or_else(form)?.into());
        }
        raid.extend(self.overrides.clone());
        Ok(raid)
    }
}

/// Whether a name is the path of a drive file.
pub(crate) fn is_path(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

/// The arguments between the commas that stand in no inner parentheses.
fn arguments(inside: &str) -> Result<Vec<&str>, String> {
    let (mut depth, mut start, mut found) = (0_usize, 0, Vec::new());
    for (at, character) in inside.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1).ok_or("has a ) without a (")?,
            ',' if depth == 0 => {
                found.push(&inside[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err("has a ( without a )".into());
    }
    found.push(&inside[start..]);
    let found: Vec<&str> = found.into_iter().map(str::trim).collect();
    if found.iter().any(|argument| argument.is_empty()) {
        return Err("has an empty argument".into());
    }
    Ok(found)
}

/// A number, true or false, a size such as 256KiB, or else a word.
fn value(text: &str) -> Value {
    let as_toml = format!("value = {text}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
    as_toml.or_else(|| size(text).map(Value::from)).unwrap_or_else(|| text.into())
}

/// Bytes of a size such as `64KiB`, `1 MB` or `4096`.
fn size(text: &str) -> Option<i64> {
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let unit: i64 = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1000,
        "mb" => 1000 * 1000,
        "gb" => 1000 * 1000 * 1000,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        _ => return None,
    };
    text[..digits].parse::<i64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_apart() {
        let name = DriveName::parse("ebs-io1(iops=20000, merge=false,span = whole)").unwrap();
        assert_eq!(name.base, "ebs-io1");
        assert_eq!(name.overrides["iops"], 20000.into());
        assert_eq!(name.overrides["merge"], false.into());
        assert_eq!(name.overrides["span"], "whole".into());
        assert_eq!(DriveName::parse("a (b).toml").unwrap().base, "a (b).toml");
    }

    #[test]
    fn an_array_is_a_section() {
        let name = DriveName::parse("raid0(ebs-gp2(volume_gib=500,iops_min=1), 4, 256KiB, write_cache_bytes=1GiB)");
        let raid = name.unwrap().array().unwrap().unwrap();
        assert_eq!(raid["members"], vec!["ebs-gp2(volume_gib=500,iops_min=1)"; 4].into());
        assert_eq!(raid["stripe_bytes"], (256 << 10).into());
        assert_eq!(raid["write_cache_bytes"], (1 << 30).into());
    }

    #[test]
    fn what_does_not_come_apart_is_refused() {
        for (name, said) in [
            ("a(b", "does not end"),
            ("a)", "without a ("),
            ("a((b)", "without a )"),
            ("a(b,)", "empty"),
            ("a(x=1,x=2)", "x twice"),
        ] {
            let error = DriveName::parse(name).unwrap_err();
            assert!(error.contains(said), "{name}: {error}");
        }
        for name in ["raid1(hdd-15k)", "raid1(hdd-15k,two)", "raid0(hdd-15k,2,huge)", "raid1"] {
            let error = DriveName::parse(name).unwrap().array().unwrap().unwrap_err();
            assert!(error.contains("(MEMBER, COUNT"), "{name}: {error}");
        }
    }
}
