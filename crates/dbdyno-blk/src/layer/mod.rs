//! The path of a bio: joined to a request or given one, plugged, scheduled, dispatched, served.

mod drive;
mod flush;
mod plug;
mod pool;
mod stack;

pub use self::drive::Drive;
pub use self::flush::Flushing;
pub use self::plug::Plugging;
pub use self::pool::{Pools, Sharing};
pub use self::stack::{Layer, Parts, Submitted};
