//! What is in a trace.

use std::fs::File;
use std::io::{BufRead, BufReader};

use dbdyno_blk::trace::{Ask, Contents, Format, Trace};

/// How much is read at once.
const BUFFER_BYTES: usize = 1 << 18;

/// Contents as JSON; an error is a sentence that begins with the file.
pub fn contents(files: &[String], format: Option<&str>, go_on: &mut dyn FnMut() -> bool) -> Result<String, String> {
    let all = files.join(", ");
    let named = |error: &dyn std::fmt::Display| format!("{all}: {error}");
    let format = match format {
        None => None,
        Some(name) => Some(Format::by_name(name).ok_or_else(|| {
            let known = Format::ALL.map(|(name, _)| name).join(", ");
            format!("no format of traces is called {name:?}; there are {known}")
        })?),
    };
    let open = |path: &String| -> Result<Box<dyn BufRead>, String> {
        let file = File::open(path).map_err(|error| format!("{path}: {error}"))?;
        Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, file)))
    };
    let opened = files.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let trace = Trace::open(opened, Ask { format, ..Ask::default() }).map_err(|error| named(&error))?;
    let found = Contents::of(trace, go_on).map_err(|error| named(&error))?;
    serde_json::to_string(&found).map_err(|error| named(&error))
}
