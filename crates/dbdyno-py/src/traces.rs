//! What is in a trace.

use std::fs::File;
use std::io::{BufRead, BufReader};

use dbdyno_blk::trace::{Contents, ReadOptions, Trace};

/// How much is read at once.
const BUFFER_BYTES: usize = 1 << 18;

/// What is asked of a trace, by the names that users give.
pub struct TraceNames<'a> {
    pub format: Option<&'a str>,
    pub time_unit: Option<&'a str>,
    pub length_unit: Option<&'a str>,
}

/// Contents as JSON; an error is a sentence that begins with the file, or with what is asked.
pub fn contents(files: &[String], asked: &TraceNames<'_>, go_on: &mut dyn FnMut() -> bool) -> Result<String, String> {
    let all = files.join(", ");
    let named = |error: &dyn std::fmt::Display| format!("{all}: {error}");
    let ask =
        ReadOptions::default().by_names(asked.format, asked.time_unit, asked.length_unit).map_err(|(_, said)| said)?;
    let open = |path: &String| -> Result<Box<dyn BufRead>, String> {
        let file = File::open(path).map_err(|error| format!("{path}: {error}"))?;
        Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, file)))
    };
    let opened = files.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let trace = Trace::open(opened, ask).map_err(|error| named(&error))?;
    let found = Contents::of(trace, go_on).map_err(|error| named(&error))?;
    serde_json::to_string(&found).map_err(|error| named(&error))
}
