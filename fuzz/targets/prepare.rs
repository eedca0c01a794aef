//! The answer to a statement to prepare.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dbdyno_fuzz::load::prepare(data));
