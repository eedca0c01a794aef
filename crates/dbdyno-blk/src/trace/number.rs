//! Numbers of traces, exact to the nanosecond.

/// Sectors that no device has more of: 2^54, which is 8 EiB.
const SECTORS_MOST: u64 = 1 << 54;

/// Digits that always fit into 64 bits.
const DIGITS_QUICK: usize = 19;

/// A decimal number times `scale`, rounded down: `"1.5"` times 10^9 is 1,500,000,000. At most 18 digits behind the point
/// count. Numbers with an exponent, such as `5e-05`, are read with a double's precision.
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
    let found = ahead.checked_mul(scale.into())? + behind * u128::from(scale) / 10_u128.pow(part.len() as u32);
    u64::try_from(found).ok()
}

/// What spreadsheets and scripts write of small or large numbers.
fn with_exponent(text: &str, scale: u64) -> Option<u64> {
    let (digits, _) = text.split_once(['e', 'E'])?;
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let found = text.parse::<f64>().ok()? * scale as f64;
    (0.0..9e18).contains(&found).then_some(found as u64)
}

/// Whether it is a whole number in digits alone.
pub fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// First sector and length in sectors of a range of bytes, which is widened to whole sectors; `None` where no device has it.
pub fn sectors_of(offset_bytes: u64, size_bytes: u64) -> Option<(u64, u32)> {
    let end = offset_bytes.checked_add(size_bytes)?.div_ceil(512);
    let start = offset_bytes / 512;
    let sectors = if size_bytes == 0 { 0 } else { u32::try_from(end - start).ok()? };
    (end <= SECTORS_MOST).then_some((start, sectors))
}
