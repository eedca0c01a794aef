//! Slow and general query logs.
#![no_main]

use dbdyno_load::replay::log::Log;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(log) = Log::parse("a.log", bytes.to_vec()) else { return };
    for statement in &log.statements {
        assert!(!log.sql(statement).is_empty());
        assert!((statement.session as usize) < log.sessions.len());
        assert!((statement.schema as usize) < log.schemas.len());
        assert!(statement.duration_us >= 0);
    }
});
