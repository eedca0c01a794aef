//! The MySQL client protocol, as far as a load generator needs it.

pub mod auth;
pub mod connection;
pub mod packet;
pub mod pen;
pub mod prepare;
pub mod reply;
pub mod server_key;
pub mod session;
pub mod tls;
pub mod tls_client;
pub mod wire;
