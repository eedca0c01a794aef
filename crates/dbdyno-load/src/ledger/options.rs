//! The flags of `ledger` as one checked value, and the cuts that they ask for: the emulated disk below the server is
//! cut right after an acknowledgement was read.
//!
//! A cut is given as a time, because no rate is known before a run: the disk is cut at the first acknowledgement after
//! that time. Times count from the first acknowledged transaction of the measured load.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::record::{Content, PARTS_MAX};
use super::schema::{Tables, table};
use crate::error::Error;
use crate::flags::Flag;
use crate::run_options::CLIENTS_MAX;
use crate::table_options;
use crate::values::Values;

/// Longest payload: a row stays on one page of 16 KiB.
const PAYLOAD_MAX: usize = 7000;

/// A blob is longer than a page, which may be of 16 KiB.
const BLOB_MIN: usize = 16_385;
const BLOB_MAX: usize = 1 << 20;

/// Latest moment of a cut, seconds.
const LATEST_S: f64 = 1e6;

/// The flags.
pub const FLAGS: &[Flag] = &[
    Flag::value("ledger", "record in this file what was sent and when it was acknowledged; verify reads it"),
    Flag::value("accounts", "accounts between which amounts are moved"),
    Flag::value("parts", "accounts that a transaction changes"),
    Flag::value("payload", "bytes of every row"),
    Flag::value("blob-share", "percent of the rows that have a blob"),
    Flag::value("blob-size", "bytes of a blob, more than 16 KiB"),
    Flag::switch("expect-loss", "the server will be killed during the load: its loss ends the run with exit code 0"),
    Flag::value("ddl", "on or off: one more connection creates, alters, renames, truncates and drops tables"),
    Flag::value("cut-socket", "control socket of the emulated disk under the server, which takes the cuts"),
    Flag::value(
        "cut-acks-after",
        "seconds after the first acknowledgement of the measured load, or a list: the first acknowledgement after the N-th of \
         them is followed by a cut named ack-N",
    ),
    Flag::value("cut-ddls-after", "the same for acknowledged DDL statements, and cuts named ddl-N"),
    Flag::value("cut-ns", "verify: time of the power cut, ns of CLOCK_MONOTONIC (after all that was sent)"),
    Flag::value("cut-end-ns", "verify: time at which the cut was complete (--cut-ns)"),
    Flag::value("engine", "storage engine (the server's default)").short('e'),
    Flag::value(table_options::FLAG, table_options::HELP),
    Flag::value("schema", "schema of the tables"),
];

/// All options.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where everything is.
    pub tables: Tables,
    /// What the transactions hold.
    pub content: Content,
    /// Where times go.
    pub ledger: Option<PathBuf>,
    /// Most connections of a run.
    pub clients: usize,
    /// DDL is sent, too.
    pub ddl: bool,
    /// The server is to go away.
    pub expects_loss: bool,
    /// Cuts to be asked for.
    pub cuts: Option<CutOptions>,
}

/// Cuts of the disk that the clients ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutOptions {
    /// Control socket of the disk.
    pub socket: PathBuf,
    /// After the first acknowledgement from each of these times on, in rising order.
    pub acks_after_ns: Vec<u64>,
    /// The same after DDL statements.
    pub ddls_after_ns: Vec<u64>,
}

impl CutOptions {
    fn read(values: &Values<'_>) -> Result<Option<Self>, Error> {
        let moments = |flag| {
            let seconds: Vec<f64> = if values.has(flag) { values.list(flag, 0.0, 0.0, LATEST_S)? } else { Vec::new() };
            let mut after_ns: Vec<u64> = seconds.into_iter().map(|seconds| (seconds * 1e9) as u64).collect();
            after_ns.sort_unstable();
            Ok::<_, Error>(after_ns)
        };
        let (acks_after_ns, ddls_after_ns) = (moments("cut-acks-after")?, moments("cut-ddls-after")?);
        match (values.path("cut-socket"), acks_after_ns.is_empty() && ddls_after_ns.is_empty()) {
            (None, true) => Ok(None),
            (Some(socket), false) if values.has("ledger") => Ok(Some(Self { socket, acks_after_ns, ddls_after_ns })),
            (Some(_), false) => Err(Error::Usage("a cut needs --ledger: only that file shows what is lost".into())),
            _ => Err(Error::Usage("give --cut-socket together with --cut-acks-after or --cut-ddls-after".into())),
        }
    }
}

