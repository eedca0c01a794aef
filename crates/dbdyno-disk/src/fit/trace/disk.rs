//! What a trace shows of a disk that turns.
//!
//! Reads of the same sectors end whole revolutions apart, however many were outstanding. A single read at a distance
//! from the last takes the seek and then anything up to a revolution: of many at one distance the slowest says what the
//! seek takes at the least, and the quickest what at the most.

use std::collections::HashMap;

use dbdyno_device::Kind;

use super::requests::Request;
use crate::fit::estimate::Estimate;
use crate::fit::rotation::period;

/// What a read from a cache takes at the most, as a part of a revolution.
const HIT_TURNS: f64 = 0.12;
/// And its bytes, on the slowest interface.
const HIT_NS_PER_BYTE: f64 = 10.0;
/// The same while the revolution is not known, ns.
const HIT_NS: f64 = 1e6;
/// Within so long after a write the arm may be anywhere, ns.
const AFTER_WRITE_NS: u64 = 300_000_000;
/// Nearer places may lie on one track.
const NEAR_BYTES: u64 = 8 << 20;
/// Longer reads are not looked at one by one.
const LARGE_BYTES: u64 = 128 << 10;
/// After so long a pause the drive has read ahead what comes next.
const PAUSE_NS: u64 = 3_000_000;
/// Reads of one distance, at least, and distances at the most.
const REACH_MIN: usize = 50;
const REACHES_MAX: usize = 40;
const ROUNDS: usize = 3;
/// Sequential reads are cut into pieces, which must be so large and keep the drive so busy to show its rate.
const PIECE_BYTES: u64 = 16 << 20;
const PIECE_BYTES_MIN: u64 = 2 << 20;
const BUSY_MIN: f64 = 0.9;
const SAMPLES_MIN: usize = 10;
/// Revolutions that disks have, ms, and a spread that is theirs: the middle half of what is even over a revolution is half
/// of it, that of other latencies is less.
const TURN_MS: std::ops::Range<f64> = 3.5..18.0;
const EVEN: std::ops::Range<f64> = 0.49..0.62;

/// How the revolution was seen.
#[derive(Debug, Clone, Copy)]
pub enum Turn {
    /// From reads of the same sectors, ns.
    Repeated(Estimate),
    /// From how far the latencies of one distance spread, ns.
    Spread(Estimate),
}

impl Turn {
    pub fn ns(self) -> f64 {
        match self {
            Self::Repeated(found) | Self::Spread(found) => found.value,
        }
    }
}

/// A seek over so many bytes; ns with all that a read takes beside it, but for the passage and the transfer.
#[derive(Debug, Clone, Copy)]
pub struct Reach {
    pub bytes: f64,
    pub ns: Estimate,
}

/// Everything that was found; what is `None` the trace does not show.
#[derive(Debug)]
pub struct Disk {
    pub turn: Turn,
    pub reaches: Vec<Reach>,
    /// Sequential reads, bytes a second: at the beginning of the disk and at its end.
    pub rates: (Option<Estimate>, Option<Estimate>),
    /// What a request takes that needs no arm, ns, and bytes a second over the interface.
    pub overhead: Option<Estimate>,
    pub interface: Option<Estimate>,
    /// Whether writes are taken into a cache, of how many single ones; and what they take, ns.
    pub write_cache: Option<(bool, Estimate)>,
    /// How many of how many reads that continue a read were in the cache: of first ones, and of later ones.
    pub ahead: [(usize, usize); 2],
}

/// A single read at a distance from where the arm was.
struct Located {
    distance_bytes: u64,
    ns: f64,
}

/// Looks at all requests; `None` where no revolution shows.
pub fn disk(requests: &[Request], end_bytes: u64) -> Option<Disk> {
    let turn = turn(requests)?;
    let hit_ns = turn.ns() * HIT_TURNS;
    let rates = rates(requests, end_bytes);
    let write_cache = write_cache(requests, turn.ns());
    let (overhead, interface) = cached(requests, hit_ns, write_cache.is_some_and(|(taken, _)| taken));
    let media = [rates.0, rates.1].into_iter().flatten().map(|rate| rate.value).next().unwrap_or(150e6);
    let ns_per_byte = 1e9 / media + 1e9 / interface.map_or(550e6, |rate| rate.value);
    let reaches = reaches(located(requests, hit_ns, ns_per_byte), turn.ns());
    Some(Disk { turn, reaches, rates, overhead, interface, write_cache, ahead: ahead(requests, hit_ns) })
}

