//! The values of a row, as the text protocol gives them.

use crate::protocol::packet::take_string;
use crate::protocol::reply::ProtocolError;

use super::super::content::Key;

/// What identifies a row, its first two values.
///
/// # Errors
/// They are no numbers.
pub fn key(row: &mut &[u8]) -> Result<Key, ProtocolError> {
    let (connection, sequence) = (number(row)?, number(row)?);
    // What is out of range was never sent, and stays so.
    Ok(Key { connection: u32::try_from(connection).unwrap_or(u32::MAX), sequence: sequence as u64 })
}

/// The next value, of a BIGINT that is not NULL.
///
/// # Errors
/// It is none.
pub fn number(row: &mut &[u8]) -> Result<i64, ProtocolError> {
    let text = text(row)?.and_then(|text| std::str::from_utf8(text).ok());
    text.and_then(|text| text.parse().ok()).ok_or(ProtocolError("no number where a table of ours has one"))
}

/// The next value; `None` for NULL.
///
/// # Errors
/// There is none.
pub fn text<'a>(row: &mut &'a [u8]) -> Result<Option<&'a [u8]>, ProtocolError> {
    take_string(row).ok_or(ProtocolError("a row cut short"))
}
