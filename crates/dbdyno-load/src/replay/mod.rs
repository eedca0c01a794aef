//! The verb `replay-log`: the statements of a server's log, when its clients sent them.

pub mod log;
