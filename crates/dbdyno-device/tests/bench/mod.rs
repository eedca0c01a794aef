//! A closed-loop load on a model in virtual time.

#![allow(dead_code, clippy::unwrap_used)]

use dbdyno_device::{Command, Completion, DeviceModel, DriveState, Kind, ModelOptions, model_with};

/// Says how far off a figure is, and fails where that is more than `tolerance`, .1 for 10 %.
pub fn assert_near(what: &str, got: f64, wanted: f64, tolerance: f64) {
    let off = got / wanted - 1.0;
    println!("{what}: {got:.2} is {:+.1} % off {wanted}", off * 100.0);
    assert!(off.abs() <= tolerance, "{what}: {got:.2} is {:+.1} % off {wanted}", off * 100.0);
}

pub struct Bench {
    pub device: Box<dyn DeviceModel + Send>,
    pub size_bytes: u64,
    pub now_ns: u64,
    random: u64,
    next_id: u64,
    finished: Vec<Completion>,
    /// Calls of the model's `poll`.
    pub polls: u64,
    /// Of all completions, in their order.
    pub checksum: u64,
}

impl Bench {
    pub fn new(drive: &str, size_bytes: u64, seed: u64) -> Self {
        Self::with(drive, size_bytes, seed, DriveState::Fresh)
    }

    pub fn with(drive: &str, size_bytes: u64, seed: u64, state: DriveState) -> Self {
        let device = model_with(drive, size_bytes, seed, &ModelOptions { state }).unwrap();
        let finished = Vec::new();
        Self { device, size_bytes, now_ns: 0, random: seed, next_id: 0, finished, polls: 0, checksum: 0 }
    }

    /// Completions per second of `count` random 4 KiB reads, `depth` at a time.
    pub fn random_reads(&mut self, depth: u64, count: u64) -> f64 {
        self.closed_loop(Kind::Read, depth, count, |bench, _| (bench.random_offset(), 4096))
    }

    /// The same with the host choosing, in one direction over the addresses (C-LOOK), and one at the drive at a time.
    pub fn c_look_reads(&mut self, depth: u64, count: u64) -> f64 {
        let start_ns = self.now_ns;
        let mut waiting = std::collections::BTreeSet::new();
        let mut at_bytes = 0;
        for _ in 0..count {
            while (waiting.len() as u64) < depth {
                waiting.insert(self.random_offset());
            }
            let next = waiting.range(at_bytes..).next().or(waiting.first()).copied().unwrap();
            waiting.remove(&next);
            at_bytes = next;
            self.request_ns(Kind::Read, next, 4096);
        }
        count as f64 * 1e9 / (self.now_ns - start_ns) as f64
    }

    /// Random writes, otherwise as [`Bench::random_reads`].
    pub fn random_writes(&mut self, depth: u64, count: u64) -> f64 {
        self.closed_loop(Kind::Write, depth, count, |bench, _| (bench.random_offset(), 4096))
    }

    /// Random writes to what lies behind the first `from_bytes`.
    pub fn random_writes_from(&mut self, from_bytes: u64, depth: u64, count: u64) -> f64 {
        let within = move |bench: &mut Self| from_bytes + bench.random_offset() % (bench.size_bytes - from_bytes);
        self.closed_loop(Kind::Write, depth, count, move |bench, _| (within(bench), 4096))
    }

    /// Random reads a second, one at a time, until there were `count`, while a second host writes 4 KiB, flushes, and
    /// so on.
    pub fn reads_beside_a_flushing_writer(&mut self, count: u64) -> f64 {
        const READER: u64 = 1;
        const WRITER: u64 = 2;
        let (start_ns, mut reads, mut flushes) = (self.now_ns, 0, false);
        let send = |bench: &mut Self, id, kind, offset_bytes| {
            bench.device.submit(bench.now_ns, Command { id, kind, offset_bytes, length_bytes: 4096, fua: false });
        };
        send(self, READER, Kind::Read, 0);
        send(self, WRITER, Kind::Write, 0);
        while reads < count {
            self.wait();
            for completion in std::mem::take(&mut self.finished) {
                let offset_bytes = self.random_offset();
                if completion.id == READER {
                    reads += 1;
                    send(self, READER, Kind::Read, offset_bytes);
                } else {
                    flushes = !flushes;
                    send(self, WRITER, if flushes { Kind::Flush } else { Kind::Write }, offset_bytes);
                }
            }
        }
        count as f64 * 1e9 / (self.now_ns - start_ns) as f64
    }

    /// MB/s of `count` sequential commands of 128 KiB, `depth` at a time, from the first block and over again.
    pub fn sequential(&mut self, kind: Kind, depth: u64, count: u64) -> f64 {
        let all = self.size_bytes >> 17;
        self.closed_loop(kind, depth, count, |_, index| ((index % all) << 17, 1 << 17)) * (1 << 17) as f64 / 1e6
    }

    /// MB/s of `count` commands of `length_bytes` from the beginning on, `depth` at a time.
    pub fn sequential_by(&mut self, kind: Kind, length_bytes: u64, depth: u64, count: u64) -> f64 {
        let next = |_: &mut Self, index: u64| (index * length_bytes, length_bytes);
        self.closed_loop(kind, depth, count, next) * length_bytes as f64 / 1e6
    }

    /// MB/s of `count` sequential reads of 128 KiB, one at a time, from the first block.
    pub fn sequential_reads(&mut self, count: u64) -> f64 {
        self.sequential_reads_from(0, count)
    }

