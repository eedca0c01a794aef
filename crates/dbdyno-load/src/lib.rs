//! Load generator for MySQL and MariaDB servers.
//!
//! Data flows one way: flags -> options -> statements -> the event loop ([`event_loop`]) -> the
//! recorder ([`measure`]) -> results ([`output`]). Each workload is a verb with a module of its
//! own ([`slap`]); it says what the clients send and what the server needs before.
#![allow(clippy::doc_markdown, reason = "products such as MySQL are names, not code")]

pub mod account;

pub mod clock;
pub mod dialect;
pub mod distribution;
pub mod endpoint;
pub mod error;
pub mod event_loop;
pub mod flags;
pub mod ingest;
pub mod ledger;
pub mod login;
pub mod measure;
pub mod merge;
pub mod names;
pub mod network;
pub mod oltp;
pub mod output;
pub mod password;
pub mod protocol;
pub mod replay;
pub mod run;
pub mod run_options;
pub mod script;
pub mod slap;
pub mod smack;
pub mod statements;
pub mod stop;
pub mod table_options;
pub mod tables;
pub mod text;
pub mod tpcc;
pub mod values;
pub mod verb;
pub mod workload;
