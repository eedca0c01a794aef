//! A search on stable Rust: kept inputs changed at random, a bounded number of them, each bounded in memory and CPU
//! time.
//!
//! libFuzzer follows branches and finds more, but needs a nightly compiler. This runs in every `cargo test`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::env;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use dbdyno_common::random::Random;
use rustix::time::{ClockId, clock_gettime};

/// Inputs of a target in a test; `make fuzz` goes on for a time of a processor instead.
const INPUTS: u64 = 6000;

/// Longest input.
const INPUT_MAX: usize = 64 << 10;

/// Memory that a parser may hold for one input: a constant, and so many times the input.
const MEMORY_MAX: usize = 32 << 20;
const MEMORY_PER_BYTE: usize = 512;

/// Time of a processor that one input may take, in a build without optimisation.
const CPU_SECONDS_MAX: f64 = 5.0;

/// What numbers parsers stumble over.
const NUMBERS: [&str; 9] = [
    "0",
    "-1",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775807",
    "1e400",
    "nan",
    "4294967295",
    ".",
];

/// Counts what is allocated.
pub struct Counting {
    held: AtomicUsize,
    most: AtomicUsize,
}

impl Counting {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self { held: AtomicUsize::new(0), most: AtomicUsize::new(0) }
    }

    /// Bytes held, from which the most is counted anew.
    fn restart(&self) -> usize {
        let held = self.held.load(Relaxed);
        self.most.store(held, Relaxed);
        held
    }

    fn add(&self, bytes: usize) {
        self.most.fetch_max(self.held.fetch_add(bytes, Relaxed) + bytes, Relaxed);
    }
}

// SAFETY: the system's allocator does all of it; what is counted beside it changes nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: the caller keeps what `alloc` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.held.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps what `dealloc` asks for.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.add(size);
        self.held.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps what `realloc` asks for.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Tries the kept inputs of a target, and ones made of them.
///
/// `DBDYNO_FUZZ_SECONDS` has it go on for so long, `DBDYNO_FUZZ_INPUT` names one input to try alone.
///
/// # Panics
/// An input was found that breaks the target; it is kept in a file, which the message names.
pub fn search(name: &str, target: fn(&[u8]), memory: &Counting) {
    if let Ok(path) = env::var("DBDYNO_FUZZ_INPUT") {
        return target(&fs::read(path).expect("the input can be read"));
    }
    let kept = kept_inputs(name);
    let seed = seed();
    let mut random = Random::new(seed ^ name.bytes().fold(0, |sum, byte| (sum << 7) ^ u64::from(byte)));
    for input in &kept {
        attempt(name, target, input, memory);
    }
    let seconds: Option<f64> = env::var("DBDYNO_FUZZ_SECONDS").ok().and_then(|given| given.parse().ok());
    let until = seconds.map(|seconds| cpu_seconds() + seconds);
    let mut tried = 0_u64;
    while until.map_or(tried < INPUTS, |until| cpu_seconds() < until) {
        attempt(name, target, &varied(&kept, &mut random), memory);
        tried += 1;
    }
    println!("{name}: {} kept inputs and {tried} drawn by seed {seed}", kept.len());
}

/// Always the same, so that what fails here fails wherever this commit is tested; `make fuzz` draws another.
fn seed() -> u64 {
    env::var("DBDYNO_TEST_SEED").ok().and_then(|given| given.parse().ok()).unwrap_or(1)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn kept_inputs(name: &str) -> Vec<Vec<u8>> {
    let seeds = fs::read_dir(folder().join("seeds").join(name)).expect("the target has kept inputs");
    let mut paths: Vec<PathBuf> = seeds.map(|entry| entry.expect("a folder can be read").path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("a kept input can be read")).collect()
}

fn attempt(name: &str, target: fn(&[u8]), input: &[u8], memory: &Counting) {
    let (before, began) = (memory.restart(), cpu_seconds());
    let outcome = catch_unwind(AssertUnwindSafe(|| target(input)));
    let held = memory.most.load(Relaxed).saturating_sub(before);
    let seconds = cpu_seconds() - began;
    let what = if outcome.is_err() {
        "panicked".to_owned()
    } else if held > MEMORY_MAX + MEMORY_PER_BYTE * input.len() {
        format!("held {held} bytes")
    } else if seconds > CPU_SECONDS_MAX {
        format!("took {seconds} s of a processor")
    } else {
        return;
    };
    let into = folder().join("artifacts").join(name);
    let hash = input
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    let path = into.join(format!("{hash:016x}"));
    fs::create_dir_all(&into).and_then(|()| fs::write(&path, input)).expect("what was found can be kept");
    panic!("{name} {what}: its input is {}; try it alone by DBDYNO_FUZZ_INPUT", path.display());
}

/// CPU time of this thread.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// One of the kept inputs, changed once or a few times.
fn varied(kept: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let any = |random: &mut Random| kept[random.below(kept.len() as u64) as usize].clone();
    let mut input = any(random);
    for _ in 0..=random.below(4) {
        if input.is_empty() {
            input.push(0);
        }
        let length = input.len() as u64;
        let at = random.below(length) as usize;
        let end = (at + 1 + random.below(length.min(64)) as usize).min(input.len());
        match random.below(10) {
            0 => input[at] ^= 1 << random.below(8),
            1 => input[at] = random.bits() as u8,
            2 => input.truncate(at),
            3 => drop(input.drain(at..end)),
            4 => {
                let piece = input[at..end].to_vec();
                let times = 1 + random.below(50) as usize;
                drop(input.splice(at..at, piece.repeat(times)));
            }
            5 => {
                let other = any(random);
                let from = random.below(other.len().max(1) as u64) as usize;
                input.splice(at.., other[from.min(other.len())..].iter().copied());
            }
            6 => {
                let number = NUMBERS[random.below(NUMBERS.len() as u64) as usize];
                let digits = input[at..].iter().position(u8::is_ascii_digit).map_or(at, |digit| at + digit);
                let end = digits + input[digits..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                input.splice(digits..end, number.bytes());
            }
            7 => {
                let byte = random.bits().to_le_bytes();
                let bytes = &byte[..=random.below(8) as usize];
                input.splice(at..at, bytes.iter().copied());
            }
            8 => {
                let mut lines: Vec<&[u8]> = input.split_inclusive(|byte| *byte == b'\n').collect();
                let other = random.below(lines.len() as u64) as usize;
                let one = random.below(lines.len() as u64) as usize;
                lines.swap(one, other);
                input = lines.concat();
            }
            _ => input[at..end].fill([0, 0xff, b'\n', b'\'', b' '][random.below(5) as usize]),
        }
        input.truncate(INPUT_MAX);
    }
    input
}
