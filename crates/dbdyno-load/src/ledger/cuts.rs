//! Asks the emulated disk below the server for a cut, right after an acknowledgement was read.
//!
//! Which one is said by time, as no rate is known before a run: the first from a moment on. Moments are counted from the first
//! acknowledgement of a transaction of the measured load.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::error::Error;

use super::options::CutOptions;

/// How long the disk may take for an answer.
const ANSWER: Duration = Duration::from_secs(60);

/// The control socket of a disk, and when it is asked.
#[derive(Debug)]
pub struct Cuts {
    path: PathBuf,
    stream: Mutex<BufReader<UnixStream>>,
    /// When the first acknowledgement was read; 0: none was yet.
    began_ns: AtomicU64,
    acks: Due,
    ddls: Due,
}

/// Moments in rising order, from each of which on the next event is to be cut.
#[derive(Debug)]
struct Due {
    after_ns: Vec<u64>,
    next: AtomicUsize,
}

impl Due {
    fn new(after_ns: &[u64]) -> Self {
        Self { after_ns: after_ns.to_vec(), next: AtomicUsize::new(0) }
    }

    /// The number, from 1, of a moment that has passed and that no other thread has seen to.
    #[inline]
    fn passed(&self, since_ns: u64) -> Option<usize> {
        let next = self.next.load(Ordering::Relaxed);
        if self.after_ns.get(next).is_none_or(|after_ns| since_ns < *after_ns) {
            return None;
        }
        let claimed = self.next.compare_exchange(next, next + 1, Ordering::Relaxed, Ordering::Relaxed);
        claimed.ok().map(|before| before + 1)
    }
}

impl Cuts {
    /// Connects.
    ///
    /// # Errors
    /// There is no such disk.
    pub fn connect(options: &CutOptions) -> Result<Self, Error> {
        let failed = |error| Error::File(options.socket.clone(), error);
        let stream = UnixStream::connect(&options.socket).map_err(failed)?;
        stream.set_read_timeout(Some(ANSWER)).map_err(failed)?;
        Ok(Self {
            path: options.socket.clone(),
            stream: Mutex::new(BufReader::new(stream)),
            began_ns: AtomicU64::new(0),
            acks: Due::new(&options.acks_after_ns),
            ddls: Due::new(&options.ddls_after_ns),
        })
    }

    /// An acknowledgement was read at `now_ns`: has the disk cut if this is one of those.
    ///
    /// # Errors
    /// The disk refuses, or does not answer.
    #[inline]
    pub fn acked(&self, now_ns: u64) -> Result<(), String> {
        let mut began_ns = self.began_ns.load(Ordering::Relaxed);
        if began_ns == 0 {
            let first = self.began_ns.compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed);
            began_ns = first.map_or_else(|other_ns| other_ns, |_| now_ns);
        }
        match self.acks.passed(now_ns.saturating_sub(began_ns)) {
            Some(moment) => self.cut(&format!("ack-{moment}")),
            None => Ok(()),
        }
    }

    /// The same of a DDL statement.
    ///
    /// # Errors
    /// As [`Self::acked`].
    pub fn ddl_acked(&self, now_ns: u64) -> Result<(), String> {
        let began_ns = self.began_ns.load(Ordering::Relaxed);
        let passed = (began_ns > 0).then(|| self.ddls.passed(now_ns.saturating_sub(began_ns))).flatten();
        passed.map_or(Ok(()), |moment| self.cut(&format!("ddl-{moment}")))
    }

    /// Has the disk cut now.
    ///
    /// # Errors
    /// It refuses, or does not answer.
    #[cold]
    pub fn cut(&self, name: &str) -> Result<(), String> {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let request = format!("{}\n", json!({"op": "cut", "name": name}));
        let mut answer = String::new();
        let asked = stream.get_mut().write_all(request.as_bytes()).and_then(|()| stream.read_line(&mut answer));
        match asked {
            Ok(0) => Err(failed(&self.path, name, "it hung up")),
            Ok(_) => check(&answer).map_err(|why| failed(&self.path, name, &why)),
            Err(error) => Err(failed(&self.path, name, &error.to_string())),
        }
    }
}

fn failed(path: &Path, name: &str, why: &str) -> String {
    format!("the disk at {} did not take the cut {name}: {why}", path.display())
}

/// Whether an answer says that it was done.
fn check(answer: &str) -> Result<(), String> {
    let value: Value = serde_json::from_str(answer).map_err(|_| "its answer is not JSON".to_owned())?;
    match value["ok"].as_bool() {
        Some(true) => Ok(()),
        _ => Err(value["error"].as_str().unwrap_or("its answer does not say that it was done").into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn the_disk_is_asked_after_the_acknowledgements_of_the_list() {
        let path = std::env::temp_dir().join(format!("dbdyno-cuts-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let disk = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            let mut asked = Vec::new();
            for answer in ["{\"ok\":true}\n", "{\"ok\":true}\n", "{\"ok\":false,\"error\":\"not armed\"}\n"] {
                let mut line = String::new();
                lines.read_line(&mut line).unwrap();
                asked.push(line);
                stream.write_all(answer.as_bytes()).unwrap();
            }
            asked
        });
        let options = CutOptions { socket: path, acks_after_ns: vec![20, 40], ddls_after_ns: vec![5] };
        let cuts = Cuts::connect(&options).unwrap();
        assert_eq!(cuts.ddl_acked(7), Ok(()), "nothing is measured yet");
        let mut outcomes = vec![cuts.acked(100)];
        assert_eq!([104, 105, 106].map(|now_ns| cuts.ddl_acked(now_ns)), [Ok(()), Ok(()), Ok(())]);
        outcomes.extend([119, 120, 139, 150, 160].map(|now_ns| cuts.acked(now_ns)));
        std::fs::remove_file(&options.socket).unwrap();
        let names = ["ddl-1", "ack-1", "ack-2"].map(|name| format!("{{\"name\":\"{name}\",\"op\":\"cut\"}}\n"));
        assert_eq!(disk.join().unwrap(), names);
        assert!(outcomes.iter().enumerate().all(|(place, outcome)| outcome.is_ok() == (place != 4)));
        assert!(outcomes[4].as_ref().unwrap_err().contains("did not take the cut ack-2: not armed"));
        assert!(Cuts::connect(&options).is_err());
    }

    #[test]
    fn of_threads_that_come_at_once_one_sees_to_each_moment() {
        let due = Due::new(&[5; 100]);
        let claimed = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mine: Vec<_> = (0..10_000).filter_map(|_| due.passed(5)).collect();
                    claimed.lock().unwrap().extend(mine);
                });
            }
        });
        let mut claimed = claimed.into_inner().unwrap();
        claimed.sort_unstable();
        assert_eq!(claimed, (1..=100).collect::<Vec<_>>());
    }
}
