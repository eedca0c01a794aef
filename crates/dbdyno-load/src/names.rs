//! Names of schemas, tables and engines: as the user gives them, and as SQL takes them.

use crate::dialect::is_system_schema;
use crate::error::Error;
use crate::values::Values;

/// A name as SQL quotes it.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A name as a text that SQL compares names with. It means the same in every `sql_mode` and character set of a session:
/// what is looked for must be what is dropped.
pub fn text(name: &str) -> String {
    let mut out = "_utf8mb4 ".to_owned();
    put_hex(name.as_bytes(), &mut out);
    out
}

/// Appends `bytes` as a literal that is plain ASCII, as [`crate::protocol::session::Session::execute`] needs it.
pub fn put_hex(bytes: &[u8], out: &mut String) {
    out.push_str("x'");
    put_digits(bytes, out);
    out.push('\'');
}

/// Appends the hexadecimal digits of `bytes`.
pub fn put_digits(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// The schema that the flag `flag` names, if it is given.
///
/// # Errors
/// It is no name, or the server's own.
pub fn schema(values: &Values<'_>, flag: &str, default: &str) -> Result<String, Error> {
    let schema = values.text_or(flag, default);
    if schema.is_empty() || schema.chars().any(char::is_control) {
        return Err(Error::Usage(format!("--{flag}: not the name of a schema")));
    }
    if is_system_schema(schema.as_bytes()) {
        return Err(Error::Usage(format!("--{flag}={schema} belongs to the server")));
    }
    Ok(schema.to_owned())
}

/// The storage engine that `--engine` names; `None` if it names none. It needs no quotes.
///
/// # Errors
/// It can't be the name of one.
pub fn engine(values: &Values<'_>) -> Result<Option<String>, Error> {
    values.text("engine").filter(|name| !name.is_empty()).map(checked_engine).transpose()
}

/// `name` if it can be the name of a storage engine.
///
/// # Errors
/// It can't.
pub fn checked_engine(name: &str) -> Result<String, Error> {
    if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Ok(name.to_owned());
    }
    Err(Error::Usage(format!("--engine={name}: not the name of an engine")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(flag: &'static str, value: &'static str) -> Values<'static> {
        Values::new(vec![(flag, Some(value))])
    }

    #[test]
    fn names_are_checked() {
        let named = |name| schema(&values("schema", name), "schema", "usual").map_err(|error| error.to_string());
        assert_eq!(named("a`b"), Ok("a`b".into()));
        assert_eq!(schema(&Values::new(Vec::new()), "schema", "usual").unwrap(), "usual");
        assert!(named("MySQL").unwrap_err().contains("--schema=MySQL belongs to the server"));
        assert!(named("").is_err() && named("a\nb").is_err());
        let of = |name| engine(&values("engine", name)).map_err(|error| error.to_string());
        assert_eq!((of("MyISAM"), of("")), (Ok(Some("MyISAM".into())), Ok(None)));
        assert!(of("x; DROP").unwrap_err().contains("--engine=x; DROP"));
    }

    #[test]
    fn quotes_hold_anything() {
        assert_eq!(quoted("a`b"), "`a``b`");
        assert_eq!(text("a'\\é"), "_utf8mb4 x'61275cc3a9'");
    }

    #[test]
    fn bytes_are_plain_ascii() {
        let mut out = String::new();
        put_hex(&[0, 0x9f, 0xff], &mut out);
        assert_eq!(out, "x'009fff'");
    }
}
