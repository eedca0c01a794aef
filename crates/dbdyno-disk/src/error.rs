//! Everything that can go wrong before a disk is up, with what to do about it.

use std::path::PathBuf;

use dbdyno_device::ModelError;

#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("cannot mount on {}: {reason}", path.display())]
    MountPoint { path: PathBuf, reason: String },
    #[error("cannot use the control socket {}: {reason}", path.display())]
    Control { path: PathBuf, reason: String },
    #[error("{0}")]
    Content(String),
    #[error("FUSE mount on {} failed: {source} (it needs root and /dev/fuse)", path.display())]
    Mount { path: PathBuf, source: std::io::Error },
    #[error("cannot start a thread: {source}")]
    Thread { source: std::io::Error },
    #[error("cannot measure {}: {source}", path.display())]
    Measure { path: PathBuf, source: std::io::Error },
    #[error("cannot write to standard output: {source}")]
    Announce { source: std::io::Error },
}

impl DiskError {
    /// 2 for what the user can put right on the command line, 1 for what the host refused.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Model(_) | Self::Content(_) | Self::MountPoint { .. } | Self::Control { .. } => 2,
            Self::Mount { .. } | Self::Measure { .. } | Self::Thread { .. } | Self::Announce { .. } => 1,
        }
    }
}
