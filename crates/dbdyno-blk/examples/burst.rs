//! The order in which a drive gets a scripted burst, as `benches/simulate` compares it with a real kernel.
//!
//! `cargo run --release -p dbdyno-blk --example burst -- SCHEDULER TAGS NR_REQUESTS LATENCY_US MAX_SECTORS MAX_SEGMENTS
//! < SCRIPT`. A line of the script is a bio: when its process means to submit it (ns), the number of the call that it
//! goes in, `read` or `write`, first sector, sectors. Prints a line for each command of the drive: `read` or `write`,
//! first sector, sectors.

#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::io::read_to_string;

use dbdyno_blk::kernel::{Kernel, Settings};
use dbdyno_blk::queue::{Bio, Direction};
use dbdyno_blk::run;
use dbdyno_blk::source::{Source, Step};
use dbdyno_device::{Command, Completion, DeviceModel, Kind, WriteCache};

/// Prints what it is asked.
struct Printed(Box<dyn DeviceModel + Send>);

impl DeviceModel for Printed {
    fn submit(&mut self, now_ns: u64, command: Command) {
        let kind = if command.kind == Kind::Read { "read" } else { "write" };
        println!("{kind} {} {}", command.offset_bytes / 512, command.length_bytes / 512);
        self.0.submit(now_ns, command);
    }

    fn next_due(&self) -> Option<u64> {
        self.0.next_due()
    }

    fn poll(&mut self, now_ns: u64, finished: &mut Vec<Completion>) {
        self.0.poll(now_ns, finished);
    }

    fn write_cache(&self) -> WriteCache {
        self.0.write_cache()
    }
}

/// One process that submits a script, call by call.
struct Script {
    left: VecDeque<(u64, u64, Bio)>,
    /// The call that it is in.
    call: Option<u64>,
    asleep: bool,
}

impl Source for Script {
    fn next_due(&self) -> Option<u64> {
        if self.asleep {
            return None;
        }
        self.call.map(|_| 0).or_else(|| self.left.front().map(|(at_ns, ..)| *at_ns))
    }

    fn step(&mut self, now_ns: u64) -> Option<Step> {
        if self.asleep {
            return None;
        }
        let next =
            self.left.front().filter(|(at_ns, call, _)| *at_ns <= now_ns && self.call.is_none_or(|now| now == *call));
        if let Some((_, call, bio)) = next.copied() {
            self.left.pop_front();
            self.call = Some(call);
            return Some(Step::Submit(bio));
        }
        self.call.take().map(|_| Step::Unplug(0))
    }

    fn asleep(&mut self, _process: u32) {
        self.asleep = true;
    }

    fn awake(&mut self, _process: u32) {
        self.asleep = false;
    }

    fn finished(&mut self, _now_ns: u64, _bio: &Bio) {}
}

fn bio_of(line: &str) -> (u64, u64, Bio) {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |at: usize| words[at].parse::<u64>().unwrap();
    let direction = if words[2] == "read" { Direction::Read } else { Direction::Write };
    (number(0), number(1), Bio::new(0, direction, number(3), number(4) as u32))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments[at].parse::<usize>().unwrap();
    let settings = Settings {
        scheduler: Some(&arguments[0]),
        depth: Some(number(1)),
        nr_requests: Some(number(2)),
        max_sectors: Some(number(4) as u32),
        max_segments: Some(number(5) as u32),
        ..Settings::default()
    };
    let drive = dbdyno_device::model(&format!("ideal(latency_us={})", arguments[3]), 4 << 30, 1).unwrap();
    let mut layer = Kernel::named("6.x").unwrap().layer(&settings, Box::new(Printed(drive))).unwrap();
    let left = read_to_string(std::io::stdin()).unwrap().lines().map(bio_of).collect();
    run(&mut layer, &mut Script { left, call: None, asleep: false }, 0, u64::MAX);
}
