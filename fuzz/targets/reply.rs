//! Replies of a server.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dbdyno_fuzz::load::reply(data));
