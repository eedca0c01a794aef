//! Tests of the program against real servers and fake ones, in one binary: most wait for a server, so several run at once.
#![allow(clippy::unwrap_used, clippy::doc_markdown, reason = "in a test a failure is a panic")]

mod common;
mod compression;
mod counters;
mod hostile;
mod ingest;
mod ledger;
mod limits;
mod login;
mod loss;
mod mysql;
mod names;
mod oltp;
mod oltp_wire;
mod output;
mod prepare;
mod protocol;
mod replay;
mod script;
mod script_account;
mod slap;
mod smack;
mod tls;
mod tpcc;
mod wire;
