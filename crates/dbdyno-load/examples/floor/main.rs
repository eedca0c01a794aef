//! The floor under a load generator: what bare sending and receiving costs, with nothing else done.
//!
//!     cargo run --release -p dbdyno-load --example floor -- --clients=64
//!
//! One thread, N connections, and on each of them a closed loop: a request of A bytes, a reply of B bytes, no parsing,
//! no histogram, no clock but at the two ends. The server is this program once more; it answers A bytes with B canned
//! ones, at once or after some work. Prints a line of JSON with the client's CPU time per round trip, which is what any
//! client of a server that talks like this must pay.
//!
//! Cannot: say what a database server costs, or what a client pays that talks to one over TLS.
//!
//! What is sent to and fro, unless files are given, is one point select by key over sysbench's table
//! (`c` is CHAR(120)), as captured between a client and MariaDB 10.11 that agreed on
//! CLIENT_DEPRECATE_EOF and, for the prepared statement, on metadata that is sent only once.
#![allow(clippy::doc_markdown, reason = "io_uring and the like are names, not code")]

use std::error::Error;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::json;

mod echo;
mod epoll;
mod uring;

/// Round trips of each client before the measurement: threads are placed, caches and rings are warm.
const WARM_UP: u64 = 20;

/// A way to exchange messages over all connections.
trait Exchange {
    /// Makes `round_trips` over all connections together, one in flight on each.
    fn run(&mut self, round_trips: u64) -> Result<(), Box<dyn Error>>;
}

fn main() -> ExitCode {
    match Options::read().and_then(|options| if options.part.is_some() { serve(&options) } else { client(&options) }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("floor: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(options: &Options) -> Result<(), Box<dyn Error>> {
    Ok(echo::serve(options)?)
}

fn client(options: &Options) -> Result<(), Box<dyn Error>> {
    let (sockets, mut server) = connected(options)?;
    let measured = measure(options, &sockets);
    // It ends by itself when all connections are closed, but not while one of them hangs.
    server.kill()?;
    server.wait()?;
    println!("{}", measured?);
    Ok(())
}

/// CPU time of this process so far, microseconds.
fn cpu_us() -> Result<f64, nix::Error> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok((usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64)
}

fn measure(options: &Options, sockets: &[OwnedFd]) -> Result<serde_json::Value, Box<dyn Error>> {
    let (request, reply_size) = (&options.message.request[..], options.message.reply.len());
    let mut exchange: Box<dyn Exchange + '_> = match options.io {
        Io::Uring => Box::new(uring::Uring::new(sockets, request, reply_size)?),
        Io::Epoll => Box::new(epoll::Epoll::new(sockets, request, reply_size)?),
    };
    exchange.run(WARM_UP * sockets.len() as u64)?;
    let (cpu_before_us, start) = (cpu_us()?, Instant::now());
    exchange.run(options.round_trips)?;
    let (cpu_us, seconds) = (cpu_us()? - cpu_before_us, start.elapsed().as_secs_f64());
    let count = options.round_trips as f64;
    Ok(json!({
        "version": 1,
        "kind": "floor",
        "io": word(&options.io),
        "echo": word(&options.echo),
        "work_us": options.work.as_secs_f64() * 1e6,
        "transport": if options.tcp { "tcp" } else { "unix" },
        "clients": sockets.len(),
        "round_trips": options.round_trips,
        "request_bytes": request.len(),
        "reply_bytes": reply_size,
        "seconds_real": seconds,
        "cpu_us_per_round_trip": cpu_us / count,
        "round_trips_per_second": count / seconds,
    }))
}

/// Starts the server and connects all clients to it.
fn connected(options: &Options) -> Result<(Vec<OwnedFd>, Child), Box<dyn Error>> {
    let mut sockets = Vec::with_capacity(options.clients);
    if options.tcp {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let server = start_server(listener.into(), options)?;
        for _ in 0..options.clients {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            sockets.push(stream.into());
        }
        return Ok((sockets, server));
    }
    // An abstract name leaves no file behind.
    let address = SocketAddr::from_abstract_name(format!("dbdyno-floor-{}", std::process::id()))?;
    let listener = UnixListener::bind_addr(&address)?;
    let server = start_server(listener.into(), options)?;
    for _ in 0..options.clients {
        sockets.push(UnixStream::connect_addr(&address)?.into());
    }
    Ok((sockets, server))
}

/// This program once more as the server, which gets the listening socket as its standard input.
fn start_server(listener: OwnedFd, options: &Options) -> std::io::Result<Child> {
    let program = std::env::current_exe()?;
    let mut command = match &options.server_cpus {
        None => Command::new(program),
        Some(cpus) => {
            let mut command = Command::new("taskset");
            command.arg("--cpu-list").arg(cpus).arg(program);
            command
        }
    };
    command.arg("serve").args(std::env::args_os().skip(1));
    command.stdin(Stdio::from(listener)).spawn()
}

/// How the client waits for replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Io {
    #[value(name = "io_uring")]
    Uring,
    Epoll,
}

