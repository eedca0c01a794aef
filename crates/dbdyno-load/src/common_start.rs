//! A start at one moment with other processes, which may be on other hosts.
//!
//! The process says that it is ready, whoever has the others start too names the moment on this host's own
//! `CLOCK_MONOTONIC`, and every thread spins until then: a sleep ends some tens of microseconds late.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::clock::now_ns;
use crate::error::Error;
use crate::output::print;
use crate::stop::Stop;

/// Between two looks for the file.
const LOOK_AGAIN: Duration = Duration::from_micros(500);

/// How long the moment is waited for: others may still warm up.
const WAIT_MOST_NS: u64 = 3_600_000_000_000;

/// Before the start, from which on a thread no longer sleeps.
const SPIN_NS: u64 = 2_000_000;

/// Says that all is ready, and waits for the moment that the file names: nanoseconds of `CLOCK_MONOTONIC`, and a line's end.
///
/// # Errors
/// The moment is over or is none, or did not come.
pub fn named_in(path: &Path, stop: &Stop) -> Result<u64, Error> {
    let ready_ns = now_ns();
    print(&format!("ready {ready_ns}\n"));
    loop {
        match fs::read_to_string(path) {
            // Without the end of the line it is still being written.
            Ok(text) if text.ends_with('\n') => return moment(path, text.trim(), now_ns()),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::File(path.to_owned(), error)),
            _ => {}
        }
        if stop.asked() {
            return Err(Error::Interrupted);
        }
        if now_ns() - ready_ns > WAIT_MOST_NS {
            let hours = WAIT_MOST_NS / 3_600_000_000_000;
            return Err(Error::Failed(format!("{}: named no start for {hours} h", path.display())));
        }
        sleep(LOOK_AGAIN);
    }
}

fn moment(path: &Path, text: &str, now: u64) -> Result<u64, Error> {
    let path = path.display();
    let start: u64 = text.parse().map_err(|_| {
        Error::Usage(format!("{path}: {text:?} is no moment; it must be nanoseconds of this host's CLOCK_MONOTONIC"))
    })?;
    match start.checked_sub(now) {
        None => Err(Error::Failed(format!(
            "the start came too late: it was {:.3} ms ago when {path} was read",
            (now - start) as f64 / 1e6
        ))),
        Some(left) if left > WAIT_MOST_NS => Err(Error::Usage(format!(
            "{path}: the start is {} s from now; is it of another host's clock?",
            left / 1_000_000_000
        ))),
        Some(_) => Ok(start),
    }
}

/// Comes back at `start_ns`, or as soon after it as the kernel lets this thread; gives the time.
pub fn wait_until(start_ns: u64) -> u64 {
    loop {
        let now = now_ns();
        match start_ns.checked_sub(now) {
            None | Some(0) => return now,
            Some(left) if left > SPIN_NS => sleep(Duration::from_nanos(left - SPIN_NS)),
            Some(_) => std::hint::spin_loop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_to_come() {
        let read = |text, now| moment(Path::new("start"), text, now).map_err(|error| error.to_string());
        assert_eq!(read("100", 99), Ok(100));
        assert!(read("1000000", 3_500_000).unwrap_err().contains("2.500 ms ago"));
        assert!(read("soon", 0).unwrap_err().contains("no moment"));
        assert!(read(&(2 * WAIT_MOST_NS).to_string(), 0).unwrap_err().contains("another host's clock"));
    }

    #[test]
    fn no_thread_is_early() {
        let start = now_ns() + 3_000_000;
        assert!(wait_until(start) >= start);
        assert!(wait_until(1) > 1);
    }
}
