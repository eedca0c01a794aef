//! What a running disk is asked to do (modes, models, power, faults), and what it reports.

use std::path::Path;

use dbdyno_common::results::{DiskFigures, DiskGranted, DiskRequests, FastCache};
use dbdyno_device::{DriveState, ModelOptions, drive};
use serde::Serialize;
use serde_json::{Value, json};

use crate::content::{ContentError, Survivors};
use crate::engine::{DiskState, Drive, Engine, Mode, Power};
use crate::faults::FaultSpec;
use crate::process::monotonic_ns;
use crate::stats::Stats;

/// More than a request's way has ever taken; a larger figure was measured while the host stood still.
const PATH_NS_MAX: u64 = 2_000_000;

impl Engine {
    /// Changes how time is spent. Going over to the model starts it idle with empty caches.
    pub fn set_mode(&self, mode: Mode) -> Result<(), String> {
        let mut state = self.lock();
        if mode == Mode::Model {
            idle(&state)?;
            if !state.model_unused {
                let drive = state.drive.clone();
                state.renew_model(&drive, &self.content)?;
            }
        }
        state.mode = mode;
        state.tell_of_flush(&self.content);
        Ok(())
    }

    /// Replaces the model by an idle one with empty caches.
    pub fn set_model(&self, name: &str, seed: Option<u64>, options: Option<ModelOptions>) -> Result<(), String> {
        let mut state = self.lock();
        idle(&state)?;
        let drive = Drive {
            name: name.to_owned(),
            seed: seed.unwrap_or(state.drive.seed),
            options: options.unwrap_or_else(|| state.drive.options.clone()),
        };
        state.renew_model(&drive, &self.content)
    }

    /// Makes answers leave earlier by what the way to the model and back takes, where a request's own start is not
    /// known.
    pub fn set_path(&self, path_ns: u64) -> Result<(), String> {
        if path_ns > PATH_NS_MAX {
            return Err(format!("path_ns is {path_ns}; it is at most {PATH_NS_MAX}"));
        }
        self.path.estimate(path_ns);
        Ok(())
    }

    /// Counts each request from when the block layer handed it to this loop device over the disk, where the host lets
    /// its trace be read; says whether.
    pub fn follow(&self, device: &Path) -> Value {
        match self.following.follow(device) {
            Ok(()) => json!({"followed": true}),
            Err(error) => json!({"followed": false, "reason": error.to_string()}),
        }
    }

    /// Cuts the power: what is in flight fails, and of what was not flushed a random part is lost if the drive has a
    /// volatile write cache. `sector_bytes` is 512 or 4096.
    pub fn power_cut(&self, seed: u64, sector_bytes: usize) -> Result<Value, String> {
        if ![512, 4096].contains(&sector_bytes) {
            return Err(format!("a sector has 512 or 4096 bytes, not {sector_bytes}"));
        }
        self.lose_power(Power::Off, seed, sector_bytes)
    }

    /// Takes the drive away, which also takes its power.
    pub fn pull_out(&self, seed: u64) -> Result<Value, String> {
        self.lose_power(Power::Gone, seed, 512)
    }

    fn lose_power(&self, power: Power, seed: u64, sector_bytes: usize) -> Result<Value, String> {
        let mut state = self.lock();
        if state.power != Power::On {
            return Err(without_power(state.power).into());
        }
        let cut_ns = monotonic_ns();
        state.power = power;
        let failed = state.in_flight.drain();
        let lost = self.content.power_cut(seed, sector_bytes);
        let cut_end_ns = monotonic_ns();
        // Its caches are empty and nothing is with it any more; what it has on the medium begins anew as well.
        let drive = state.drive.clone();
        let renewed = state.renew_model(&drive, &self.content);
        let write_cache = state.model.write_cache();
        self.changed(state);
        let in_flight = failed.len();
        self.answer(failed);
        renewed?;
        let lost = lost.map_err(|error| format!("the content could not be put back: {}", refusal(error)))?;
        Ok(json!({
            "cut_ns": cut_ns,
            "cut_end_ns": cut_end_ns,
            "in_flight_failed": in_flight,
            "write_cache": write_cache,
            "sector_bytes": sector_bytes,
            "unflushed_sectors": lost.unflushed_sectors,
            "lost_sectors": lost.lost_sectors,
        }))
    }

    /// Makes the content that of a cut, as the drive has it when the power is back: idle, with empty caches.
    pub fn restore_cut(&self, name: &str, survivors: Survivors, seed: u64) -> Result<Value, String> {
        let mut state = self.lock();
        idle(&state)?;
        let survived = self.content.restore_cut(name, survivors, seed)?;
        if !state.model_unused {
            let drive = state.drive.clone();
            state.renew_model(&drive, &self.content)?;
        }
        Ok(json!(survived))
    }

