//! The path of a bio: joined to a request or given one, plugged, scheduled, dispatched, served.

mod drive;
mod flush;
mod parts;
mod plug;
mod pool;
mod stack;
mod throttle;

pub use self::drive::Drive;
pub use self::flush::Flushing;
pub use self::parts::{Parts, Submitted};
pub use self::plug::Plugging;
pub use self::pool::{Pools, Sharing};
pub use self::stack::Layer;
