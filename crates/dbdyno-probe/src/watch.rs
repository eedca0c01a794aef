//! One trace of a block device, from start to end.

use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dbdyno_common::results::BlockTrace;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::cli::{BlockArgs, window};
use crate::error::ProbeError;
use crate::figures::Figures;
use crate::host::now_ns;
use crate::output::{self, RequestFile};
use crate::recording::Recording;
use crate::requests::{Happened, Requests};
use crate::tracefs::device::Device;
use crate::tracefs::event::Event;
use crate::tracefs::instance::{Instance, Reader};

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
            Some(Happened::FlushAsked) => self.figures.counts().flushes_asked += 1,
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
        let asked = !lines.buffer().is_empty() || wait(Some(std::io::stdin().as_fd()))?;
        watch.drain(now_ns())?;
        if !asked {
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
        ("summary", given) => {
            let figures = watch.json(Some(window(given).map_err(ProbeError::Usage)?));
            Ok(json!({"figures": figures, "series": output::series_json(&watch.seen.figures)}))
        }
        ("recorded", "") => Ok(json!(watch.seen.recording.as_ref().map(Recording::figures))),
        ("figures", given) => Ok(watch.json(Some(window(given).map_err(ProbeError::Usage)?))),
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
