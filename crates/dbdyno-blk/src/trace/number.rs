//! Numbers of traces, exact to the nanosecond.

/// Sectors that no device has more of: 2^54, which is 8 EiB.
const SECTORS_MOST: u64 = 1 << 54;

/// A decimal number times `scale`, rounded down: `"1.5"` times 10^9 is 1,500,000,000. At most 18 digits behind the point.
pub fn scaled(text: &str, scale: u64) -> Option<u64> {
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

/// First sector and length in sectors of a range of bytes, which is widened to whole sectors; `None` where no device has it.
pub fn sectors_of(offset_bytes: u64, size_bytes: u64) -> Option<(u64, u32)> {
    let end = offset_bytes.checked_add(size_bytes)?.div_ceil(512);
    let start = offset_bytes / 512;
    let sectors = if size_bytes == 0 { 0 } else { u32::try_from(end - start).ok()? };
    (end <= SECTORS_MOST).then_some((start, sectors))
}
