//! `dbdyno-load VERB [flags]`.

use std::collections::BTreeMap;
use std::env;
use std::process::ExitCode;

use dbdyno_common::similar::did_you_mean;
use dbdyno_load::error::Error;
use dbdyno_load::output::{print, say};
use dbdyno_load::verb::Verb;
use dbdyno_load::{ingest, ledger, merge, oltp, replay, script, slap, smack, tpcc, verb};

const VERBS: [&Verb; 9] = [
    &slap::VERB,
    &smack::VERB,
    &oltp::VERB,
    &tpcc::VERB,
    &ingest::VERB,
    &oltp::bulk::VERB,
    &script::VERB,
    &replay::VERB,
    &ledger::VERB,
];

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let verb = arguments.next().unwrap_or_default();
    let outcome = match verb.to_string_lossy().as_ref() {
        "--help" | "-h" | "-?" | "help" => {
            print(&(usage() + "\n"));
            Ok(0)
        }
        // For scripts: of every verb the defaults of its flags.
        "defaults" => {
            let all: BTreeMap<_, _> = VERBS.into_iter().map(|verb| (verb.name, verb.defaults())).collect();
            print(&format!("{}\n", serde_json::json!(all)));
            Ok(0)
        }
        "merge" => merge::main(arguments),
        "" => Err(Error::Usage(usage())),
        "--version" | "-V" => {
            print(&format!("dbdyno-load {}\n", env!("CARGO_PKG_VERSION")));
            Ok(0)
        }
        other => match VERBS.into_iter().find(|known| known.name == other) {
            Some(known) => verb::main(known, arguments),
            None => Err(unknown_verb(other)),
        },
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            say(&format!("dbdyno-load: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}

fn unknown_verb(verb: &str) -> Error {
    let hint = did_you_mean(verb, names().into_iter());
    Error::Usage(format!("there is no verb {verb:?}; the verbs are {}{hint}", names().join(", ")))
}

fn usage() -> String {
    format!("usage: dbdyno VERB [flags]\nverbs: {}; VERB --help says more", names().join(", "))
}

fn names() -> Vec<&'static str> {
    VERBS.into_iter().map(|verb| verb.name).collect()
}
