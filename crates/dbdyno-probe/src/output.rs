//! What is written: JSON, a series as CSV, and single requests as CSV.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};

use crate::cli::Outputs;
use crate::error::ProbeError;
use crate::figures::{Figures, SLICE_NS};
use crate::requests::Completed;

/// Columns of the series, behind the time.
const COLUMNS: [&str; 6] =
    ["requests_per_second", "queue_ms", "device_ms", "seek_MB", "sorted_run_requests", "device_depth"];

/// Prints to standard output.
pub fn print(text: &str) -> Result<(), ProbeError> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(ProbeError::Announce)
}

impl Outputs {
    /// Writes the figures and, if it was asked for, the series.
    pub fn write(&self, json: &Value, figures: &Figures) -> Result<(), ProbeError> {
        if let Some(path) = &self.series {
            write(path, &series_csv(figures))?;
        }
        write(&self.json, &format!("{json:#}\n"))
    }
}

/// Writes a whole text, to standard output if the file is `-`.
fn write(path: &Path, text: &str) -> Result<(), ProbeError> {
    if path == Path::new("-") { print(text) } else { std::fs::write(path, text).map_err(ProbeError::at(path)) }
}

fn rows(figures: &Figures) -> impl Iterator<Item = (u64, [Option<f64>; 6])> {
    figures.slices().map(|(end_ns, sums)| {
        let (issued, [queue, device, seek, run, depth]) = sums.row();
        let rate = issued as f64 * 1e9 / SLICE_NS as f64;
        (end_ns, [Some(rate), queue, device, seek.map(|bytes| bytes / 1e6), run, depth])
    })
}

/// The series, a row for each tenth of a second; a mean of nothing is an empty cell.
fn series_csv(figures: &Figures) -> String {
    let mut text = format!("t_ns,{}\n", COLUMNS.join(","));
    for (end_ns, cells) in rows(figures) {
        let cells = cells.map(|cell| cell.map_or(String::new(), |value| format!("{value:.6}")));
        // Writing to a string can't fail.
        let _ = writeln!(text, "{end_ns},{}", cells.join(","));
    }
    text
}

/// The series by column; a mean of nothing is null.
pub fn series_json(figures: &Figures) -> Value {
    let rows: Vec<_> = rows(figures).collect();
    let mut columns = json!({"t_ns": rows.iter().map(|(end_ns, _)| end_ns).collect::<Vec<_>>()});
    for (place, name) in COLUMNS.into_iter().enumerate() {
        columns[name] = rows.iter().map(|(_, cells)| json!(cells[place])).collect();
    }
    columns
}

/// A file with a line for each request that was done.
#[derive(Debug)]
pub struct RequestFile {
    to: BufWriter<File>,
}

impl RequestFile {
    pub fn create(path: &Path) -> Result<Self, ProbeError> {
        let mut to = BufWriter::with_capacity(1 << 20, File::create(path).map_err(ProbeError::at(path))?);
        let columns = b"queued_ns,issued_ns,completed_ns,lba,size_bytes,device_depth,kind,error\n";
        to.write_all(columns).map_err(ProbeError::at(path))?;
        Ok(Self { to })
    }

    /// One more line; when it was queued is left empty where that was not seen.
    pub fn line(&mut self, done: &Completed) -> std::io::Result<()> {
        let request = &done.issued;
        let queued = request.queued_ns.map_or(String::new(), |ns| ns.to_string());
        let error = u8::from(done.failed);
        let (kind, depth) = (request.kind.word(), request.depth);
        writeln!(
            self.to,
            "{queued},{},{},{},{},{depth},{kind},{error}",
            request.at_ns, done.at_ns, request.sector, request.bytes
        )
    }

    pub fn finish(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}
