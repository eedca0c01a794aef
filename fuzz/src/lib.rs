//! How the bytes of a fuzzer become what a server says.

use dbdyno_load::protocol::reply::Dialect;

/// The dialect that a first byte chooses.
pub fn dialect(byte: u8) -> Dialect {
    match byte % 3 {
        0 => Dialect::Eof,
        1 => Dialect::Ok,
        _ => Dialect::CachedMetadata,
    }
}

/// Payloads, each behind its length in two bytes; the last may be cut short.
pub fn payloads(mut data: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let ([low, high], rest) = data.split_first_chunk()?;
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        let (payload, rest) = rest.split_at(length.min(rest.len()));
        data = rest;
        Some(payload)
    })
}