fn turn(requests: &[Request]) -> Option<Turn> {
    let mut again = HashMap::<(u64, u64), Vec<f64>>::new();
    let slow = requests.iter().filter(|request| request.kind == Kind::Read && request.latency_ns() > HIT_NS);
    slow.for_each(|read| again.entry((read.offset_bytes, read.bytes)).or_default().push(read.done_ns as f64));
    let times: Vec<Vec<f64>> = again.into_values().filter(|times| times.len() > 1).collect();
    if let Some(found) = period(&sorted(times)) {
        return Some(Turn::Repeated(found));
    }
    spread(located(requests, HIT_NS, 0.0)).map(Turn::Spread)
}

/// Times in order, and the lists too: a map gives them in any.
fn sorted(mut times: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    for times in &mut times {
        times.sort_by(f64::total_cmp);
    }
    times.sort_by(|one, other| one[0].total_cmp(&other[0]));
    times
}

/// The revolution of latencies that are even over it at each distance.
fn spread(mut located: Vec<Located>) -> Option<Estimate> {
    const AT_ONCE: usize = 100;
    located.sort_by_key(|read| read.distance_bytes);
    let turns: Vec<f64> = located
        .chunks_exact(AT_ONCE)
        .filter_map(|reads| {
            let mut ns: Vec<f64> = reads.iter().map(|read| read.ns).collect();
            ns.sort_by(f64::total_cmp);
            let within = |part: usize| ns[AT_ONCE - part] - ns[part - 1];
            EVEN.contains(&(within(25) / within(5))).then(|| within(5) / 0.9)
        })
        .collect();
    let found = Estimate::median(&turns).filter(|_| turns.len() * 2 > located.len() / AT_ONCE)?;
    (turns.len() >= 3 && TURN_MS.contains(&(found.value / 1e6))).then_some(found)
}

/// Single reads from the medium, less what their bytes take, of which is known where the arm was.
fn located(requests: &[Request], hit_ns: f64, ns_per_byte: f64) -> Vec<Located> {
    let (mut found, mut arm, mut wrote_ns) = (Vec::new(), Arm::default(), None::<u64>);
    for request in requests {
        let from = arm.end_bytes.filter(|_| wrote_ns.is_none_or(|ns| request.at_ns > ns + AFTER_WRITE_NS));
        let single = request.alone && request.kind == Kind::Read && request.bytes <= LARGE_BYTES;
        if let (true, Some(from)) = (single && request.latency_ns() > hit_ns, from) {
            let distance_bytes = from.abs_diff(request.offset_bytes);
            if distance_bytes >= NEAR_BYTES {
                let ns = request.latency_ns() - request.bytes as f64 * ns_per_byte;
                found.push(Located { distance_bytes, ns });
            }
        }
        match request.kind {
            Kind::Read => arm.goes(request, hit_ns),
            Kind::Write if request.latency_ns() > hit_ns => arm.goes(request, hit_ns),
            Kind::Write | Kind::Flush | Kind::Discard => wrote_ns = Some(request.done_ns),
        }
    }
    found
}

/// Where the arm is after what was done last.
#[derive(Default)]
struct Arm {
    end_bytes: Option<u64>,
    done_ns: u64,
}

impl Arm {
    fn goes(&mut self, request: &Request, hit_ns: f64) {
        let continues = self.end_bytes == Some(request.offset_bytes);
        if request.done_ns >= self.done_ns && (continues || request.latency_ns() > hit_ns) {
            *self = Self { end_bytes: Some(request.end_bytes()), done_ns: request.done_ns };
        }
    }
}

/// Seeks by distance. Reads that are looked at together are not at one distance: what the curve so far says of the
/// difference is taken off them.
fn reaches(mut located: Vec<Located>, turn_ns: f64) -> Vec<Reach> {
    located.sort_by_key(|read| read.distance_bytes);
    let count = (located.len() / REACH_MIN).min(REACHES_MAX);
    if count == 0 {
        return Vec::new();
    }
    let mut found: Vec<Reach> = Vec::new();
    for _ in 0..ROUNDS {
        let of = |reads: &[Located]| {
            let bytes = reads[reads.len() / 2].distance_bytes as f64;
            let more_ns = |read: &Located| curve_ns(&found, read.distance_bytes as f64) - curve_ns(&found, bytes);
            let ns: Vec<f64> = reads.iter().map(|read| read.ns - more_ns(read)).collect();
            Reach { bytes, ns: seek(&ns, turn_ns) }
        };
        found = located.chunks_exact(located.len() / count).map(of).collect();
    }
    rising(&found)
}

