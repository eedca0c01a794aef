//! The command line.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::canned::Message;

/// How the client waits for replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Io {
    #[value(name = "io_uring")]
    Uring,
    Epoll,
}

/// How the server serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Echo {
    /// A thread per connection, as `MariaDB`'s: a request wakes one
    Threads,
    /// One thread for all: a request seldom wakes it
    Epoll,
}

/// The word of a choice, as the command line has it.
pub fn word(choice: &impl ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// What bare sending and receiving costs.
#[derive(Debug, Parser)]
pub struct Options {
    /// `serve`: be the server
    #[arg(value_parser = ["serve"])]
    pub part: Option<String>,
    /// Connections
    #[arg(long, default_value_t = 64)]
    pub clients: usize,
    /// Of all of them together
    #[arg(long, default_value_t = 200_000)]
    pub round_trips: u64,
    #[arg(long, value_enum, default_value_t = Io::Uring)]
    pub io: Io,
    #[arg(long, value_enum, default_value_t = Echo::Threads)]
    pub echo: Echo,
    /// CPU time that the server spends on each request, so that replies come at the pace of a real server's; faster ones
    /// come in larger batches, which cost a client less
    #[arg(long = "work-us", default_value = "0", value_parser = microseconds)]
    pub work: Duration,
    /// Over the loopback instead of a unix socket
    #[arg(long)]
    pub tcp: bool,
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
    pub server_cpus: Option<String>,
    /// What is sent and answered.
    #[arg(skip = Message::text())]
    pub message: Message,
}

impl Options {
    /// Reads it.
    pub fn read() -> Result<Self, Box<dyn Error>> {
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

fn microseconds(given: &str) -> Result<Duration, Box<dyn Error + Send + Sync>> {
    Ok(Duration::try_from_secs_f64(given.parse::<f64>()? / 1e6)?)
}
