//! What is queued: bios, the requests that carry them, and the structures that find them.

mod lists;
mod request;
mod shared;

pub use self::lists::{Fifo, Sorted};
pub use self::request::{Bio, Class, Direction, FlushStep, NONE, Request, RequestId, Requests, Side};
pub use self::shared::{Limits, Queue};
