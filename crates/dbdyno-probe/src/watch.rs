//! One trace of a block device, from start to end. Its recording has every event as a line of text, in `blkparse`'s
//! default format with one space between columns.
//!
//! ```text
//! 7,0 1 4 0.000013512 15288 Q WS 4096 + 8 [dd]
//! ```
//!
//! Device, processor, number, seconds since the recording began, process, action, what, sector + length [name]. The
//! lines before the first say what was recorded; how many events were lost is filled in there at the end.
//!
//! Cannot: say whose request an issue or a completion is: the process there is whichever ran.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dbdyno_common::results::{BlockTrace, Recorded};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::cli::{BlockArgs, window};
use crate::error::ProbeError;
use crate::figures::Figures;
use crate::host::now_ns;
use crate::output::{self, RequestFile};
use crate::requests::{Happened, Requests};
use crate::tracefs::event::{Event, Step};
use crate::tracefs::instance::{Device, Instance, Reader};

/// How often the buffers are emptied: 8 MiB hold what 400,000 requests a second write in four times this.
const EVERY: Duration = Duration::from_millis(50);

/// A trace that runs, or has run.
struct Watch {
    instance: Option<Instance>,
    reader: Reader,
    seen: Observers,
    device: Device,
}

/// What has become of the events so far.
struct Observers {
    in_flight: Requests,
    figures: Figures,
    recording: Option<Recording>,
    requests: Option<RequestFile>,
    /// Why single requests can't be written any more.
    failed: Option<std::io::Error>,
}

impl Observers {
    fn take(&mut self, event: &Event) {
        if let Some(recording) = &mut self.recording {
            recording.take(event);
        }
        match self.in_flight.take(event) {
            Some(Happened::Issued(issued)) => self.figures.issued(&issued),
            Some(Happened::Completed(done)) => {
                self.figures.completed(&done);
                if let (Some(file), None) = (&mut self.requests, &self.failed) {
                    self.failed = file.line(&done).err();
                }
            }
            Some(Happened::FlushOnly) => self.figures.counts().flushes_asked += 1,
            Some(Happened::Unmatched) => self.figures.counts().unmatched += 1,
            None => {}
        }
    }
}

impl Watch {
    fn start(args: &BlockArgs) -> Result<Self, ProbeError> {
        let device = Device::find(&args.device)?;
        let requests = args.requests.as_deref().map(RequestFile::create).transpose()?;
        let name = args.instance.clone().unwrap_or_else(|| format!("dbdyno-{}", std::process::id()));
        let merges = args.record.is_some();
        let instance = Instance::new(args.tracefs.as_deref(), &name, &device, args.buffer_bytes, merges)?;
        let reader = Reader::new(&instance)?;
        let began_s = clock_gettime(ClockId::Realtime).tv_sec as u64;
        let create = |path| Recording::create(path, args.record_bytes, &device, now_ns(), began_s);
        let recording = args.record.as_deref().map(create).transpose()?;
        instance.trace(true)?;
        let seen = Observers {
            in_flight: Requests::default(),
            figures: Figures::default(),
            recording,
            requests,
            failed: None,
        };
        Ok(Self { instance: Some(instance), reader, seen, device })
    }

    /// Takes what the kernel has written; all of it at the end.
    fn drain(&mut self, now_ns: u64) -> Result<(), ProbeError> {
        let Some(instance) = &self.instance else { return Ok(()) };
        let seen = &mut self.seen;
        self.reader.drain(instance, now_ns, |event| seen.take(event))
    }

    /// Ends the trace; the instance goes.
    fn stop(&mut self) -> Result<(), ProbeError> {
        let Some(instance) = &self.instance else { return Ok(()) };
        instance.trace(false)?;
        self.drain(u64::MAX)?;
        if let Some(instance) = &self.instance {
            let lost = instance.lost()?;
            self.seen.figures.counts().lost = lost;
            if let Some(recording) = &mut self.seen.recording {
                recording.finish(lost);
            }
        }
        self.reader.close();
        self.instance = None;
        match (&mut self.seen.requests, self.seen.failed.take()) {
            (_, Some(error)) => Err(ProbeError::NoTrace(format!("requests can't be written: {error}"))),
            (Some(file), None) => {
                file.finish().map_err(|error| ProbeError::NoTrace(format!("requests can't be written: {error}")))
            }
            (None, None) => Ok(()),
        }
    }

