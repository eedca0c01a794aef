//! Numbers of traces, exact to the nanosecond, and in which unit times and places are where format and heading leave
//! that open.
//!
//! A unit that is documented holds unless the trace's beginning makes it absurd. Where none is documented and several
//! are plausible, nothing is guessed: the reader asks.

use std::fmt;

/// Units of time, with what they are called on the command line and in sentences.
pub const TIMES: [(&str, &str, u64); 5] = [
    ("s", "seconds", 1_000_000_000),
    ("ms", "milliseconds", 1_000_000),
    ("us", "microseconds", 1000),
    ("100ns", "steps of 100 ns", 100),
    ("ns", "nanoseconds", 1),
];

/// Units of places and lengths.
pub const LENGTHS: [(&str, &str, u64); 2] = [("sectors", "sectors of 512 bytes", 512), ("bytes", "bytes", 1)];

/// Requests a second that a trace without a documented unit may have.
const USUAL_PER_S: std::ops::RangeInclusive<f64> = 10.0..=1e6;
/// The same where a unit is documented.
const POSSIBLE_PER_S: std::ops::RangeInclusive<f64> = 0.001..=2e9;
/// Seconds from 1970 to 2000 and to 2100.
const EPOCH_S: std::ops::RangeInclusive<f64> = 946_684_800.0..=4_102_444_800.0;
/// Steps of 100 ns from 1601, as Windows counts, to 2000 and to 2100.
const FILETIME: std::ops::RangeInclusive<f64> = 125_911_584e9..=157_469_184e9;

/// What a unit is, and how it came to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// The heading names it.
    Named(u64),
    /// The format has it.
    Fixed(u64),
    /// It is usual, and plausibility may say otherwise.
    Usual(u64),
    /// Nothing says.
    Open,
}

/// What is read of a unit.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitChoice {
    pub scale: u64,
    /// What is to be said of it, unless it is what the format documents.
    pub note: Option<String>,
}

impl UnitChoice {
    fn plainly(scale: u64) -> Self {
        Self { scale, note: None }
    }
}

/// Several units are plausible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Doubt {
    what: String,
    readings: Vec<String>,
    flag: &'static str,
    values: Vec<&'static str>,
    heading: &'static str,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "its {} may be {}; ", self.what, self.readings.join(" or "))?;
        write!(f, "state which with {} {}, or with {}", self.flag, self.values.join(" or "), self.heading)
    }
}

/// A unit by the name that users give.
pub fn scale_of(units: &[(&'static str, &'static str, u64)], name: &str) -> Option<u64> {
    units.iter().find(|(known, ..)| *known == name).map(|(.., scale)| *scale)
}

fn plural(scale: u64) -> &'static str {
    TIMES.iter().find(|(.., known)| *known == scale).map_or("", |(_, plural, _)| plural)
}

/// Times at the beginning of a trace, as they stand there.
#[derive(Debug, Default)]
pub struct Times {
    values: Vec<f64>,
    has_point: bool,
}

