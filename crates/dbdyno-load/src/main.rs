//! `dbdyno-load VERB [flags]`.

use std::env;
use std::process::ExitCode;

use dbdyno_load::error::Error;
use dbdyno_load::output::{print, say};
use dbdyno_load::verb::Verb;
use dbdyno_load::{bulk, flags, ingest, oltp, script, slap, smack, verb};

/// All verbs but `slap`, whose command line is mysqlslap's.
const VERBS: [&Verb; 5] = [&smack::VERB, &oltp::VERB, &ingest::VERB, &bulk::VERB, &script::VERB];

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let verb = arguments.next().unwrap_or_default();
    let outcome = match verb.to_string_lossy().as_ref() {
        "slap" => slap::main(arguments),
        "--help" | "-h" | "-?" | "help" => {
            print(&(usage() + "\n"));
            Ok(0)
        }
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

fn unknown_verb(given: &str) -> Error {
    let hint =
        flags::nearest(given, names().into_iter()).map_or_else(String::new, |near| format!(": did you mean {near}?"));
    Error::Usage(format!("no verb {given:?}{hint}; verbs: {}", names().join(", ")))
}

fn usage() -> String {
    format!("usage: dbdyno VERB [flags]\nverbs: {}; VERB --help tells more", names().join(", "))
}

fn names() -> Vec<&'static str> {
    std::iter::once("slap").chain(VERBS.into_iter().map(|verb| verb.name)).collect()
}