    fn json(&self, window_ns: Option<(u64, u64)>) -> Value {
        json!(BlockTrace {
            source: Some("block layer".into()),
            device: Some(self.device.name.clone()),
            cpu_seconds: Some(seconds(ClockId::ProcessCPUTime)),
            recorded: self.seen.recording.as_ref().map(Recording::figures),
            ..self.seen.figures.figures(window_ns, self.seen.in_flight.open())
        })
    }
}

/// `dbdyno-probe block`.
pub fn block(args: &BlockArgs) -> Result<(), ProbeError> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ended))
            .map_err(|error| ProbeError::NoTrace(format!("signals can't be caught: {error}")))?;
    }
    let mut watch = Watch::start(args)?;
    if args.control {
        output::print(&format!("{}\n", json!({"tracing": watch.device.name})))?;
        return steered(&mut watch, &ended);
    }
    let end = args.lasting.map(|lasting| seconds(ClockId::Monotonic) + lasting.as_secs_f64());
    while !ended.load(Ordering::Relaxed) && end.is_none_or(|end| seconds(ClockId::Monotonic) < end) {
        wait(None)?;
        watch.drain(now_ns())?;
    }
    watch.stop()?;
    args.outputs.write(&watch.json(None), &watch.seen.figures)
}

/// Does what lines on standard input ask for, until it ends.
fn steered(watch: &mut Watch, ended: &AtomicBool) -> Result<(), ProbeError> {
    let mut lines = BufReader::with_capacity(4096, std::io::stdin());
    let mut line = String::new();
    while !ended.load(Ordering::Relaxed) {
        let has_request = !lines.buffer().is_empty() || wait(Some(std::io::stdin().as_fd()))?;
        watch.drain(now_ns())?;
        if !has_request {
            continue;
        }
        line.clear();
        if lines.read_line(&mut line).map_err(ProbeError::Announce)? == 0 {
            break;
        }
        let answer = answered(watch, line.trim());
        output::print(&format!("{}\n", answer.unwrap_or_else(|error| json!({"error": error.to_string()}))))?;
    }
    watch.stop()
}

fn answered(watch: &mut Watch, line: &str) -> Result<Value, ProbeError> {
    match line.split_once(' ').unwrap_or((line, "")) {
        ("stop", "") => {
            watch.stop()?;
            Ok(json!({"stopped": true}))
        }
        ("summary", "") => Ok(json!({"figures": watch.json(None), "series": output::series_json(&watch.seen.figures)})),
        ("summary", interval) => {
            let figures = watch.json(Some(window(interval).map_err(ProbeError::Usage)?));
            Ok(json!({"figures": figures, "series": output::series_json(&watch.seen.figures)}))
        }
        ("recorded", "") => Ok(json!(watch.seen.recording.as_ref().map(Recording::figures))),
        ("figures", interval) => Ok(watch.json(Some(window(interval).map_err(ProbeError::Usage)?))),
        _ => Err(ProbeError::Usage(format!(
            "there is no command {line:?}; there are stop, summary, figures and recorded"
        ))),
    }
}

/// Sleeps until the buffers are due; says whether there is something to read from a file before.
fn wait(input: Option<BorrowedFd<'_>>) -> Result<bool, ProbeError> {
    let pause = Timespec { tv_sec: 0, tv_nsec: i64::from(EVERY.subsec_nanos()) };
    let mut watched: Vec<_> = input.iter().map(|file| PollFd::from_borrowed_fd(*file, PollFlags::IN)).collect();
    match poll(&mut watched, Some(&pause)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(ProbeError::Announce(error.into())),
    }
}

