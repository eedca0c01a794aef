//! The answer to a statement to prepare.
#![no_main]

use dbdyno_fuzz::{dialect, payloads};
use dbdyno_load::protocol::prepare::PrepareParser;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [first, rest @ ..] = data else { return };
    let mut parser = PrepareParser::new(dialect(*first));
    for payload in payloads(rest) {
        if !matches!(parser.packet(payload, payload.len()), Ok(None)) {
            return;
        }
    }
});
