//! The command line.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use lexopt::{Arg, Parser, ValueExt};

use crate::canned::Message;

const HELP: &str = "usage: floor [flags]
  --clients=N          connections (64)
  --round-trips=N      of all of them together (200000)
  --io=io_uring|epoll  how the client waits (io_uring)
  --echo=threads|epoll the server: a thread per connection, as MariaDB's, or one for all (threads)
  --work-us=N          CPU time that the server spends on each request, so that replies come at the pace of a real
                       server's; faster ones come in larger batches, which cost a client less (0)
  --tcp                over the loopback instead of a unix socket
  --prepared           the bytes of a prepared statement instead of those of a text query
  --request=FILE       other bytes; needs --reply
  --reply=FILE
  --server-cpus=LIST   where the server may run, as taskset takes it (anywhere)";

/// How the client waits for replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Io {
    Uring,
    Epoll,
}

impl Io {
    pub fn name(self) -> &'static str {
        match self {
            Self::Uring => "io_uring",
            Self::Epoll => "epoll",
        }
    }
}

/// How the server serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Echo {
    /// A thread per connection: a request wakes one.
    Threads,
    /// One thread for all: a request seldom wakes it.
    Epoll,
}

impl Echo {
    pub fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Epoll => "epoll",
        }
    }
}

/// What the command line asks for.
#[derive(Debug)]
pub struct Options {
    /// Be the server.
    pub serve: bool,
    pub clients: usize,
    pub round_trips: u64,
    pub io: Io,
    pub echo: Echo,
    /// CPU time that the server spends on each request.
    pub work: Duration,
    pub tcp: bool,
    pub message: Message,
    pub server_cpus: Option<String>,
}

impl Options {
    /// Reads it.
    pub fn read() -> Result<Self, Box<dyn Error>> {
        let mut options = Self {
            serve: false,
            clients: 64,
            round_trips: 200_000,
            io: Io::Uring,
            echo: Echo::Threads,
            work: Duration::ZERO,
            tcp: false,
            message: Message::text(),
            server_cpus: None,
        };
        let mut files: [Option<PathBuf>; 2] = [None, None];
        let mut parser = Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Value(word) if word == "serve" => options.serve = true,
                Arg::Long("clients") => options.clients = parser.value()?.parse()?,
                Arg::Long("round-trips") => options.round_trips = parser.value()?.parse()?,
                Arg::Long("io") => options.io = one_of(&parser.value()?.string()?, [Io::Uring, Io::Epoll], Io::name)?,
                Arg::Long("echo") => {
                    options.echo = one_of(&parser.value()?.string()?, [Echo::Threads, Echo::Epoll], Echo::name)?;
                }
                Arg::Long("work-us") => {
                    options.work = Duration::try_from_secs_f64(parser.value()?.parse::<f64>()? / 1e6)?;
                }
                Arg::Long("tcp") => options.tcp = true,
                Arg::Long("prepared") => options.message = Message::prepared(),
                Arg::Long("request") => files[0] = Some(parser.value()?.into()),
                Arg::Long("reply") => files[1] = Some(parser.value()?.into()),
                Arg::Long("server-cpus") => options.server_cpus = Some(parser.value()?.string()?),
                Arg::Long("help") => return Err(HELP.into()),
                other => return Err(format!("{}\n{HELP}", other.unexpected()).into()),
            }
        }
        match files {
            [None, None] => {}
            [Some(request), Some(reply)] => {
                options.message = Message { request: std::fs::read(request)?, reply: std::fs::read(reply)? };
            }
            _ => return Err("--request and --reply: give both or none".into()),
        }
        if options.clients == 0 || options.message.request.is_empty() || options.message.reply.is_empty() {
            return Err("at least one client, and a byte each way".into());
        }
        Ok(options)
    }
}

fn one_of<T: Copy>(text: &str, all: [T; 2], name: fn(T) -> &'static str) -> Result<T, String> {
    let found = all.into_iter().find(|value| name(*value) == text);
    found.ok_or_else(|| format!("{text}: use {} or {}", name(all[0]), name(all[1])))
}
