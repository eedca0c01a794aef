//! How long the parts of a verification take.

use std::collections::BTreeMap;

use crate::clock::now_ns;

/// Does some work and notes how long it took, s.
pub fn timed<T>(seconds: &mut BTreeMap<&'static str, f64>, name: &'static str, work: impl FnOnce() -> T) -> T {
    let begun_ns = now_ns();
    let done = work();
    seconds.insert(name, (now_ns() - begun_ns) as f64 / 1e9);
    done
}
