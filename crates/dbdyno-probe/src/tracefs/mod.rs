//! The kernel's own trace, through a tracefs instance of ours.

pub mod device;
pub mod event;
pub mod format;
pub mod instance;
pub mod page;
pub mod reader;