    /// The same from an offset on.
    pub fn sequential_reads_from(&mut self, start_bytes: u64, count: u64) -> f64 {
        let next = |_: &mut Self, index: u64| (start_bytes + (index << 17), 1 << 17);
        self.closed_loop(Kind::Read, 1, count, next) * (1 << 17) as f64 / 1e6
    }

    /// Completions in each of `seconds` seconds of random commands of `length_bytes`, `depth` at a time.
    pub fn per_second(&mut self, kind: Kind, length_bytes: u64, depth: u64, seconds: u64) -> Vec<u64> {
        let start_ns = self.now_ns;
        let mut counts = vec![0; seconds as usize];
        let mut outstanding = 0;
        loop {
            while outstanding < depth {
                let offset_bytes = self.random_offset() / length_bytes * length_bytes;
                self.submit(kind, offset_bytes, length_bytes);
                outstanding += 1;
            }
            let finished = self.wait();
            outstanding -= finished;
            match counts.get_mut(((self.now_ns - start_ns) / 1_000_000_000) as usize) {
                Some(count) => *count += finished,
                None => return counts,
            }
        }
    }

    /// What the model calls its gauge.
    pub fn gauge(&self, name: &str) -> f64 {
        self.device.gauges().into_iter().find(|(gauge, _)| *gauge == name).unwrap().1
    }

    /// The same for writes, the last of them perhaps still in the cache.
    pub fn sequential_writes(&mut self, count: u64) -> f64 {
        self.closed_loop(Kind::Write, 1, count, |_, index| (index << 17, 1 << 17)) * (1 << 17) as f64 / 1e6
    }

    /// Appends of 4 KiB a second, each followed by a flush, as a database's log does.
    pub fn log_writes(&mut self, count: u64) -> f64 {
        let start_ns = self.now_ns;
        for index in 0..count {
            self.request_ns(Kind::Write, (1 << 30) + index * 4096, 4096);
            self.request_ns(Kind::Flush, 0, 0);
        }
        count as f64 * 1e9 / (self.now_ns - start_ns) as f64
    }

    /// Mean time in ms of a flush after `writes` scattered 4 KiB writes, over `rounds`.
    pub fn flush_after(&mut self, writes: u64, rounds: u64) -> f64 {
        let mut total_ns = 0;
        for _ in 0..rounds {
            for _ in 0..writes {
                let offset_bytes = self.random_offset();
                self.request_ns(Kind::Write, offset_bytes, 4096);
            }
            total_ns += self.request_ns(Kind::Flush, 0, 0);
        }
        total_ns as f64 / 1e6 / rounds as f64
    }

    /// Submits one command, waits for it and returns its time, nanoseconds.
    pub fn request_ns(&mut self, kind: Kind, offset_bytes: u64, length_bytes: u64) -> u64 {
        self.command_ns(Command { id: 0, kind, offset_bytes, length_bytes, fua: false })
    }

    /// The same for a write that is durable when it completes.
    pub fn forced_write_ns(&mut self, offset_bytes: u64, length_bytes: u64) -> u64 {
        self.command_ns(Command { id: 0, kind: Kind::Write, offset_bytes, length_bytes, fua: true })
    }

    fn command_ns(&mut self, command: Command) -> u64 {
        let start_ns = self.now_ns;
        self.device.submit(self.now_ns, command);
        while self.wait() == 0 {}
        self.now_ns - start_ns
    }

    fn closed_loop(&mut self, kind: Kind, depth: u64, count: u64, next: impl Fn(&mut Self, u64) -> (u64, u64)) -> f64 {
        self.closed_loop_of(depth, count, |bench, index| {
            let (offset_bytes, length_bytes) = next(bench, index);
            (kind, offset_bytes, length_bytes)
        })
    }

    /// Completions per second of `count` commands, `depth` at a time; `next` says kind, offset and length of each.
    pub fn closed_loop_of(&mut self, depth: u64, count: u64, next: impl Fn(&mut Self, u64) -> (Kind, u64, u64)) -> f64 {
        let start_ns = self.now_ns;
        let (mut submitted, mut finished) = (0, 0);
        while finished < count {
            while submitted < count && submitted - finished < depth {
                let (kind, offset_bytes, length_bytes) = next(self, submitted);
                self.submit(kind, offset_bytes, length_bytes);
                submitted += 1;
            }
            finished += self.wait();
        }
        count as f64 * 1e9 / (self.now_ns - start_ns) as f64
    }

    /// Submits a command of its own id.
    pub fn submit(&mut self, kind: Kind, offset_bytes: u64, length_bytes: u64) {
        self.next_id += 1;
        self.device.submit(self.now_ns, Command { id: self.next_id, kind, offset_bytes, length_bytes, fua: false });
    }

    /// Goes on to the next due time; returns how many commands finished.
    pub fn wait(&mut self) -> u64 {
        self.now_ns = self.device.next_due().unwrap().max(self.now_ns);
        self.finished.clear();
        self.device.poll(self.now_ns, &mut self.finished);
        self.polls += 1;
        for Completion { id, at_ns } in &self.finished {
            self.checksum = (self.checksum ^ id ^ at_ns.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
        self.finished.len() as u64
    }

    /// A random multiple of 4 KiB.
    pub fn random_offset(&mut self) -> u64 {
        // splitmix64
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(z ^ (z >> 31)) * u128::from(self.size_bytes / 4096)) >> 64) as u64 * 4096
    }
}
