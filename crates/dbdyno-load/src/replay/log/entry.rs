//! The entries of a log, before sense is made of their times, and times as servers write them.

use std::collections::HashMap;

use dbdyno_common::calendar::days_since_1970;

use super::super::not_sent::Occurrences;
use super::text::Text;
use crate::error::Error;

/// Which log it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The slow query log.
    Slow,
    /// The general query log.
    General,
}

/// Most entries of a log.
const ENTRIES_MAX: usize = 10_000_000;

/// Most schemas that a log names.
const SCHEMAS_MAX: usize = 4096;

/// From this number up a connection's number stands for who comes from where, as the log has no numbers.
pub const NUMBERLESS: u64 = 1 << 63;

/// Which of a statement's times a log's time is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// When it came.
    Start,
    /// When it was done.
    End,
}

/// The default schema of what follows, by its place in [`Entries::schemas`]; 0 stands for one that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Within {
    /// That of the session, as it was.
    OfSession,
    /// The schema that the log names with this entry.
    Schema(u16),
}

/// What an entry is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A statement: its place in the log's bytes.
    Statement {
        /// Offset.
        at: u32,
        /// Bytes, without the delimiter.
        length: u32,
        /// Who had it executed.
        by: By,
    },
    /// A session begins.
    Connect,
    /// It begins anew on the same connection: Change user, Reset Connection.
    Renew,
    /// It enters another schema: Init DB.
    Enter,
    /// It ends.
    Quit,
    /// A command without SQL.
    Command,
    /// A statement without its end.
    CutOff,
}

/// Who had a statement executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The client, as text.
    Client,
    /// The client, as a prepared statement; or the server, for the EXECUTE that the session sent before.
    Execute,
    /// A stored routine, a trigger or an event.
    Routine,
    /// A stored routine, a trigger or an event, which its call or the server runs again.
    Call,
}

/// An entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Line of the statement, or of the entry, from 1.
    pub line: u32,
    /// The server's number for the connection.
    pub thread: u64,
    /// As logged.
    pub stamp: Stamp,
    /// Which time that is.
    pub moment: Moment,
    /// How long the statement took, microseconds; 0 where the log does not say.
    pub duration_us: i64,
    /// The default schema of this entry and of the later ones of its session.
    pub schema: Within,
    /// What it is.
    pub what: What,
}

/// What of a log was not taken as it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Lines of no entry, such as the end of one that an older file has.
    pub stray: Occurrences,
    /// Times that none of the servers writes: the entry has that of the one before.
    pub times: Occurrences,
    /// Entries before the first time: they have that.
    pub untimed: Occurrences,
    /// Durations that can't be, as a server writes when its clock steps back: taken as 0.
    pub durations: Occurrences,
}

/// All entries, in the log's order.
#[derive(Debug, Default)]
pub struct Entries {
    /// The entries.
    pub all: Vec<Entry>,
    /// Names of schemas; the first stands for none.
    pub schemas: Vec<Vec<u8>>,
    /// What was not taken as it stands.
    pub odd: Oddities,
    numbers: HashMap<Vec<u8>, u16>,
    /// How many entries at the start have no time yet.
    untimed: usize,
}

impl Entries {
    /// None yet.
    pub fn new() -> Self {
        Self { schemas: vec![Vec::new()], ..Self::default() }
    }

    /// One more; `stamp` is that of the entry, or else of one before.
    ///
    /// # Errors
    /// They are too many.
    pub fn push(&mut self, entry: Entry, stamp: Option<Stamp>, text: &Text<'_>) -> Result<(), Error> {
        if self.all.len() == ENTRIES_MAX {
            return Err(text.error(&format!("more than {ENTRIES_MAX} entries: replay a part of the log")));
        }
        match stamp {
            None => {
                self.untimed += 1;
                self.odd.untimed.at(entry.line);
            }
            Some(stamp) if self.untimed > 0 => {
                // What was written before the first time that the log has is taken to have come then.
                let count = std::mem::take(&mut self.untimed);
                self.all[..count].iter_mut().for_each(|entry| entry.stamp = stamp);
            }
            Some(_) => {}
        }
        self.all.push(Entry { stamp: stamp.unwrap_or(entry.stamp), ..entry });
        Ok(())
    }

