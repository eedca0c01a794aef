//! What is queued: bios, the requests that carry them, and the structures that find them.

mod bio;
mod ends;
mod fifo;
mod request;
mod shared;
mod sorted;

pub use self::bio::{Bio, Class, Direction};
pub use self::fifo::Fifo;
pub use self::request::{FlushStep, NONE, Request, RequestId, Requests, Side};
pub use self::shared::{Limits, Queue};
pub use self::sorted::Sorted;
