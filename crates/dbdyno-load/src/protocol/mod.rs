//! The MySQL client protocol, as far as a load generator needs it.

pub mod auth;
pub mod compression;
pub mod connection;
pub mod encoder;
pub mod kept_rows;
pub mod packet;
pub mod patience;
pub mod prepare;
pub mod reply;
pub mod server_key;
pub mod session;
pub mod stream;
pub mod tls;
pub mod tls_client;
