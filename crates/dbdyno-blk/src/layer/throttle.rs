//! Writeback throttling (`wbt`, from 4.10): writes of the page cache are held back while reads take too long.
//!
//! Of such writes no more than a limit are allocated: half of a depth of 16 (a quarter within 100 ms of a read; all of
//! it for writes that a process waits for), and who waits is let on when they are few, on a drive with a write cache
//! when there is none. Each window of 100 ms, in which the fastest read took longer than `wbt_lat_usec`, or one has
//! been at the drive for longer and none was finished, halves the depth and shortens the windows; each other doubles it
//! again, while there are only writes to three quarters of what the drive takes. Direct writes are never held back.
//! Rules read in the source of 6.x; how the depth is scaled is from memory.
//!
//! Cannot: know background writeback from other, and that writers wait for clean memory, which gives all writes the
//! whole depth; `kswapd`; discards.

use std::collections::VecDeque;

use crate::queue::{Bio, Direction, Request, RequestId};

/// The depth that is scaled.
const DEPTH: u32 = 16;
/// A window, and how long a read counts as recent, nanoseconds.
const WINDOW_NS: u64 = 100_000_000;
/// Writes of a window without which reads are not slow because of them.
const WRITES_LEAST: u32 = 3;
/// Windows that show nothing, after which the depth goes a step back.
const UNKNOWN_MOST: u32 = 5;

/// What a window showed.
enum WindowState {
    Good,
    Slow,
    OnlyWrites,
    Unknown,
}

/// What was finished in a window.
#[derive(Debug, Default)]
struct Window {
    end_ns: u64,
    length_ns: u64,
    fastest_read_ns: Option<u64>,
    writes: u32,
}

/// The throttle of one device.
#[derive(Debug)]
pub(super) struct Throttle {
    latency_ns: u64,
    drive_depth: u32,
    has_write_cache: bool,
    /// Halvings of the depth; doublings are negative.
    step: i32,
    /// The depth can't be larger.
    is_most: bool,
    depth: u32,
    unknown: u32,
    window: Option<Window>,
    in_flight: u32,
    sleepers: VecDeque<Bio>,
    /// Sleepers may look whether they can go on.
    wakes: bool,
    /// When a read was last asked for or finished.
    read_ns: Option<u64>,
    /// The read that is watched, and since when the drive has it.
    watched: Option<(RequestId, u64)>,
}

/// A write that is held back: one of the page cache, also behind an `fsync`.
fn is_throttled(direction: Direction, sync: bool, no_idle: bool) -> bool {
    direction == Direction::Write && (!sync || no_idle)
}

impl Throttle {
    /// One with a target for the fastest read of a window, over a drive that takes `drive_depth` commands.
    pub fn new(latency_ns: u64, drive_depth: usize, has_write_cache: bool) -> Self {
        let mut throttle = Self {
            latency_ns,
            drive_depth: drive_depth as u32,
            has_write_cache,
            step: 0,
            is_most: false,
            depth: 0,
            unknown: 0,
            window: None,
            in_flight: 0,
            sleepers: VecDeque::new(),
            wakes: false,
            read_ns: None,
            watched: None,
        };
        throttle.rescale();
        throttle
    }

    /// Whether a bio may ask for a request; else it is kept until [`Throttle::next_admitted`] gives it.
    pub fn admits(&mut self, now_ns: u64, bio: &Bio) -> bool {
        self.settle(now_ns);
        if !is_throttled(bio.direction, bio.sync, bio.no_idle) {
            if bio.direction == Direction::Read {
                self.read_ns = Some(now_ns);
            }
            return true;
        }
        let admits = self.sleepers.is_empty() && self.in_flight < self.limit(now_ns, bio);
        if admits {
            self.count(now_ns);
        } else {
            self.wakes &= !self.sleepers.is_empty();
            self.sleepers.push_back(*bio);
        }
        admits
    }

    /// A bio that was kept and may ask for a request now.
    pub fn next_admitted(&mut self, now_ns: u64) -> Option<Bio> {
        let bio = *self.sleepers.front().filter(|_| self.wakes)?;
        if self.in_flight >= self.limit(now_ns, &bio) {
            self.wakes = false;
            return None;
        }
        self.count(now_ns);
        self.sleepers.pop_front()
    }

    /// When sleepers may be let on although nothing is finished.
    pub fn next_due(&self) -> Option<u64> {
        let window = self.window.as_ref().filter(|_| !self.sleepers.is_empty())?;
        Some(window.end_ns)
    }

    /// Ends the windows that are over.
    pub fn settle(&mut self, now_ns: u64) {
        while let Some(window) = self.window.take_if(|window| window.end_ns <= now_ns) {
            self.end_window(&window);
        }
    }

    /// The drive has a request.
    pub fn issued(&mut self, now_ns: u64, id: RequestId, request: &Request) {
        if request.direction == Direction::Read {
            self.settle(now_ns);
            self.watched.get_or_insert((id, now_ns));
        }
    }

