//! Asks the emulated disk below the server for a cut, right after an acknowledgement was read.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
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
    at_acks: Vec<u64>,
    after_ddl: Vec<u64>,
    /// Acknowledgements read so far, by all threads.
    acks: AtomicU64,
    /// Those of DDL statements.
    ddl_acks: AtomicU64,
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
            at_acks: options.at_acks.clone(),
            after_ddl: options.after_ddl.clone(),
            acks: AtomicU64::new(0),
            ddl_acks: AtomicU64::new(0),
        })
    }

    /// An acknowledgement was read: has the disk cut if this is one of those.
    ///
    /// # Errors
    /// The disk refuses, or does not answer.
    #[inline]
    pub fn acked(&self) -> Result<(), String> {
        let number = self.acks.fetch_add(1, Ordering::Relaxed) + 1;
        if self.at_acks.binary_search(&number).is_err() {
            return Ok(());
        }
        self.cut(&format!("ack-{number}"))
    }

    /// The same of a DDL statement.
    ///
    /// # Errors
    /// As [`Self::acked`].
    pub fn ddl_acked(&self) -> Result<(), String> {
        let number = self.ddl_acks.fetch_add(1, Ordering::Relaxed) + 1;
        if self.after_ddl.binary_search(&number).is_err() {
            return Ok(());
        }
        self.cut(&format!("ddl-{number}"))
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
    let value: Value = serde_json::from_str(answer).map_err(|_| "its answer is no JSON".to_owned())?;
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
        let options = CutOptions { socket: path, at_acks: vec![2, 4], after_ddl: vec![1] };
        let cuts = Cuts::connect(&options).unwrap();
        assert_eq!((cuts.ddl_acked(), cuts.ddl_acked()), (Ok(()), Ok(())));
        let outcomes: Vec<_> = (0..5).map(|_| cuts.acked()).collect();
        std::fs::remove_file(&options.socket).unwrap();
        let names = ["ddl-1", "ack-2", "ack-4"].map(|name| format!("{{\"name\":\"{name}\",\"op\":\"cut\"}}\n"));
        assert_eq!(disk.join().unwrap(), names);
        assert!(outcomes[..3].iter().all(Result::is_ok));
        assert!(outcomes[3].as_ref().unwrap_err().contains("did not take the cut ack-4: not armed"));
        assert!(Cuts::connect(&options).is_err());
    }
}
