//! The floor under a load generator: what bare sending and receiving costs, with nothing else done.
//!
//!     cargo run --release -p dbdyno-load --example floor -- --clients=64
//!
//! One thread, N connections, and on each of them a closed loop: a request of A bytes, a reply of B
//! bytes, no parsing, no histogram, no clock but at the two ends. The server is this program once
//! more; it answers A bytes with B canned ones, at once or after some work. Prints a line of JSON with the client's CPU time per
//! round trip, which is what any client of a server that talks like this must pay.
//!
//! Cannot: say what a database server costs, or what a client pays that talks to one over TLS.
#![allow(clippy::doc_markdown, reason = "io_uring and the like are names, not code")]

mod canned;
mod echo;
mod epoll;
mod options;
mod uring;

use std::error::Error;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::json;

use options::{Io, Options};

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
        "io": options::word(&options.io),
        "echo": options::word(&options.echo),
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