impl Options {
    /// Reads them.
    ///
    /// # Errors
    /// A value that is none or out of range, or flags that contradict each other.
    pub fn read(values: &Values<'_>) -> Result<Self, Error> {
        let clients = values.list("clients", 1, 1, CLIENTS_MAX)?;
        let content = Content {
            seed: values.number("seed", 1)?,
            payload_bytes: values.within("payload", 200, 1..=PAYLOAD_MAX)?,
            blob_bytes: values.within("blob-size", 20_000, BLOB_MIN..=BLOB_MAX)?,
            blob_percent: values.within("blob-share", 5, 0..=100)?,
            accounts: values.within("accounts", 20_000, 2..=100_000_000)?,
            parts: values.within("parts", 2, 2..=PARTS_MAX)?,
        };
        if content.parts > content.accounts as usize {
            return Err(Error::Usage(format!("--parts={}: more than --accounts={}", content.parts, content.accounts)));
        }
        let options = Self {
            tables: Tables::read(values, table)?,
            content,
            ledger: values.path("ledger"),
            clients: clients.iter().copied().max().unwrap_or(1),
            ddl: values.choice("ddl", &[("off", false), ("on", true)], false)?,
            expects_loss: values.has("expect-loss"),
            cuts: CutOptions::read(values)?,
        };
        if values.has("cut-ddls-after") && !options.ddl {
            return Err(Error::Usage("--cut-ddls-after means nothing without --ddl=on".into()));
        }
        let rates = values.list("rate", 0.0, 0.0, f64::MAX)?;
        if options.ledger.is_some() && clients.len().max(rates.len()) > 1 {
            return Err(Error::Usage("--ledger records one run: give one number of clients and one rate".into()));
        }
        Ok(options)
    }
}

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
        let answer_size = stream.get_mut().write_all(request.as_bytes()).and_then(|()| stream.read_line(&mut answer));
        match answer_size {
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

    fn read(flags: &[(&'static str, &'static str)]) -> Result<Options, String> {
        Options::read(&Values::of(flags)).map_err(|error| error.to_string())
    }

    #[test]
    fn mistakes_name_their_flag() {
        assert!(read(&[("blob-size", "16384")]).unwrap_err().contains("--blob-size=16384: give 16385 to"));
        assert!(read(&[("parts", "5"), ("accounts", "4")]).unwrap_err().contains("--parts=5: more than --accounts=4"));
        assert!(read(&[("ledger", "x"), ("clients", "1,2")]).unwrap_err().contains("records one run"));
        assert!(read(&[("clients", "1,2")]).is_ok());
        assert!(read(&[("cut-socket", "x")]).unwrap_err().contains("together with --cut-acks-after"));
        assert!(read(&[("cut-socket", "x"), ("cut-acks-after", "5")]).unwrap_err().contains("needs --ledger"));
        let cuts = [("cut-socket", "x"), ("cut-acks-after", "0.9,.25"), ("ledger", "y")];
        assert_eq!(read(&cuts).unwrap().cuts.unwrap().acks_after_ns, [250_000_000, 900_000_000]);
        assert!(read(&[("cut-ddls-after", "5"), cuts[0], cuts[2]]).unwrap_err().contains("without --ddl=on"));
        assert!(read(&[("schema", "mysql")]).unwrap_err().contains("belongs to the server"));
    }

    #[test]
    fn the_disk_is_asked_after_the_acknowledgements_of_the_list() {
        let path = std::env::temp_dir().join(format!("dbdyno-cuts-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let disk = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            let mut requests = Vec::new();
            for answer in ["{\"ok\":true}\n", "{\"ok\":true}\n", "{\"ok\":false,\"error\":\"not armed\"}\n"] {
                let mut line = String::new();
                lines.read_line(&mut line).unwrap();
                requests.push(line);
                stream.write_all(answer.as_bytes()).unwrap();
            }
            requests
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
    fn each_moment_is_claimed_by_one_thread() {
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