    /// Switches the power on again.
    pub fn power_on(&self) -> Result<(), String> {
        let mut state = self.lock();
        match state.power {
            Power::On => return Err("the power is on".into()),
            Power::Gone => return Err(without_power(Power::Gone).into()),
            Power::Off => {}
        }
        state.power = Power::On;
        self.content.power_on();
        self.changed(state);
        Ok(())
    }

    /// Puts a fault into the disk.
    pub fn add_fault(&self, spec: FaultSpec) -> Result<(), String> {
        spec.check()?;
        let mut state = self.lock();
        state.faults.add(monotonic_ns(), spec);
        self.changed(state);
        Ok(())
    }

    /// Ends all faults: what they hold is answered, and a drive that was pulled out is put back.
    pub fn clear_faults(&self) {
        let mut state = self.lock();
        state.faults.clear();
        if state.power == Power::Gone {
            state.power = Power::On;
            self.content.power_on();
        }
        self.changed(state);
    }

    /// All that is known about what the disk did; `reset` starts counting anew.
    pub fn stats(&self, reset: bool) -> Value {
        let requests = self.counted(reset);
        let mut state = self.lock();
        let now_ns = monotonic_ns();
        state.faults.expire(now_ns);
        let drive_bytes = || drive(&state.drive.name, self.content.size_bytes()).ok()?.fast_cache;
        let fast_cache = state.model.fast_cache().map(|cache| FastCache {
            bytes: cache.bytes,
            drive_bytes: drive_bytes().map(|cache| cache.drive_bytes),
            ran_out_ns: cache.ran_out_ns,
            ran_out_s: None,
        });
        let mut figures = DiskFigures {
            requests,
            mode: word(state.mode),
            path_ns: self.path.estimated_ns(),
            path_followed: self.following.on(),
            path_after_ns: self.path.after_json(),
            spun_seconds: state.margin.spun_seconds(),
            spin_share_max: state.margin.share(),
            model: state.drive.name.clone(),
            seed: state.drive.seed,
            state: if state.drive.options.state == DriveState::Steady { "steady" } else { "fresh" }.into(),
            power: word(state.power),
            write_cache: word(state.model.write_cache()),
            flush_ignored: state.model.ignores_flush(),
            gauges: state.model.gauges().into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            fast_cache,
            faults: state.faults.json(now_ns),
            in_flight: state.in_flight.len() as u64,
            size_bytes: self.content.size_bytes(),
            content_bytes: 0,
            unflushed_bytes: 0,
            held_bytes: 0,
            max_content_bytes: 0,
            snapshots: Vec::new(),
            cuts: Value::Null,
            trace: Value::Null,
            cpu_seconds: 0.0,
            granted: None,
        };
        // The content has a lock of its own, for which no request is to wait.
        drop(state);
        figures.content_bytes = self.content.live_bytes();
        figures.unflushed_bytes = self.content.unflushed_bytes();
        figures.held_bytes = self.content.held_bytes();
        figures.max_content_bytes = self.content.held_bytes_max();
        figures.snapshots = self.content.snapshots();
        figures.cuts = self.content.cuts_json();
        figures.trace = self.trace.json();
        figures.cpu_seconds = crate::process::cpu_seconds();
        figures.granted = self.granted.get().map(|granted| DiskGranted {
            locked_memory: granted.locked_memory,
            io_flusher: granted.io_flusher,
            realtime: granted.realtime,
        });
        json!(figures)
    }

    /// The model's inside alone: it may be asked for often, and no request waits for it longer than for another.
    pub fn gauges(&self) -> Value {
        let gauges = self.lock().model.gauges();
        json!({"gauges": by_name(gauges)})
    }

    fn counted(&self, reset: bool) -> DiskRequests {
        // Made before the lock is taken: requests are counted under it.
        let fresh = reset.then(Stats::new);
        let mut stats = self.lock_stats();
        let figures = stats.figures();
        if let Some(fresh) = fresh {
            *stats = fresh;
        }
        figures
    }
}

fn by_name(gauges: Vec<(&'static str, f64)>) -> serde_json::Map<String, Value> {
    gauges.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
}

/// A variant of an enum, as it is written.
fn word(variant: impl Serialize) -> String {
    json!(variant).as_str().unwrap_or_default().to_owned()
}

fn idle(state: &DiskState) -> Result<(), String> {
    match state.in_flight.len() {
        0 => Ok(()),
        n => Err(format!("{n} requests are in flight; wait until the disk is idle (sync, unmount or stop the load)")),
    }
}

fn without_power(power: Power) -> &'static str {
    match power {
        Power::On => "the power is on",
        Power::Off => "the power is off; switch it on with power-on",
        Power::Gone => "the drive is gone; put it back with fault clear",
    }
}

/// A content error for people.
pub fn refusal(error: ContentError) -> &'static str {
    match error {
        ContentError::Full => "the room allowed is used up (--limit)",
        ContentError::PastEnd => "the range reaches past the end of the disk",
        ContentError::Off => "the power is off",
        ContentError::Host => "the content file could not be read or written",
    }
}
