//! The MySQL client protocol, as far as a load generator needs it.

pub mod auth;
pub mod packet;
pub mod patience;
pub mod reply;
pub mod session;
pub mod stream;
pub mod tls;
pub mod tls_client;
