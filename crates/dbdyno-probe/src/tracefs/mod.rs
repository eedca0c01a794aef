//! The kernel's own trace, through a tracefs instance of ours.

pub mod event;
pub mod instance;