    /// Sees that there are entries with times.
    ///
    /// # Errors
    /// There are none.
    pub fn check(&self, text: &Text<'_>) -> Result<(), Error> {
        if self.untimed > 0 {
            return Err(text.error("no entry up to here has a time: is the beginning of the log missing?"));
        }
        Ok(())
    }

    /// The number of a schema; 0 of an empty name.
    ///
    /// # Errors
    /// They are too many.
    pub fn schema(&mut self, name: &[u8], text: &Text<'_>) -> Result<u16, Error> {
        if name.is_empty() {
            return Ok(0);
        }
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        let number = u16::try_from(self.schemas.len()).unwrap_or(u16::MAX);
        if self.schemas.len() >= SCHEMAS_MAX {
            return Err(text.error(&format!("more than {SCHEMAS_MAX} schemas: replay a part of the log")));
        }
        self.schemas.push(name.to_vec());
        self.numbers.insert(name.to_vec(), number);
        Ok(number)
    }
}

/// A schema's name without its backticks.
pub fn unquoted(name: &[u8]) -> Vec<u8> {
    match name {
        [b'`', inner @ .., b'`'] => {
            let mut out = Vec::with_capacity(inner.len());
            let mut bytes = inner.iter().copied().peekable();
            while let Some(byte) = bytes.next() {
                if byte == b'`' {
                    bytes.next_if_eq(&b'`');
                }
                out.push(byte);
            }
            out
        }
        plain => plain.to_vec(),
    }
}

/// A whole number at the start of `text`, after blanks.
pub fn number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&text[..digits]).ok()?.parse().ok()
}

/// What stands behind the last `key` in `line`.
pub fn behind<'a>(line: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let at = line.windows(key.len()).rposition(|part| part == key)?;
    Some(&line[at + key.len()..])
}

/// A second, in the unit of all times of a log.
pub const SECOND_US: i64 = 1_000_000;

/// A time since 1970, microseconds; one in local time without its offset is taken as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Microseconds.
    pub us: i64,
    /// Whether it has microseconds, or is the whole second.
    pub is_exact: bool,
}

/// Digits of a fraction of a second that count; those behind are dropped.
const FRACTION_DIGITS: usize = 6;

/// Reads a time of which nothing else stands in `text`: see [`leading`].
pub fn stamp(text: &[u8]) -> Option<Stamp> {
    let text = text.trim_ascii();
    leading(text).filter(|(_, length)| *length == text.len()).map(|(stamp, _)| stamp)
}

