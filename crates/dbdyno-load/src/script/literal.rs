//! Constant values of a script, as SQL and as values of a prepared statement.

use crate::protocol::encoder::Parameter;

/// A constant.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// NULL.
    Null,
    /// A whole number.
    Integer(i64),
    /// A number with a fraction or exponent, as written.
    Decimal(String, f64),
    /// A string.
    Text(String),
}

impl Literal {
    /// A number as written in a script or on a command line.
    pub fn number(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return None;
        }
        if digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().ok().map(Self::Integer);
        }
        let value = text.parse::<f64>().ok().filter(|value| value.is_finite())?;
        Some(Self::Decimal(text.into(), value))
    }

    /// As SQL has it. Without a backslash in it this fits every sql_mode.
    pub fn sql(&self) -> String {
        match self {
            Self::Null => "NULL".into(),
            Self::Integer(value) => value.to_string(),
            Self::Decimal(text, _) => text.clone(),
            Self::Text(text) => quoted(text),
        }
    }

    /// As a value of a prepared statement.
    pub fn parameter(&self) -> Parameter<'_> {
        match self {
            Self::Null => Parameter::Null,
            Self::Integer(value) => Parameter::Integer(*value),
            Self::Decimal(_, value) => Parameter::Double(*value),
            Self::Text(text) => Parameter::Text(text.as_bytes()),
        }
    }
}

/// A string as SQL has it where backslashes escape.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''").replace('\0', "\\0"))
}

/// The content of a quoted string of SQL, where backslashes escape.
pub fn unquoted(sql: &str) -> String {
    let quote = sql.chars().next().unwrap_or('\'');
    let inner = sql.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)).unwrap_or(sql);
    let mut text = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(c) = characters.next() {
        match (c, c == '\\' || c == quote) {
            ('\\', _) => match characters.next() {
                Some('0') => text.push('\0'),
                Some('b') => text.push('\u{8}'),
                Some('n') => text.push('\n'),
                Some('r') => text.push('\r'),
                Some('t') => text.push('\t'),
                Some('Z') => text.push('\u{1a}'),
                // Only LIKE reads these, and there the backslash belongs to them.
                Some(wildcard @ ('%' | '_')) => text.extend(['\\', wildcard]),
                Some(other) => text.push(other),
                None => {}
            },
            // One of two quotes.
            (quote, true) => {
                characters.next();
                text.push(quote);
            }
            (other, false) => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_whole_or_not() {
        assert_eq!(Literal::number("-9223372036854775808"), Some(Literal::Integer(i64::MIN)));
        assert_eq!(Literal::number("007"), Some(Literal::Integer(7)));
        assert_eq!(Literal::number("1.50").unwrap().sql(), "1.50");
        assert_eq!(Literal::number("-.5").unwrap().parameter(), Parameter::Double(-0.5));
        for wrong in ["", "-", "x", "0x1F", "9223372036854775808", "nan", "inf", "1e999", "--1", "1 "] {
            assert_eq!(Literal::number(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn strings_are_escaped_as_mysql_does() {
        assert_eq!(unquoted(r"'it''s\n\\ \'a\' \% \q'"), "it's\n\\ 'a' \\% q");
        assert_eq!(unquoted(r#""say ""hi"" it's""#), r#"say "hi" it's"#);
        assert_eq!(quoted("it's \\ \0"), r"'it''s \\ \0'");
    }

    proptest! {
        #[test]
        fn a_string_survives_quoting(text in "['\"\\\\%_a\u{0}é]{0,12}|.{0,20}") {
            // A backslash before a wildcard stays one, whether it was written once or twice.
            prop_assume!(!text.contains("\\%") && !text.contains("\\_"));
            prop_assert_eq!(unquoted(&quoted(&text)), text);
        }
    }
}
