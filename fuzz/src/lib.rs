//! The checks of all parsers of others' bytes, for libFuzzer (`targets/`) and for the search on stable Rust
//! (`crates/*/tests/fuzz.rs`).

pub mod blk;
pub mod load;
