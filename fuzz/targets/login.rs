//! A greeting and what follows it.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dbdyno_fuzz::load::login(data));