impl Times {
    /// Takes one; what is no number is left to the reader of lines.
    pub fn take(&mut self, cell: &str) {
        if let Some(value) = cell.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0) {
            self.values.push(value);
            self.has_point |= !is_whole(cell);
        }
    }

    /// The unit; `usual` is what the format documents, and `whole_least` how many requests a second whole numbers of it
    /// have at the least; what else writes the format writes `others`.
    pub fn unit(&self, usual: Option<u64>, whole_least: f64, others: &[u64]) -> Result<UnitChoice, Doubt> {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let Some(middle) = sorted.get(sorted.len() / 2).copied() else {
            return Ok(UnitChoice::plainly(usual.unwrap_or(1)));
        };
        let rate = |scale| per_s(&sorted, scale);
        let choice = |scale: u64, why: String| UnitChoice {
            scale,
            note: Some(format!("times are read as {}, {why}; choose another unit with --time-unit", plural(scale))),
        };
        if let Some((scale, since)) = since_an_epoch(middle, usual, rate) {
            let is_usual = usual == Some(scale);
            return Ok(if is_usual {
                UnitChoice::plainly(scale)
            } else {
                choice(scale, format!("counted since {since}"))
            });
        }
        let Some(any) = rate(1) else {
            // One time alone has the same distance to itself in every unit.
            return match usual.or(self.has_point.then_some(TIMES[0].2)) {
                Some(scale) => Ok(UnitChoice::plainly(scale)),
                None if sorted.len() < 2 => Ok(UnitChoice::plainly(1)),
                None => Err(self.doubt(&[TIMES[0].2, TIMES[1].2, TIMES[2].2, TIMES[4].2], rate)),
            };
        };
        let expected = usual.or(self.has_point.then_some(TIMES[0].2));
        let least = if self.has_point { *POSSIBLE_PER_S.start() } else { whole_least };
        let possible = |scale: &u64| (least..=*POSSIBLE_PER_S.end()).contains(&(any / *scale as f64));
        if let Some(scale) = expected.filter(possible) {
            let plainly = usual.is_some();
            return Ok(if plainly {
                UnitChoice::plainly(scale)
            } else {
                choice(scale, "because they have a decimal point".to_owned())
            });
        }
        let plausible = |among: &[u64]| -> Vec<u64> {
            let fits = |scale: &u64| rate(*scale).is_some_and(|per_s| USUAL_PER_S.contains(&per_s));
            among.iter().copied().filter(|scale| Some(*scale) != expected && fits(scale)).collect()
        };
        let mut units = plausible(others);
        if units.is_empty() {
            units = plausible(&[TIMES[0].2, TIMES[1].2, TIMES[2].2, TIMES[4].2]);
        }
        match (units[..].first(), expected) {
            (Some(&scale), _) if units.len() == 1 => {
                let why = expected.map_or_else(
                    || format!("because no other unit gives a plausible rate ({} a second)", rounded(rate(scale))),
                    |expected| {
                        let would = rounded(rate(expected));
                        format!("because the format's {} would mean {would} requests a second", plural(expected))
                    },
                );
                Ok(choice(scale, why))
            }
            (None, Some(scale)) => Ok(UnitChoice::plainly(scale)),
            (None, None) => Err(self.doubt(&[TIMES[0].2, TIMES[1].2, TIMES[2].2, TIMES[4].2], rate)),
            (Some(_), _) => Err(self.doubt(&units, rate)),
        }
    }

    fn doubt(&self, scales: &[u64], rate: impl Fn(u64) -> Option<f64>) -> Doubt {
        let named = |scale: &u64| TIMES.iter().find(|(.., known)| known == scale);
        let reading = |scale: &u64| {
            let per_s =
                rate(*scale).map_or_else(String::new, |per_s| format!(" ({} requests a second)", rounded(Some(per_s))));
            format!("{}{per_s}", plural(*scale))
        };
        Doubt {
            what: if self.has_point { "times".to_owned() } else { "times, which are whole numbers,".to_owned() },
            readings: scales.iter().map(reading).collect(),
            flag: "--time-unit",
            values: scales.iter().filter_map(named).map(|(name, ..)| *name).collect(),
            heading: "a heading such as time_us",
        }
    }
}

/// Requests a second, by most of them, if the times were in units of so many nanoseconds.
fn per_s(sorted: &[f64], scale: u64) -> Option<f64> {
    let edge = sorted.len() / 20;
    let (first, last) = (sorted.get(edge)?, sorted.get(sorted.len() - 1 - edge)?);
    let span_s = (last - first) * scale as f64 / 1e9;
    (span_s > 0.0).then(|| (sorted.len() - 1 - 2 * edge) as f64 / span_s)
}

