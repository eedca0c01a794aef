//! The control socket: one JSON object a line in, one out.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use dbdyno_common::similar::did_you_mean;
use dbdyno_device::{DriveState, ModelOptions};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::content::{CutOn, Survivors, Trigger};
use crate::engine::{Engine, Mode};
use crate::faults::FaultSpec;
use crate::steer;
use crate::trace::Format;

/// No sensible request is longer.
const LINE_BYTES_MAX: u64 = 512 << 10;

/// What ends the disk.
pub enum Event {
    Signal,
    /// A client asked for it on the control socket.
    Stop {
        force: bool,
        asker: Asker,
    },
    /// The mount is gone, by our doing or another's.
    Unmounted,
}

/// The connection that requested the stop and waits for its outcome.
pub struct Asker {
    pub outcome: Sender<Result<(), String>>,
    /// Ends once the answer is written, which the process must live to see.
    pub answered: Receiver<()>,
}

impl Asker {
    pub fn answer(self, outcome: Result<(), String>) {
        // An asker that hung up, or does not read, cannot keep the disk from ending.
        let _ = self.outcome.send(outcome);
        let _ = self.answered.recv_timeout(Duration::from_secs(1));
    }
}

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
enum ControlRequest {
    Ping {},
    Mode {
        mode: Mode,
    },
    Model {
        name: String,
        seed: Option<u64>,
        state: Option<DriveState>,
    },
    Path {
        path_ns: u64,
    },
    Follow {
        device: PathBuf,
    },
    Snapshot {
        name: String,
    },
    Restore {
        name: String,
    },
    Forget {
        name: String,
    },
    Clear {},
    Save {
        file: PathBuf,
    },
    Load {
        file: PathBuf,
    },
    Stats {
        #[serde(default)]
        reset: bool,
    },
    Gauges {},
    Trace {
        file: PathBuf,
        #[serde(default)]
        format: Format,
    },
    TraceStop {},
    PowerCut {
        #[serde(default)]
        seed: u64,
        #[serde(default = "smallest_sector")]
        sector_bytes: usize,
    },
    PowerOn {},
    Fault {
        spec: FaultSpec,
    },
    FaultGone {
        #[serde(default)]
        seed: u64,
    },
    FaultClear {},
    CutsArm {
        #[serde(default)]
        hold_ns: u64,
        #[serde(default)]
        next: Option<PathBuf>,
    },
    CutsDisarm {},
    Cut {
        name: String,
    },
    CutOn {
        name: String,
        on: CutOn,
        nth: u64,
        #[serde(default)]
        ranges_bytes: Vec<(u64, u64)>,
        #[serde(default)]
        seed: u64,
    },
    Cuts {},
    CutRestore {
        name: String,
        survivors: Survivors,
        #[serde(default)]
        seed: u64,
    },
    CutForget {
        name: String,
    },
    CutsForget {},
    CutSave {
        name: String,
        folder: PathBuf,
    },
    CutLoad {
        name: String,
        folder: PathBuf,
    },
    Stop {
        #[serde(default)]
        force: bool,
    },
}

fn smallest_sector() -> usize {
    512
}

/// Serves connections, each on its own thread, until the process ends.
pub fn serve(listener: &UnixListener, engine: &Arc<Engine>, events: &Sender<Event>) {
    for stream in listener.incoming().flatten() {
        let (engine, events) = (Arc::clone(engine), events.clone());
        let serving = std::thread::Builder::new().name("control".into()).spawn(move || {
            // A peer that hangs up is no fault of ours.
            let _ = converse(&stream, &engine, &events);
        });
        // Out of threads: this peer is hung up on, the next may be served.
        drop(serving);
    }
}

fn converse(stream: &UnixStream, engine: &Engine, events: &Sender<Event>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let mut line = Vec::new();
        lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        if line.len() as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n") {
            // Where the next request begins cannot be known, so the conversation ends.
            return send(&mut writer, &Err(format!("a request is at most {LINE_BYTES_MAX} bytes long")));
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        // Dropped once the answer is written, which is what a stopping disk waits for.
        let (_answering, answered) = channel();
        send(&mut writer, &answer(&line, engine, events, answered))?;
    }
}

fn send(writer: &mut impl Write, outcome: &Result<Value, String>) -> std::io::Result<()> {
    let reply = match outcome {
        Ok(Value::Object(fields)) => {
            let mut reply = json!({"ok": true});
            if let Value::Object(reply) = &mut reply {
                reply.extend(fields.clone());
            }
            reply
        }
        Ok(_) => json!({"ok": true}),
        Err(error) => json!({"ok": false, "error": error}),
    };
    writer.write_all(format!("{reply}\n").as_bytes())
}

