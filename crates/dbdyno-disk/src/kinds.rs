//! Kinds of requests, as every output has them.

use dbdyno_device::Kind;

/// What kinds are called in every output, by their [`index`].
pub const NAMES: [&str; 4] = ["read", "write", "flush", "discard"];

/// Number of a kind, also in the compact format of a trace.
pub fn index(kind: Kind) -> usize {
    match kind {
        Kind::Read => 0,
        Kind::Write => 1,
        Kind::Flush => 2,
        Kind::Discard => 3,
    }
}
