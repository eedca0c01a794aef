//! A small server that logs everybody in and answers load queries as a test has it: late, wrongly, or never.
//!
//! What it cannot: prepared statements, TLS, passwords.
//!
//! For what happens before and during a login the server's end of one connection is a script.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use dbdyno_load::protocol::packet::{self, HEADER_SIZE, decode_header};

/// A query that holds this is one of the load; all others are answered politely.
pub const LOAD: &str = "LOAD";

const CLIENT_CONNECT_WITH_DB: u32 = 0x8;
const CLIENT_DEPRECATE_EOF: u32 = 0x0100_0000;
/// What it offers: the above, 4.1 with its passwords, transactions, and that it is no MariaDB.
const CAPABILITIES: u32 = 0x1 | CLIENT_CONNECT_WITH_DB | 0x200 | 0x2000 | 0x8000 | 0x8_0000 | CLIENT_DEPRECATE_EOF;

const COM_QUIT: u8 = 1;
const COM_QUERY: u8 = 3;

/// What follows the connect.
pub enum Greeting {
    /// As the protocol has it.
    Proper,
    /// These bytes, and then nothing.
    Bytes(&'static [u8]),
    /// The start of a long packet, and a byte of it every few milliseconds.
    Dripping,
}

/// How a load query is answered; an error closes the connection.
pub type Answer = dyn Fn(&mut Line, &Query) -> io::Result<()> + Send + Sync;

/// A load query.
#[derive(Debug)]
pub struct Query {
    /// Its number, from 0, among those of all connections.
    pub number: u64,
    /// When it came, after the first of all.
    pub at: Duration,
    pub sql: String,
}

/// The server's end of a connection.
pub struct Line {
    stream: UnixStream,
    /// The number of the next packet.
    sequence: u8,
    deprecate_eof: bool,
}

impl Line {
    /// Bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// A packet as bytes, numbered next.
    pub fn framed(&mut self, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_le_bytes();
        let packet = [&length[..3], &[self.sequence], payload].concat();
        self.sequence = self.sequence.wrapping_add(1);
        packet
    }

    /// A packet.
    pub fn packet(&mut self, payload: &[u8]) -> io::Result<()> {
        let packet = self.framed(payload);
        self.raw(&packet)
    }

    /// The next packet has the number after the next.
    pub fn skip_a_number(&mut self) {
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Done, no rows.
    pub fn ok(&mut self) -> io::Result<()> {
        self.packet(&[0, 0, 0, 2, 0, 0, 0])
    }

    /// Refused.
    pub fn error(&mut self, code: u16, message: &str) -> io::Result<()> {
        self.packet(&[&[0xff], &code.to_le_bytes()[..], b"#HY000", message.as_bytes()].concat())
    }

    /// The start of a result of one text column.
    pub fn head(&mut self) -> Vec<u8> {
        let mut bytes = self.framed(&[1]);
        bytes.extend(self.framed(b"\x03def\0\0\0\x01c\0\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0"));
        if !self.deprecate_eof {
            bytes.extend(self.framed(&[0xfe, 0, 0, 2, 0]));
        }
        bytes
    }

    /// Its end.
    pub fn tail(&mut self) -> Vec<u8> {
        let payload: &[u8] = if self.deprecate_eof { &[0xfe, 0, 0, 2, 0, 0, 0] } else { &[0xfe, 0, 0, 2, 0] };
        self.framed(payload)
    }

    /// A whole result of so many rows, as bytes.
    pub fn result(&mut self, rows: usize) -> Vec<u8> {
        let mut bytes = self.head();
        for _ in 0..rows {
            bytes.extend(self.framed(b"\x05value"));
        }
        bytes.extend(self.tail());
        bytes
    }

    /// A whole result of so many rows.
    pub fn rows(&mut self, rows: usize) -> io::Result<()> {
        let bytes = self.result(rows);
        self.raw(&bytes)
    }

    /// Closes both directions; whoever waits there sees it.
    pub fn close(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Both)?;
        Err(io::ErrorKind::ConnectionAborted.into())
    }

    /// One payload; `None` at the end. Requests of a test are shorter than a packet.
    fn request(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut header = [0; 4];
        match self.stream.read_exact(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload)?;
        self.sequence = header[3].wrapping_add(1);
        Ok(Some(payload))
    }

    fn log_in(&mut self, connection: u32) -> io::Result<()> {
        let capabilities = CAPABILITIES.to_le_bytes();
        let parts: [&[u8]; 9] = [
            b"\x0a8.0.99-fake\0",
            &connection.to_le_bytes(),
            b"12345678\0",
            &capabilities[..2],
            b"\x2d\x02\0",
            &capabilities[2..],
            &[21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            b"abcdefghijkl\0",
            b"mysql_native_password\0",
        ];
        self.packet(&parts.concat())?;
        let answer = self.request()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let theirs = answer.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        self.deprecate_eof = theirs & CLIENT_DEPRECATE_EOF != 0;
        self.ok()
    }
}

/// What the connections share.
struct Shared {
    answer: Box<Answer>,
    greeting: Greeting,
    /// What a query of the load holds.
    load: &'static str,
    queries: AtomicU64,
    first: Mutex<Option<Instant>>,
    ended: AtomicBool,
}

/// A running one. It ends when dropped; threads that still wait for a client end with it.
pub struct FakeServer {
    path: PathBuf,
    shared: Arc<Shared>,
}

impl FakeServer {
    /// One that answers load queries like this.
    pub fn answering(answer: impl Fn(&mut Line, &Query) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self::start(Greeting::Proper, LOAD, Box::new(answer))
    }

