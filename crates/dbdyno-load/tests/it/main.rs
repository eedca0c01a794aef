//! Tests of the program against real servers and fake ones, in one binary: most wait for a server, so several run at
//! once.
#![allow(clippy::unwrap_used, clippy::doc_markdown, reason = "in a test a failure is a panic")]

mod common;
mod counters;
mod files;
mod ingest;
mod ledger;
mod limits;
mod login;
mod loss;
mod mysql;
mod names;
mod oltp;
mod prepare;
mod protocol;
mod replay;
mod script;
mod slap;
mod smack;
mod tls;
mod tpcc;
