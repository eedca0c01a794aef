//! Slow and general query logs.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dbdyno_fuzz::load::replay_log(data));