/// Reads the time that `text` begins with, and gives its length.
///
/// These are `2026-11-23T12:59:07.301898Z`, with `+02:00` or nothing in place of Z, `261123 12:58:55`, `700101
/// 0:16:40` and `261123 12:58:55.123456`.
pub fn leading(text: &[u8]) -> Option<(Stamp, usize)> {
    let (day, clock_at) = match text {
        [_, _, _, _, b'-', _, _, b'-', _, _, b'T' | b' ', ..] => {
            (days(digits(&text[..4])?, digits(&text[5..7])?, digits(&text[8..10])?)?, 11)
        }
        [_, _, _, _, _, _, b' ', ..] => {
            // Two digits of the year: of this century up to 69.
            let year = digits(&text[..2])?;
            let year = if year < 70 { 2000 + year } else { 1900 + year };
            let at = if text.get(7) == Some(&b' ') { 8 } else { 7 };
            (days(year, digits(&text[2..4])?, digits(&text[4..6])?)?, at)
        }
        _ => return None,
    };
    let is_iso = text[4] == b'-';
    let hour_digits = if !is_iso && text.get(clock_at + 1) == Some(&b':') { 1 } else { 2 };
    let hour = digits(text.get(clock_at..clock_at + hour_digits)?)?;
    let mut at = clock_at + hour_digits;
    let [b':', _, _, b':', _, _, ..] = text.get(at..)? else { return None };
    let (minute, second) = (digits(&text[at + 1..at + 3])?, digits(&text[at + 4..at + 6])?);
    at += 6;
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (mut us, mut is_exact) = (0, false);
    if text.get(at) == Some(&b'.') {
        let count = text[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let kept = count.min(FRACTION_DIGITS);
        if count > 0 {
            us = digits(&text[at + 1..=at + kept])? * 10_i64.pow((FRACTION_DIGITS - kept) as u32);
            is_exact = true;
        }
        at += 1 + count;
    }
    let mut offset_minutes = 0;
    if is_iso {
        match &text[at..] {
            [b'Z', ..] => at += 1,
            [sign @ (b'+' | b'-'), hours @ ..] if hours.get(2) == Some(&b':') => {
                let size = digits(&hours[..2])? * 60 + digits(hours.get(3..5)?)?;
                offset_minutes = if *sign == b'-' { -size } else { size };
                at += 6;
            }
            _ => {}
        }
    }
    let seconds = day * 86_400 + hour * 3600 + (minute - offset_minutes) * 60 + second;
    Some((Stamp { us: seconds * SECOND_US + us, is_exact }, at))
}

/// A number of digits alone, of which there are few.
fn digits(text: &[u8]) -> Option<i64> {
    let all = text.iter().all(u8::is_ascii_digit) && !text.is_empty();
    all.then(|| text.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
}

/// Days since 1970 of a date.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let days = days_since_1970(year.unsigned_abs(), month.unsigned_abs(), day.unsigned_abs())?;
    i64::try_from(days).ok()
}

/// A duration such as `2.700346`, in microseconds; at most ten years.
pub fn seconds_us(text: &[u8]) -> Option<i64> {
    const LONGEST_S: f64 = 10.0 * 365.0 * 86_400.0;
    let seconds: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (0.0..=LONGEST_S).contains(&seconds).then(|| (seconds * 1e6).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(i64, bool)> {
        stamp(text.as_bytes()).map(|stamp| (stamp.us, stamp.is_exact))
    }

    #[test]
    fn times_are_those_of_date() {
        // By `date -u -d ... +%s`.
        assert_eq!(read("2026-11-23T12:59:07.301898Z"), Some((1_795_438_747_301_898, true)));
        assert_eq!(read("2026-11-23T14:59:07.301898+02:00"), Some((1_795_438_747_301_898, true)));
        assert_eq!(read("2026-11-23T07:29:07.301898-05:30"), Some((1_795_438_747_301_898, true)));
        assert_eq!(read("2024-02-29T00:00:00.5Z"), Some((1_709_164_800_500_000, true)));
        assert_eq!(read("261123 12:58:55"), Some((1_795_438_735_000_000, false)));
        assert_eq!(read("700101  0:16:40"), Some((1_000_000_000, false)));
        assert_eq!(read(" 000301  1:02:03"), Some((951_872_523_000_000, false)));
        assert_eq!(read("261123 12:58:55.123456"), Some((1_795_438_735_123_456, true)));
        assert_eq!(read("261123  1:58:55.5"), Some((1_795_399_135_500_000, true)));
        assert_eq!(read("2026-11-23T12:59:07.301898123Z"), Some((1_795_438_747_301_898, true)));
        assert_eq!(read("2026-11-23 12:59:07"), Some((1_795_438_747_000_000, false)));
        for wrong in [
            "",
            "x",
            "261123",
            "261323 1:00:00",
            "2026-11-23T",
            "2026-11-23T1:2",
            "26112é 1:2:3",
            "2026-11-23T01:02:03+x",
            "261123 25:00:00",
            "99999-01-01T00:00:00Z",
            "261123 12:58:55.123456 x",
            "260105 10:00",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_time_ends_where_the_next_word_begins() {
        let length = |text: &str| leading(text.as_bytes()).map(|(_, length)| length);
        assert_eq!(length("2026-01-05T10:00:00.000300Z123456 Query\tSELECT 1"), Some(27));
        assert_eq!(length("2026-01-05T10:00:00.000300+02:00123456 Query\t"), Some(32));
        assert_eq!(length("260105 10:00:00\t    7 Query\t"), Some(15));
        assert_eq!(length("260105  1:00:00       7 Query   "), Some(15));
    }

    #[test]
    fn durations_are_bounded() {
        assert_eq!(seconds_us(b"2.700346"), Some(2_700_346));
        for wrong in [&b"-1"[..], b"NaN", b"inf", b"1e300", b"", b"\xff"] {
            assert_eq!(seconds_us(wrong), None);
        }
    }
}