/// Seeks that never take less than shorter ones: where they would, neighbours are as long as their mean. An interval holds
/// what the neighbours say of its distance, too, as reads that are looked at together are not at one.
fn rising(found: &[Reach]) -> Vec<Reach> {
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for reach in found {
        blocks.push((reach.ns.value, 1));
        while let [.., (before, of), (value, n)] = blocks[..]
            && before > value
        {
            blocks.truncate(blocks.len() - 2);
            blocks.push(((before * of as f64 + value * n as f64) / (of + n) as f64, of + n));
        }
    }
    let values = blocks.into_iter().flat_map(|(value, n)| std::iter::repeat_n(value, n));
    let with = |(index, value): (usize, f64)| {
        let Reach { bytes, ns } = found[index];
        let neighbours = [index.checked_sub(1).and_then(|before| found.get(before)), found.get(index + 1)];
        let around: Vec<Reach> = neighbours.into_iter().flatten().copied().collect();
        let said = if around.len() == 2 { curve_ns(&around, bytes) } else { value };
        let (low, high) = (ns.low.min(said).min(value), ns.high.max(said).max(value));
        Reach { bytes, ns: Estimate { value, low, high, ..ns } }
    };
    values.enumerate().map(with).collect()
}

/// The curve through what was found, straight between two distances and on beyond them.
fn curve_ns(found: &[Reach], bytes: f64) -> f64 {
    if found.len() < 2 {
        return 0.0;
    }
    let after = found.partition_point(|reach| reach.bytes < bytes).clamp(1, found.len() - 1);
    let (one, other) = (found[after - 1], found[after]);
    let share = (bytes - one.bytes) / (other.bytes - one.bytes).max(1.0);
    one.ns.value + (other.ns.value - one.ns.value) * share
}

/// The seek of latencies that lie anywhere from it to a revolution more. Those that lie in no such window with most
/// others (late answers, reads from a cache) do not count.
fn seek(ns: &[f64], turn_ns: f64) -> Estimate {
    let mut sorted = ns.to_vec();
    sorted.sort_by(f64::total_cmp);
    let end_of = |first: usize| sorted.partition_point(|ns| *ns <= sorted[first] + turn_ns);
    let best = (0..sorted.len()).max_by_key(|first| (end_of(*first) - first, std::cmp::Reverse(*first))).unwrap_or(0);
    let window = &sorted[best..end_of(best)];
    // The quickest came so long after the seek, and the slowest so long before the end of the revolution, on average.
    let beyond_ns = turn_ns / (window.len() + 1) as f64;
    let (high, low) = (window[0], window[window.len() - 1] - turn_ns);
    let low = low.min(high - beyond_ns);
    Estimate::new(f64::midpoint(low, high), low, high, window.len())
}

/// Sequential reads that keep the drive busy, in the first and in the last third.
fn rates(requests: &[Request], end_bytes: u64) -> (Option<Estimate>, Option<Estimate>) {
    let (mut pieces, mut piece) = (Vec::new(), None::<Piece>);
    for request in requests.iter().filter(|request| request.kind == Kind::Read) {
        match &mut piece {
            Some(going) if going.end_bytes == request.offset_bytes && going.bytes < PIECE_BYTES => going.add(request),
            _ => pieces.extend(piece.replace(Piece::after(request))),
        }
    }
    pieces.extend(piece);
    let of = |from: f64, to: f64| {
        let within = |piece: &&Piece| (from..to).contains(&(piece.end_bytes as f64 / end_bytes as f64));
        let rates: Vec<f64> = pieces.iter().filter(within).filter_map(Piece::rate).collect();
        Estimate::median(&rates).filter(|_| rates.len() >= 3)
    };
    let whole = of(0.0, 2.0);
    (of(0.0, 1.0 / 3.0).or(whole), of(2.0 / 3.0, 2.0).or(whole))
}

