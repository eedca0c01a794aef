//! Everything that can keep a trace from being taken or read, or processors from being kept awake, with what to do
//! about it.

use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    #[error("{0}")]
    Usage(String),
    #[error("no block trace: {0}")]
    NoTrace(String),
    #[error("processors are not kept awake: {0}")]
    NotAwake(String),
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("{}:{line}: {reason}", path.display())]
    Trace { path: PathBuf, line: usize, reason: String },
    #[error("cannot write to standard output: {0}")]
    Announce(std::io::Error),
}

impl ProbeError {
    /// Makes an error of what a file's path met.
    pub fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        |source| Self::File { path: path.to_owned(), source }
    }

    /// 2 for what the user can put right on the command line, 1 for what the host refused.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Trace { .. } => 2,
            Self::NoTrace(_) | Self::NotAwake(_) | Self::File { .. } | Self::Announce(_) => 1,
        }
    }
}
