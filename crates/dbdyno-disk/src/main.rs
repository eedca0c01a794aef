//! Emulated disk.
fn main() {}