fn answer(line: &[u8], engine: &Engine, events: &Sender<Event>, answered: Receiver<()>) -> Result<Value, String> {
    let request: ControlRequest = serde_json::from_slice(line).map_err(|error| {
        format!(
            "not a request: {error} (ops are ping, mode, model, path, follow, snapshot, restore, forget, clear, save, load, stats, \
             gauges, trace, trace-stop, power-cut, power-on, fault, fault-gone, fault-clear, cuts-arm, cuts-disarm, cut, cut-on, \
             cuts, cut-restore, cut-forget, cuts-forget, cut-save, cut-load, stop; an example: {{\"op\":\"stats\"}})"
        )
    })?;
    let unknown = |name: &str| {
        let known = engine.content.snapshots();
        let hint = did_you_mean(name, known.iter().map(String::as_str));
        let known = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
        format!("there is no snapshot {name:?}; there are: {known}{hint}")
    };
    let failed = |error| steer::refusal(error).to_owned();
    match request {
        ControlRequest::Mode { mode } => engine.set_mode(mode)?,
        ControlRequest::Path { path_ns } => engine.set_path(path_ns)?,
        ControlRequest::Follow { device } => return Ok(engine.follow(&device)),
        ControlRequest::Model { name, seed, state } => {
            engine.set_model(&name, seed, state.map(|state| ModelOptions { state }))?;
        }
        ControlRequest::Snapshot { name } => engine.content.snapshot(&name),
        ControlRequest::Restore { name } if !engine.content.restore(&name).map_err(failed)? => {
            return Err(unknown(&name));
        }
        ControlRequest::Forget { name } if !engine.content.forget(&name) => return Err(unknown(&name)),
        ControlRequest::Ping {} | ControlRequest::Restore { .. } | ControlRequest::Forget { .. } => {}
        ControlRequest::Clear {} => engine.content.clear().map_err(failed)?,
        ControlRequest::Save { file } => return engine.content.save(&file).map(|bytes| json!({"bytes": bytes})),
        ControlRequest::Load { file } => return engine.content.load(&file).map(|bytes| json!({"bytes": bytes})),
        ControlRequest::Stats { reset } => return Ok(engine.stats(reset)),
        ControlRequest::Gauges {} => return Ok(engine.gauges()),
        ControlRequest::Trace { file, format } => engine.trace.start(&file, format)?,
        ControlRequest::TraceStop {} => return engine.trace.stop(),
        ControlRequest::PowerCut { seed, sector_bytes } => return engine.power_cut(seed, sector_bytes),
        ControlRequest::PowerOn {} => engine.power_on()?,
        ControlRequest::Fault { spec } => engine.add_fault(spec)?,
        ControlRequest::FaultGone { seed } => return engine.pull_out(seed),
        ControlRequest::FaultClear {} => engine.clear_faults(),
        ControlRequest::Stop { force } => {
            let (outcome, stopped) = channel();
            let gone = |_| "the disk is already stopping".to_owned();
            events
                .send(Event::Stop { force, asker: Asker { outcome, answered } })
                .map_err(|error| gone(error.to_string()))?;
            stopped.recv().map_err(|error| gone(error.to_string()))??;
        }
        of_cuts => return answer_cuts(of_cuts, engine),
    }
    Ok(Value::Null)
}

/// What is asked of states after a power cut.
fn answer_cuts(request: ControlRequest, engine: &Engine) -> Result<Value, String> {
    let content = &engine.content;
    match request {
        ControlRequest::CutsArm { hold_ns, next } => {
            content.arm_cuts(hold_ns)?;
            content.cut_with(next);
        }
        ControlRequest::CutsDisarm {} => content.disarm_cuts(),
        ControlRequest::Cut { name } => return content.cut(&name).map(|taken| json!(taken)),
        ControlRequest::CutOn { name, on, nth, ranges_bytes, seed } => {
            content.cut_on(Trigger { name, on, nth, ranges_bytes, seed })?;
        }
        ControlRequest::Cuts {} => return Ok(json!({"cuts": content.cuts()})),
        ControlRequest::CutRestore { name, survivors, seed } => return engine.restore_cut(&name, survivors, seed),
        ControlRequest::CutForget { name } => content.forget_cut(&name)?,
        ControlRequest::CutsForget {} => content.forget_cuts(),
        ControlRequest::CutSave { name, folder } => content.save_cut(&name, &folder)?,
        ControlRequest::CutLoad { name, folder } => content.load_cut(&name, &folder)?,
        _ => {}
    }
    Ok(Value::Null)
}
