//! What is queued: bios, the requests that carry them, and the structures that find them.

mod lists;
mod request;

pub use self::lists::{Fifo, Limits, Queue, Sorted};
pub use self::request::{Bio, Class, Direction, FlushStep, NONE, Request, RequestId, Requests, Side};