fn is_whole(cell: &str) -> bool {
    cell.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number of requests a second to three digits.
fn rounded(per_s: Option<f64>) -> String {
    let per_s = per_s.unwrap_or(0.0);
    if per_s >= 100.0 {
        let whole = (per_s.round() as u64).to_string();
        let mut grouped = String::new();
        for (place, digit) in whole.chars().enumerate() {
            if place > 0 && (whole.len() - place).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        grouped
    } else {
        let digits = (2 - per_s.max(1e-9).log10().floor() as i32).clamp(0, 9) as usize;
        let text = format!("{per_s:.digits$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    }
}

/// The unit of times that count from 1970 or 1601, where the distances between them don't say otherwise.
fn since_an_epoch(middle: f64, usual: Option<u64>, rate: impl Fn(u64) -> Option<f64>) -> Option<(u64, &'static str)> {
    let possible = |scale| usual == Some(scale) || rate(scale).is_none_or(|per_s| POSSIBLE_PER_S.contains(&per_s));
    if FILETIME.contains(&middle) && possible(100) {
        return Some((100, "1601, as Windows does"));
    }
    let since_1970 = |scale: u64| EPOCH_S.contains(&(middle * scale as f64 / 1e9)) && possible(scale);
    TIMES
        .iter()
        .map(|(.., scale)| *scale)
        .find(|scale| *scale != 100 && since_1970(*scale))
        .map(|scale| (scale, "1970"))
}

/// Lengths and places at the beginning of a trace, as they stand there.
#[derive(Debug, Default)]
pub struct Lengths {
    lengths: Vec<u64>,
    places: Vec<u64>,
}

impl Lengths {
    /// Takes those of a request; a flush has none.
    pub fn take(&mut self, place: &str, length: &str) {
        let whole = |cell: &str| scaled(cell, 1);
        if let (Some(place), Some(length)) = (whole(place), whole(length).filter(|length| *length > 0)) {
            self.places.push(place);
            self.lengths.push(length);
        }
    }

    /// Sectors or bytes, of which `usual` is documented.
    pub fn unit(&self, usual: u64) -> Result<UnitChoice, Doubt> {
        let (Some(least), Some(most)) = (self.lengths.iter().min().copied(), self.lengths.iter().max().copied()) else {
            return Ok(UnitChoice::plainly(usual));
        };
        let of_sectors = |value: &u64| value.is_multiple_of(512);
        let fits_bytes = self.lengths.iter().all(of_sectors) && self.places.iter().all(of_sectors);
        let choice = |scale: u64, why: &str| {
            let (_, plural, _) = LENGTHS[usize::from(scale == 1)];
            let note =
                format!("places and lengths are read as {plural}, {why}; choose another unit with --length-unit");
            UnitChoice { scale, note: Some(note) }
        };
        match (usual, fits_bytes) {
            (512, true) if most >= LARGE_BYTES => Ok(choice(1, "because all are whole sectors in bytes")),
            (512, true) => Err(Doubt {
                what: "places and lengths".to_owned(),
                readings: vec![
                    format!("sectors (requests of up to {} KiB)", most / 2),
                    format!("bytes (up to {most})"),
                ],
                flag: "--length-unit",
                values: vec!["sectors", "bytes"],
                heading: "a heading such as sector,sectors",
            }),
            (1, false)
                if least < 512
                    && most <= LARGE_SECTORS
                    && self.lengths.iter().all(|length| length.is_multiple_of(8)) =>
            {
                Ok(choice(512, "because bytes would be fractions of sectors"))
            }
            _ => Ok(UnitChoice::plainly(usual)),
        }
    }
}

/// A length in bytes that is usual, and would be 2 MiB in sectors.
const LARGE_BYTES: u64 = 4096;
/// A length in sectors that is large: 32 MiB.
const LARGE_SECTORS: u64 = 65_536;

/// Sectors that no device has more of: 2^54, which is 8 EiB.
const SECTORS_MOST: u64 = 1 << 54;

/// Digits that always fit into 64 bits.
const DIGITS_QUICK: usize = 19;

/// A decimal number times `scale`, rounded down: `"1.5"` times 10^9 is 1,500,000,000. At most 18 digits behind the
/// point count. Numbers with an exponent, such as `5e-05`, are read with a double's precision.
pub fn scaled(text: &str, scale: u64) -> Option<u64> {
    quick(text.as_bytes(), scale).or_else(|| exact(text, scale)).or_else(|| with_exponent(text, scale))
}

/// The same for what 64 bits hold, which nearly every number of a trace is.
fn quick(text: &[u8], scale: u64) -> Option<u64> {
    if text.is_empty() || text.len() > DIGITS_QUICK {
        return None;
    }
    let (mut number, mut point) = (0_u64, None);
    for (place, byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' => number = number * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() && text.len() > 1 => point = Some(place),
            _ => return None,
        }
    }
    let Some(point) = point else { return number.checked_mul(scale) };
    let divisor = 10_u64.pow((text.len() - point - 1) as u32);
    if divisor == scale { Some(number) } else { Some(number.checked_mul(scale)? / divisor) }
}

fn exact(text: &str, scale: u64) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if !(whole.len() + part.len() > 0 && whole.bytes().chain(part.bytes()).all(|byte| byte.is_ascii_digit())) {
        return None;
    }
    let part = &part[..part.len().min(18)];
    let ahead: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let behind: u128 = if part.is_empty() { 0 } else { part.parse().ok()? };
    let value = ahead.checked_mul(scale.into())? + behind * u128::from(scale) / 10_u128.pow(part.len() as u32);
    u64::try_from(value).ok()
}

/// What spreadsheets and scripts write of small or large numbers.
fn with_exponent(text: &str, scale: u64) -> Option<u64> {
    let (digits, _) = text.split_once(['e', 'E'])?;
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let value = text.parse::<f64>().ok()? * scale as f64;
    (0.0..9e18).contains(&value).then_some(value as u64)
}

/// Whether it is a whole number in digits alone.
pub fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// First sector and length in sectors of a range of bytes, which is widened to whole sectors; `None` where no device
/// has it.
pub fn sectors_of(offset_bytes: u64, size_bytes: u64) -> Option<(u64, u32)> {
    let end = offset_bytes.checked_add(size_bytes)?.div_ceil(512);
    let start = offset_bytes / 512;
    let sectors = if size_bytes == 0 { 0 } else { u32::try_from(end - start).ok()? };
    (end <= SECTORS_MOST).then_some((start, sectors))
}
