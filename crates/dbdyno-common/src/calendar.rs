//! Dates as days, for the times that logs and traces have as text.

/// Days since 1970-01-01 in the Gregorian calendar; `None` before 1970, after 9999, and for months or days that no year
/// has.
pub fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March, so that a leap day is a year's last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    Some(year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_date() {
        // By `date -u -d ... +%s`, divided by 86400.
        let days = [(1970, 1, 1), (1999, 12, 31), (2000, 2, 29), (2000, 3, 1), (2026, 11, 29)];
        let expected = [0, 10_956, 11_016, 11_017, 20_786];
        assert_eq!(days.map(|(year, month, day)| days_since_1970(year, month, day)), expected.map(Some));
        assert_eq!([(1969, 12, 31), (2026, 13, 1), (2026, 1, 0)].map(|(y, m, d)| days_since_1970(y, m, d)), [None; 3]);
    }
}