/// How the server serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Echo {
    /// A thread per connection, as `MariaDB`'s: a request wakes one
    Threads,
    /// One thread for all: a request seldom wakes it
    Epoll,
}

/// The word of a choice, as the command line has it.
fn word(choice: &impl ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// What bare sending and receiving costs.
#[derive(Debug, Parser)]
struct Options {
    /// `serve`: be the server
    #[arg(value_parser = ["serve"])]
    part: Option<String>,
    /// Connections
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// Of all of them together
    #[arg(long, default_value_t = 200_000)]
    round_trips: u64,
    #[arg(long, value_enum, default_value_t = Io::Uring)]
    io: Io,
    #[arg(long, value_enum, default_value_t = Echo::Threads)]
    echo: Echo,
    /// CPU time that the server spends on each request, so that replies come at the pace of a real server's; faster
    /// ones come in larger batches, which cost a client less
    #[arg(long = "work-us", default_value = "0", value_parser = microseconds)]
    work: Duration,
    /// Over the loopback instead of a unix socket
    #[arg(long)]
    tcp: bool,
    /// The bytes of a prepared statement instead of those of a text query
    #[arg(long)]
    prepared: bool,
    /// A file of other bytes
    #[arg(long, requires = "reply")]
    request: Option<PathBuf>,
    #[arg(long, requires = "request")]
    reply: Option<PathBuf>,
    /// Where the server may run, as taskset takes it (anywhere)
    #[arg(long, value_name = "LIST")]
    server_cpus: Option<String>,
    /// What is sent and answered.
    #[arg(skip = Message::text())]
    message: Message,
}

impl Options {
    /// Reads it.
    fn read() -> Result<Self, Box<dyn Error>> {
        let mut options = Self::parse();
        if options.prepared {
            options.message = Message::prepared();
        }
        if let (Some(request), Some(reply)) = (&options.request, &options.reply) {
            options.message = Message { request: std::fs::read(request)?, reply: std::fs::read(reply)? };
        }
        if options.clients == 0 || options.message.request.is_empty() || options.message.reply.is_empty() {
            return Err("at least one client, and a byte each way".into());
        }
        Ok(options)
    }
}

fn microseconds(text: &str) -> Result<Duration, Box<dyn Error + Send + Sync>> {
    Ok(Duration::try_from_secs_f64(text.parse::<f64>()? / 1e6)?)
}

/// A request and its reply, whole packets each.
#[derive(Debug, Clone)]
struct Message {
    request: Vec<u8>,
    reply: Vec<u8>,
}

const COLUMN: &[u8] = b"\x03def\x02sb\x07sbtest1\x07sbtest1\x01c\x01c\x0c-\0\xe0\x01\0\0\xfe\x01\0\0\0\0";
const VALUE: &[u8] = b"17233077177-28312413561-73887386069-31047812704-77576209874-\
    11837326596-76059144333-26271769781-14845380761-54472791871";
const END: [u8; 7] = [0xfe, 0, 0, 2, 0, 0, 0];

impl Message {
    /// COM_QUERY and a text row.
    pub fn text() -> Self {
        let row = [&[VALUE.len() as u8], VALUE].concat();
        Self {
            request: packet(0, b"\x03SELECT c FROM sbtest1 WHERE id=50321"),
            reply: [packet(1, &[1]), packet(2, COLUMN), packet(3, &row), packet(4, &END)].concat(),
        }
    }

    /// COM_STMT_EXECUTE with one BIGINT whose type the server knows, and a binary row.
    pub fn prepared() -> Self {
        let execute = b"\x17\x01\0\0\0\0\x01\0\0\0\0\0\x91\xc4\0\0\0\0\0\0";
        let row = [&[0, 0, VALUE.len() as u8], VALUE].concat();
        Self { request: packet(0, execute), reply: [packet(1, &[1, 0]), packet(2, &row), packet(3, &END)].concat() }
    }
}

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    [&[payload.len() as u8, 0, 0, sequence], payload].concat()
}
