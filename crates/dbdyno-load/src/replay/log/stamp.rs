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

/// Reads `2026-11-23T12:59:07.301898Z`, with `+02:00` in place of Z, or `261123 12:58:55`, `700101  0:16:40`.
pub fn stamp(text: &[u8]) -> Option<Stamp> {
    let text = std::str::from_utf8(text).ok()?.trim();
    if text.get(10..11) == Some("T") { iso(text) } else { short(text) }
}

/// How many bytes such a time has at the start of `text`, which goes on; `None` where there is none.
pub fn stamp_length(text: &[u8]) -> Option<usize> {
    let end = text.iter().position(|byte| *byte == b'\t')?;
    stamp(&text[..end]).map(|_| end)
}

fn iso(text: &str) -> Option<Stamp> {
    let (date, rest) = text.split_once('T')?;
    let mut parts = date.split('-').map(whole);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() {
        return None;
    }
    let offset_at = rest.find(['Z', '+', '-']).unwrap_or(rest.len());
    let (clock, offset) = rest.split_at(offset_at);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let offset_seconds = match offset {
        "" | "Z" => 0,
        _ => {
            let (hours, minutes) = offset[1..].split_once(':')?;
            let seconds = whole(hours)? * 3600 + whole(minutes)? * 60;
            if offset.starts_with('-') { -seconds } else { seconds }
        }
    };
    let seconds = days(year, month, day)? * 86_400 + seconds_of(clock)? - offset_seconds;
    let us =
        if fraction.is_empty() { 0 } else { whole(fraction)? * 10_i64.pow(6 - u32::try_from(fraction.len()).ok()?) };
    Some(Stamp { us: seconds * SECOND_US + us, is_exact: !fraction.is_empty() })
}

/// Two digits of the year: of this century up to 69.
fn short(text: &str) -> Option<Stamp> {
    let (date, clock) = text.split_once(' ')?;
    if date.len() != 6 || !date.is_ascii() {
        return None;
    }
    let year = whole(&date[..2])?;
    let year = if year < 70 { 2000 + year } else { 1900 + year };
    let seconds = days(year, whole(&date[2..4])?, whole(&date[4..])?)? * 86_400 + seconds_of(clock.trim_start())?;
    Some(Stamp { us: seconds * SECOND_US, is_exact: false })
}

fn seconds_of(clock: &str) -> Option<i64> {
    let mut parts = clock.split(':').map(whole);
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    let fits = hours < 24 && minutes < 60 && seconds <= 60 && parts.next().is_none();
    fits.then_some(hours * 3600 + minutes * 60 + seconds)
}

/// Up to six digits, and nothing else.
fn whole(text: &str) -> Option<i64> {
    let fits = (1..=6).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if fits { text.parse().ok() } else { None }
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
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn durations_are_bounded() {
        assert_eq!(seconds_us(b"2.700346"), Some(2_700_346));
        for wrong in [&b"-1"[..], b"NaN", b"inf", b"1e300", b"", b"\xff"] {
            assert_eq!(seconds_us(wrong), None);
        }
    }
}
