//! Times as servers write them.

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
/// These are `2026-11-23T12:59:07.301898Z`, with `+02:00` or nothing in place of Z, `261123 12:58:55`, `700101  0:16:40` and
/// `261123 12:58:55.123456`.
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

/// Days since 1970-01-01 in the Gregorian calendar: years begin in March, so that a leap day is a year's last.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    Some(year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468)
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