    /// A request is finished, or became a part of another.
    pub fn ended(&mut self, now_ns: u64, id: RequestId, request: &Request) {
        self.settle(now_ns);
        if let Some(window) = self.window.as_mut().filter(|_| request.started && !request.bypasses) {
            let took_ns = now_ns - request.issued_ns;
            match request.direction {
                Direction::Read => {
                    window.fastest_read_ns = Some(window.fastest_read_ns.map_or(took_ns, |least| least.min(took_ns)));
                }
                Direction::Write => window.writes += 1,
            }
        }
        if request.direction == Direction::Read {
            self.read_ns = Some(now_ns);
            self.watched.take_if(|(watched, _)| *watched == id);
        } else if is_throttled(request.direction, request.sync, request.no_idle) {
            self.in_flight -= 1;
            let limit = if self.has_write_cache { 0 } else { self.normal() };
            // A drive with a write cache is left to empty what it has been given first.
            self.wakes |= self.in_flight == 0 || self.in_flight + (self.background() / 2).max(1) <= limit;
        }
    }

    fn count(&mut self, now_ns: u64) {
        self.in_flight += 1;
        if self.window.is_none() {
            self.begin_window(now_ns);
        }
    }

    fn begin_window(&mut self, now_ns: u64) {
        // Steps are whole, and roots of the kernel's are cut to a sixteenth.
        let root = f64::from((self.step.max(0) + 1) << 8).sqrt().floor() as u64;
        let length_ns = WINDOW_NS * 16 / root;
        self.window = Some(Window { end_ns: now_ns + length_ns, length_ns, ..Window::default() });
    }

    fn end_window(&mut self, window: &Window) {
        match self.judge(window) {
            WindowState::Slow => self.shrink(true),
            WindowState::Good | WindowState::OnlyWrites => self.grow(),
            WindowState::Unknown => {
                self.unknown += 1;
                if self.unknown >= UNKNOWN_MOST && self.step > 0 {
                    self.grow();
                } else if self.unknown >= UNKNOWN_MOST && self.step < 0 {
                    self.shrink(false);
                }
            }
        }
        if self.step != 0 || self.in_flight > 0 {
            self.begin_window(window.end_ns);
        }
    }

    fn judge(&self, window: &Window) -> WindowState {
        let is_slow = |took_ns| took_ns > self.latency_ns;
        let watched_ns = self.watched.map_or(0, |(_, since_ns)| window.end_ns - since_ns);
        if watched_ns > window.length_ns || (is_slow(watched_ns) && window.fastest_read_ns.is_none()) {
            return WindowState::Slow;
        }
        match window.fastest_read_ns {
            Some(took_ns) if window.writes >= WRITES_LEAST => {
                if is_slow(took_ns) {
                    WindowState::Slow
                } else {
                    WindowState::Good
                }
            }
            _ if window.writes > 0 || self.in_flight > 0 => WindowState::OnlyWrites,
            _ => WindowState::Unknown,
        }
    }

    fn grow(&mut self) {
        if !self.is_most {
            self.step -= 1;
            self.unknown = 0;
            self.rescale();
            self.wakes = true;
        }
    }

    fn shrink(&mut self, at_once: bool) {
        if self.depth > 1 {
            self.step = if at_once && self.step < 0 { 0 } else { self.step + 1 };
            self.unknown = 0;
            self.rescale();
        }
    }

    /// The depth after so many steps.
    fn rescale(&mut self) {
        if self.drive_depth == 1 {
            self.is_most = self.step <= 0;
            self.depth = if self.step > 0 { 1 } else { 2 };
            return;
        }
        let less = DEPTH.min(self.drive_depth) - 1;
        if self.step > 0 {
            self.is_most = false;
            self.depth = 1 + (less >> self.step.min(31));
        } else {
            let most = self.drive_depth * 3 / 4;
            let wanted = 1 + (less << -self.step);
            self.is_most = self.step < 0 && wanted > most;
            self.depth = if self.is_most { most } else { wanted };
        }
    }

    fn normal(&self) -> u32 {
        if self.depth <= 2 { self.depth } else { self.depth.div_ceil(2) }
    }

    fn background(&self) -> u32 {
        if self.depth <= 2 { 1 } else { self.depth.div_ceil(4) }
    }

    fn limit(&self, now_ns: u64, bio: &Bio) -> u32 {
        if bio.sync {
            self.depth
        } else if self.read_ns.is_some_and(|at_ns| now_ns < at_ns + WINDOW_NS) {
            self.background()
        } else {
            self.normal()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One whose depth was shrunk by so many steps, and whose windows then tell nothing.
    fn after_unknown_windows(step: i32, windows: u32) -> Throttle {
        let mut throttle = Throttle::new(2_000_000, 64, true);
        throttle.step = step;
        throttle.rescale();
        for _ in 0..windows {
            throttle.end_window(&Window::default());
        }
        throttle
    }

    #[test]
    fn windows_that_tell_nothing_lead_back_to_the_usual_depth_from_either_side() {
        let usual = Throttle::new(2_000_000, 64, true).depth;
        for step in [1, -1] {
            assert_ne!(after_unknown_windows(step, UNKNOWN_MOST - 1).depth, usual);
            let back = after_unknown_windows(step, UNKNOWN_MOST);
            assert_eq!((back.step, back.depth), (0, usual), "from step {step}");
        }
        assert_eq!(after_unknown_windows(2, 2 * UNKNOWN_MOST).depth, usual, "a step at a time");
        assert_eq!(after_unknown_windows(0, UNKNOWN_MOST).depth, usual);
    }
}
