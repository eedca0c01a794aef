//! Option files.
#![no_main]

use dbdyno_load::option_file::{Line, lines};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for line in lines(text) {
        if let Line::Option(name, value) = line {
            assert!(!name.is_empty() && !value.contains('\n'));
        }
    }
});