fn seconds(clock: ClockId) -> f64 {
    let now = clock_gettime(clock);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Text that waits to be written.
const BUFFER_BYTES: usize = 1 << 18;
/// Longer than any line, and than what is written at the end.
const LINE_BYTES: usize = 256;
const LOST_IN_HEADER: &str = "# lost_events: ";
const LOST_WIDTH: usize = 60;

/// A file that is being written.
#[derive(Debug)]
pub struct Recording {
    to: File,
    text: Vec<u8>,
    device: String,
    start_sector: u64,
    began_ns: u64,
    latest_ns: u64,
    lost_at: u64,
    bytes_max: u64,
    bytes: u64,
    events: u64,
    full: bool,
    failed: Option<io::Error>,
}

impl Recording {
    /// A new file of `bytes_max` at most; `wall_s` is the time since 1970 in seconds. An existing file is an error.
    pub fn create(
        path: &Path,
        bytes_max: u64,
        device: &Device,
        began_ns: u64,
        wall_s: u64,
    ) -> Result<Self, ProbeError> {
        let to = File::options().write(true).create_new(true).open(path).map_err(ProbeError::at(path))?;
        let mut text = Vec::with_capacity(BUFFER_BYTES + LINE_BYTES);
        let (name, number, sectors) = (&device.name, &device.number, device.sectors);
        // Writing to memory can't fail.
        let _ = writeln!(text, "# block trace by dbdyno-probe, in blkparse's format; times are seconds since it began");
        let _ = writeln!(text, "# device: {name} {number}, {sectors} sectors of 512 bytes");
        let _ = writeln!(text, "# began: {wall_s} s since 1970, {began_ns} ns of CLOCK_MONOTONIC");
        let lost_at = text.len() as u64;
        let _ = writeln!(text, "{LOST_IN_HEADER}{:LOST_WIDTH$}", "unknown, the recording was cut off");
        let bytes = text.len() as u64;
        Ok(Self {
            to,
            text,
            device: number.clone(),
            start_sector: device.start_sector(),
            began_ns,
            latest_ns: began_ns,
            lost_at,
            bytes_max,
            bytes,
            events: 0,
            full: false,
            failed: None,
        })
    }

    /// One more event, unless the file is full or could not be written.
    pub fn take(&mut self, event: &Event) {
        let Some(action) = action(event.step) else { return };
        if self.full || self.failed.is_some() || event.at_ns < self.began_ns {
            return;
        }
        if self.bytes + 2 * LINE_BYTES as u64 > self.bytes_max {
            self.full = true;
            return;
        }
        let before = self.text.len();
        self.events += 1;
        self.latest_ns = event.at_ns;
        self.line(event, action);
        self.bytes += (self.text.len() - before) as u64;
        if self.text.len() >= BUFFER_BYTES {
            self.flush();
        }
    }

    fn line(&mut self, event: &Event, action: &[u8]) {
        let since_ns = event.at_ns - self.began_ns;
        let sector = if event.sectors == 0 { 0 } else { event.sector.saturating_sub(self.start_sector) };
        let text = &mut self.text;
        text.extend_from_slice(self.device.as_bytes());
        for number in [u64::from(event.processor), self.events, since_ns / 1_000_000_000] {
            text.push(b' ');
            put(text, number, 1);
        }
        text.push(b'.');
        put(text, since_ns % 1_000_000_000, 9);
        text.push(b' ');
        put(text, event.process.into(), 1);
        text.extend_from_slice(action);
        text.extend_from_slice(up_to_zero(&event.letters));
        text.push(b' ');
        put(text, sector, 1);
        text.extend_from_slice(b" + ");
        put(text, event.sectors.into(), 1);
        text.extend_from_slice(b" [");
        if event.step == Step::Complete {
            text.push(if event.failed { b'1' } else { b'0' });
        } else {
            // What a process calls itself may hold anything; a line must stay one.
            text.extend(up_to_zero(&event.name).iter().map(|&byte| if byte.is_ascii_graphic() { byte } else { b'?' }));
        }
        text.extend_from_slice(b"]\n");
    }

    fn flush(&mut self) {
        if self.failed.is_none() {
            self.failed = self.to.write_all(&self.text).err();
        }
        self.text.clear();
    }

    /// Writes what waits, and how many events were lost.
    pub fn finish(&mut self, lost: u64) {
        let end = if self.full { "the file is full" } else { "the recording ended" };
        let seconds = (self.latest_ns - self.began_ns) as f64 / 1e9;
        let events = self.events;
        let _ = writeln!(self.text, "# {end}: {events} events in {seconds:.3} s, {lost} more were lost");
        self.flush();
        if self.failed.is_none() {
            let text = format!("{LOST_IN_HEADER}{:<LOST_WIDTH$}\n", lost.to_string());
            self.failed = self.to.write_all_at(text.as_bytes(), self.lost_at).err();
        }
    }

    /// What it has come to so far.
    pub fn figures(&self) -> Recorded {
        Recorded {
            events: self.events,
            bytes: self.bytes,
            seconds: (self.latest_ns - self.began_ns) as f64 / 1e9,
            full: self.full,
            failed: self.failed.as_ref().map(ToString::to_string),
            measured_s: None,
        }
    }
}

/// blkparse's letter between two spaces; none for what is no event of the kernel's.
fn action(step: Step) -> Option<&'static [u8]> {
    Some(match step {
        Step::Queue => b" Q ",
        Step::BackMerge => b" M ",
        Step::FrontMerge => b" F ",
        Step::Issue => b" D ",
        Step::Requeue => b" R ",
        Step::Complete => b" C ",
        Step::Blind | Step::Seeing => return None,
    })
}