    /// One that answers all queries like this, also those around the load.
    pub fn answering_all(answer: impl Fn(&mut Line, &Query) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self::start(Greeting::Proper, "", Box::new(answer))
    }

    /// One that says this first.
    pub fn greeting(greeting: Greeting) -> Self {
        Self::start(greeting, LOAD, Box::new(|line, _| line.ok()))
    }

    fn start(greeting: Greeting, load: &'static str, answer: Box<Answer>) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = PathBuf::from(format!("/tmp/dbdyno-fake-{}-{number}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let shared = Arc::new(Shared {
            answer,
            greeting,
            load,
            queries: AtomicU64::new(0),
            first: Mutex::new(None),
            ended: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                if accepting.ended.load(Ordering::Relaxed) {
                    return;
                }
                let (shared, stream) = (Arc::clone(&accepting), stream.unwrap());
                // What goes wrong here is the client's leaving, of which the test hears from the client.
                thread::spawn(move || serve(stream, number as u32, &shared));
            }
        });
        Self { path, shared }
    }

    pub fn socket(&self) -> &Path {
        &self.path
    }

    /// Load queries so far.
    pub fn queries(&self) -> u64 {
        self.shared.queries.load(Ordering::Relaxed)
    }

    /// Starts counting anew: the next load query is the first.
    pub fn forget(&self) {
        *self.shared.first.lock().unwrap() = None;
        self.shared.queries.store(0, Ordering::Relaxed);
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        let _ = UnixStream::connect(&self.path);
        let _ = std::fs::remove_file(&self.path);
    }
}

fn serve(stream: UnixStream, number: u32, shared: &Shared) -> io::Result<()> {
    let mut line = Line { stream, sequence: 0, deprecate_eof: false };
    match shared.greeting {
        Greeting::Proper => line.log_in(number + 1)?,
        Greeting::Bytes(bytes) => {
            line.raw(bytes)?;
            // Until the client leaves.
            return io::copy(&mut line.stream, &mut io::sink()).map(drop);
        }
        Greeting::Dripping => {
            line.raw(&[0xff, 0xff, 0x7f, 0])?;
            loop {
                line.raw(b"x")?;
                sleep(Duration::from_millis(5));
            }
        }
    }
    while let Some(request) = line.request()? {
        match request.split_first() {
            None | Some((&COM_QUIT, _)) => return Ok(()),
            Some((&COM_QUERY, sql)) => {
                let sql = String::from_utf8_lossy(sql).into_owned();
                if sql.contains(shared.load) {
                    let at = shared.first.lock().unwrap().get_or_insert_with(Instant::now).elapsed();
                    let query = Query { number: shared.queries.fetch_add(1, Ordering::Relaxed), at, sql };
                    (shared.answer)(&mut line, &query)?;
                } else if sql.trim_start().to_ascii_uppercase().starts_with("SELECT") {
                    line.rows(1)?;
                } else {
                    line.ok()?;
                }
            }
            Some(_) => line.error(1047, "unknown command")?,
        }
    }
    Ok(())
}

/// Times in which a server does nothing: `length` long, the first after `first`, and one every `period`.
#[derive(Debug, Clone, Copy)]
pub struct Stalls {
    pub first: Duration,
    pub period: Duration,
    pub length: Duration,
}

impl Stalls {
    /// What is left at `at` of the stall that it lies in.
    pub fn left(&self, at: Duration) -> Duration {
        let Some(since_first) = at.checked_sub(self.first) else { return Duration::ZERO };
        let into = since_first.as_nanos() % self.period.as_nanos();
        self.length.saturating_sub(Duration::from_nanos(into as u64))
    }

    /// Sleeps to the end of a stall.
    pub fn sit_out(&self, at: Duration) {
        sleep(self.left(at));
    }
}

/// A greeting that offers everything, for mysql_native_password.
pub const GREETING: &[u8] = b"\x0a8.0.0\0\x01\0\0\0abcdefgh\0\xff\xff\x2d\x02\0\xff\xff\x15\
    \0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0mysql_native_password\0";

/// An OK packet.
pub const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];

/// The port where `script` has the first connection, and its thread.
pub fn server(script: impl FnOnce(Peer) + Send + 'static) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = thread::spawn(move || script(Peer(listener.accept().unwrap().0)));
    (port, thread)
}

/// The port where `script` has every connection, each in a thread of its own that ends with it.
pub fn server_of_all(script: impl Fn(&mut Peer) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = Arc::new(script);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (script, mut peer) = (Arc::clone(&script), Peer(stream.unwrap()));
            thread::spawn(move || script(&mut peer));
        }
    });
    port
}

/// The client of a script.
pub struct Peer(pub TcpStream);

impl Peer {
    /// Sends one packet.
    pub fn say(&mut self, sequence: u8, payload: &[u8]) {
        let mut out = Vec::new();
        packet::encode(sequence, payload, &mut out);
        // It may have left.
        let _ = self.0.write_all(&out);
    }

    /// Sends a byte every 100 ms, over and over, until the client leaves.
    pub fn drip(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().cycle() {
            thread::sleep(Duration::from_millis(100));
            if self.0.write_all(&[*byte]).is_err() {
                return;
            }
        }
    }

    /// The payload of its next packet; `None` when it has left.
    pub fn hear(&mut self) -> Option<Vec<u8>> {
        let mut header = [0; HEADER_SIZE];
        self.0.read_exact(&mut header).ok()?;
        let mut payload = vec![0; decode_header(header).0];
        self.0.read_exact(&mut payload).ok()?;
        Some(payload)
    }

    /// Lets it in whoever it is.
    pub fn let_in(&mut self) {
        self.say(0, GREETING);
        self.hear().unwrap();
        self.say(2, OK);
    }
}