/// Reads that follow each other, without the first.
struct Piece {
    from_ns: u64,
    end_ns: u64,
    end_bytes: u64,
    bytes: u64,
    busy_ns: u64,
}

impl Piece {
    fn after(request: &Request) -> Self {
        let Request { done_ns, .. } = *request;
        Self { from_ns: done_ns, end_ns: done_ns, end_bytes: request.end_bytes(), bytes: 0, busy_ns: 0 }
    }

    fn add(&mut self, request: &Request) {
        self.busy_ns += request.done_ns.saturating_sub(request.at_ns.max(self.end_ns));
        self.end_ns = self.end_ns.max(request.done_ns);
        self.end_bytes = request.end_bytes();
        self.bytes += request.bytes;
    }

    fn rate(&self) -> Option<f64> {
        let ns = (self.end_ns - self.from_ns) as f64;
        let shows = self.bytes >= PIECE_BYTES_MIN && self.busy_ns as f64 >= BUSY_MIN * ns;
        shows.then(|| self.bytes as f64 * 1e9 / ns)
    }
}

/// Single writes that take less than a quarter of a revolution, which few would that go to the medium, were taken into a
/// cache.
fn write_cache(requests: &[Request], turn_ns: f64) -> Option<(bool, Estimate)> {
    let single = requests.iter().filter(|request| request.alone && request.is_plain_write());
    let taken: Vec<f64> = single.filter(|write| write.bytes <= LARGE_BYTES).map(Request::latency_ns).collect();
    let median = Estimate::median(&taken).filter(|_| taken.len() >= SAMPLES_MIN)?;
    Some((median.value < 0.25 * turn_ns, median))
}

/// What a request takes beside its transfer that the cache answers or takes in, and the rate of the transfer.
fn cached(requests: &[Request], hit_ns: f64, writes_too: bool) -> (Option<Estimate>, Option<Estimate>) {
    let mut by_size = std::collections::BTreeMap::<u64, Vec<f64>>::new();
    let quick = |request: &Request| request.latency_ns() < hit_ns + request.bytes as f64 * HIT_NS_PER_BYTE;
    let single = |request: &Request| request.alone && request.bytes <= LARGE_BYTES && quick(request);
    let pairs = requests.windows(2).filter(|pair| single(&pair[1]));
    for pair in pairs {
        let [before, request] = [pair[0], pair[1]];
        let read_ahead = request.kind == Kind::Read
            && before.kind == Kind::Read
            && before.end_bytes() == request.offset_bytes
            && request.at_ns > before.done_ns + PAUSE_NS;
        if read_ahead || writes_too && request.is_plain_write() {
            by_size.entry(request.bytes).or_default().push(request.latency_ns());
        }
    }
    let medians = by_size.into_iter().filter(|(_, taken)| taken.len() >= SAMPLES_MIN);
    let medians: Vec<(u64, Estimate)> =
        medians.filter_map(|(bytes, taken)| Some((bytes, Estimate::median(&taken)?))).collect();
    let (Some((small, least)), Some((large, most))) = (medians.first(), medians.last()) else { return (None, None) };
    let more_bytes = (large - small) as f64;
    let rate = || most.map(|ns| more_bytes * 1e9 / (ns - least.value).max(1.0));
    let interface = (*large >= 4 * small && most.low > least.value).then(rate);
    let transfer_ns = *small as f64 * 1e9 / interface.map_or(550e6, |rate| rate.value);
    (Some(least.map(|ns| (ns - transfer_ns).max(0.0))), interface)
}

/// Whether reads that continue the one before, a while later, were in the cache.
fn ahead(requests: &[Request], hit_ns: f64) -> [(usize, usize); 2] {
    let (mut counts, mut run) = ([(0, 0); 2], 0_usize);
    for pair in requests.windows(2) {
        let [before, request] = [pair[0], pair[1]];
        let reads = before.kind == Kind::Read && request.kind == Kind::Read;
        run = if reads && before.end_bytes() == request.offset_bytes { run + 1 } else { 0 };
        if run > 0 && request.alone && request.at_ns > before.done_ns + PAUSE_NS {
            let (hits, all) = &mut counts[usize::from(run > 1)];
            (*hits, *all) = (*hits + usize::from(request.latency_ns() < hit_ns), *all + 1);
        }
    }
    counts
}
