//! The path of a bio: joined to a request or given one, plugged, scheduled, dispatched, served.

mod pool;
mod stack;
mod throttle;

pub use self::pool::{Pools, Sharing};
pub use self::stack::{Drive, Flushing, Layer, Parts, Plugging, Submitted};