fn up_to_zero(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len())]
}

/// A number in decimal digits, with zeros before it up to `width`: several times as fast as formatting.
fn put(text: &mut Vec<u8>, mut number: u64, width: usize) {
    let mut digits = [b'0'; 20];
    let mut first = digits.len();
    while number > 0 {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    text.extend_from_slice(&digits[first.min(digits.len() - width)..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracefs::event::Kind;

    fn event(at_ns: u64, step: Step) -> Event {
        let mut event = Event { kind: Kind::Write, sector: 4096, sectors: 8, process: 77, ..Event::gap(at_ns, step) };
        event.letters[..2].copy_from_slice(b"WS");
        event.name[..4].copy_from_slice(b"a b\n");
        event
    }

    /// A recording of some events, and the file's text.
    fn recorded(bytes_max: u64, events: &[Event], lost: u64) -> (Recorded, String) {
        let name = format!("dbdyno-recording-{}-{bytes_max}-{lost}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut to = Recording::create(&path, bytes_max, &Device::for_tests("7,0", 64), 1_000_000_000, 5).unwrap();
        for event in events {
            to.take(event);
        }
        to.finish(lost);
        let recording = (to.figures(), std::fs::read_to_string(&path).unwrap());
        std::fs::remove_file(path).unwrap();
        recording
    }

    #[test]
    fn a_line_is_blkparses() {
        let before = event(999_999_999, Step::Queue);
        let flush = Event { sector: u64::MAX, sectors: 0, processor: 3, ..event(3_000_000_000, Step::Complete) };
        let (figures, text) = recorded(1 << 20, &[before, event(1_000_000_042, Step::Queue), flush], 17);
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(lines, ["7,0 0 1 0.000000042 77 Q WS 4032 + 8 [a?b?]", "7,0 3 2 2.000000000 77 C WS 0 + 0 [0]"]);
        assert!(text.contains("\n# lost_events: 17 ") && !text.contains("unknown"), "{text}");
        assert!(text.ends_with("# the recording ended: 2 events in 2.000 s, 17 more were lost\n"), "{text}");
        assert_eq!((figures.events, figures.full, &figures.failed), (2, false, &None));
    }

    #[test]
    fn a_file_grows_no_larger_than_it_may() {
        let events: Vec<_> = (0..1000).map(|number| event(1_000_000_000 + number, Step::Queue)).collect();
        let (figures, text) = recorded(4096, &events, 0);
        assert!(text.len() <= 4096 && text.len() > 3000, "{}", text.len());
        assert!(figures.full);
        assert!(text.contains("# the file is full: "), "{text}");
    }

    #[test]
    fn a_file_that_is_there_is_left_alone() {
        let path = std::env::current_exe().unwrap();
        let message = Recording::create(&path, 1, &Device::for_tests("7,0", 0), 0, 0).unwrap_err().to_string();
        assert!(message.contains("exists"), "{message}");
    }

    #[test]
    fn digits_are_all_there() {
        for (number, width, expected) in [(0, 1, "0"), (7, 9, "000000007"), (u64::MAX, 9, "18446744073709551615")] {
            let mut text = Vec::new();
            put(&mut text, number, width);
            assert_eq!(text, expected.as_bytes());
        }
    }
}
