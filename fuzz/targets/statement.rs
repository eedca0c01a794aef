//! Statements of a log: what they do.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dbdyno_fuzz::load::statement(data));
