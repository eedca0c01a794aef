//! What every device model promises, and the queue in which it keeps what happens at a known time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use serde::Serialize;

/// What a command asks of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Bring `length_bytes` from the medium to the host.
    Read,
    /// Take `length_bytes` from the host; durable only after a later [`Kind::Flush`], or when it completes if
    /// [`Command::fua`] is set.
    Write,
    /// Make durable every write completed before this command was submitted. Offset and length are ignored.
    Flush,
    /// Forget a range.
    Discard,
}

/// One command from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// Chosen by the caller, unique among the commands outstanding, given back in [`Completion::id`].
    pub id: u64,
    /// What is asked.
    pub kind: Kind,
    /// Start, in bytes from the beginning of the device.
    pub offset_bytes: u64,
    /// Length in bytes. A range that reaches past the end of the device is served as if it ended there.
    pub length_bytes: u64,
    /// Force unit access: a write that is durable when it completes. Ignored for every other kind.
    pub fua: bool,
}

impl Command {
    /// The command with its range cut at the end of a device of `size_bytes`.
    pub(crate) fn within(self, size_bytes: u64) -> Self {
        let offset_bytes = self.offset_bytes.min(size_bytes);
        Self { offset_bytes, length_bytes: self.length_bytes.min(size_bytes - offset_bytes), ..self }
    }

    /// How much of the range lies before an offset of the device.
    pub(crate) fn bytes_before(&self, offset_bytes: u64) -> u64 {
        offset_bytes.saturating_sub(self.offset_bytes).min(self.length_bytes)
    }

    /// First byte after the range; call [`Command::within`] first.
    pub(crate) fn end_bytes(&self) -> u64 {
        self.offset_bytes + self.length_bytes
    }
}

/// The end of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The command's [`Command::id`].
    pub id: u64,
    /// When the device finished it, in the caller's nanoseconds. Not before its submission, and not after the `now_ns`
    /// of the [`DeviceModel::poll`] that returned it.
    pub at_ns: u64,
}

/// What a power cut takes of the writes that a device has acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WriteCache {
    /// Nothing: a write is on the medium when it completes.
    None,
    /// Whatever was written without [`Command::fua`] and not flushed since.
    Volatile,
    /// Nothing: a battery or capacitors keep the cache.
    Protected,
}

/// A cache of blocks written with one bit a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FastCache {
    /// What it holds when it is empty, bytes.
    pub bytes: u64,
    /// When a write first found it full, in the caller's nanoseconds.
    pub ran_out_ns: Option<u64>,
}

/// How a device spends its time.
///
/// All times are nanoseconds on one clock of the caller's choice, given in non-decreasing order over all calls (an
/// earlier time counts as the latest one seen). A completion never precedes its submission; every command completes
/// exactly once; the same calls on a model of the same seed give the same completions.
pub trait DeviceModel {
    /// Hands the device a command at `now_ns`.
    fn submit(&mut self, now_ns: u64, command: Command);

    /// When to call [`DeviceModel::poll`] next: the earliest time at which a command may complete or the device must
    /// choose what to do next. `None` if no command is outstanding. A further `submit` may change it.
    fn next_due(&self) -> Option<u64>;

    /// Appends to `finished` what has completed by `now_ns`, in order of completion. May append nothing although
    /// `next_due` has passed: the device then made a choice, and `next_due` is later.
    fn poll(&mut self, now_ns: u64, finished: &mut Vec<Completion>);

    /// Appends to `finished` what no later command can change any more, though its time may not have come; none of it
    /// is appended again by `poll`, nor counted by `next_due`. Who must answer before the device does, to make up for
    /// the time that the answer takes, calls it after every `submit` and `poll`. A model may know nothing in advance.
    fn take_certain(&mut self, finished: &mut Vec<Completion>) {
        let _ = finished;
    }

    /// What a power cut takes.
    fn write_cache(&self) -> WriteCache;

    /// Whether FLUSH is acknowledged and makes nothing durable, so that a power cut takes what was flushed, too.
    fn ignores_flush(&self) -> bool {
        false
    }

    /// Its fast cache, for a drive that has one.
    fn fast_cache(&self) -> Option<FastCache> {
        None
    }

    /// What the inside of the device is like now, for people to look at: names that end in their unit, and values.
    /// Empty for a model without an inside worth looking at.
    fn gauges(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// The earlier of two times that may not come.
pub(crate) fn earlier(one_ns: Option<u64>, other_ns: Option<u64>) -> Option<u64> {
    match (one_ns, other_ns) {
        (Some(one_ns), Some(other_ns)) => Some(one_ns.min(other_ns)),
        (one_ns, other_ns) => one_ns.or(other_ns),
    }
}

/// Time in the upper half, place in the order of insertion in the lower: one comparison orders both, and no two are
/// equal.
#[derive(Debug)]
struct Entry<T> {
    key: u128,
    what: T,
}

impl<T> Entry<T> {
    fn at_ns(&self) -> u64 {
        (self.key >> 64) as u64
    }
}

/// The earliest is the greatest, which a heap gives first.
impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.cmp(&self.key)
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<T> Eq for Entry<T> {}

/// A queue of `T` by time. Equal times come out in the order they went in, which keeps models deterministic.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    heap: BinaryHeap<Entry<T>>,
    inserted: u64,
}

impl<T> Agenda<T> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), inserted: 0 }
    }

    pub(crate) fn push(&mut self, at_ns: u64, what: T) {
        self.inserted += 1;
        self.heap.push(Entry { key: u128::from(at_ns) << 64 | u128::from(self.inserted), what });
    }

    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(Entry::at_ns)
    }

    /// The earliest entry.
    pub(crate) fn next(&self) -> Option<(u64, T)>
    where
        T: Copy,
    {
        self.heap.peek().map(|entry| (entry.at_ns(), entry.what))
    }

    /// The earliest entry, if its time has come.
    pub(crate) fn pop_due(&mut self, now_ns: u64) -> Option<(u64, T)> {
        if self.next_ns()? > now_ns {
            return None;
        }
        self.heap.pop().map(|entry| (entry.at_ns(), entry.what))
    }
}

impl Agenda<u64> {
    /// Moves every command id whose time has come to `finished`.
    pub(crate) fn finish(&mut self, now_ns: u64, finished: &mut Vec<Completion>) {
        while let Some((at_ns, id)) = self.pop_due(now_ns) {
            finished.push(Completion { id, at_ns });
        }
    }
}
