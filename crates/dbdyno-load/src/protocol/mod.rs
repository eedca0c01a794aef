//! The MySQL client protocol, as far as a load generator needs it.

pub mod auth;
pub mod packet;
pub mod pen;
pub mod reply;
pub mod session;
