//! `dbdyno-load VERB [flags]`.

use std::env;
use std::process::ExitCode;

use dbdyno_load::error::Error;
use dbdyno_load::{flags, slap};

const VERBS: [&str; 1] = ["slap"];

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let verb = arguments.next().unwrap_or_default();
    let outcome = match verb.to_string_lossy().as_ref() {
        "slap" => slap::main(arguments),
        "--help" | "-h" | "-?" | "help" => {
            println!("usage: dbdyno-load VERB [flags]\nverbs: {}", VERBS.join(", "));
            Ok(0)
        }
        "--version" | "-V" => {
            println!("dbdyno-load {}", env!("CARGO_PKG_VERSION"));
            Ok(0)
        }
        other => Err(unknown_verb(other)),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("dbdyno-load: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn unknown_verb(given: &str) -> Error {
    let hint =
        flags::nearest(given, VERBS.into_iter()).map_or_else(String::new, |near| format!(": did you mean {near}?"));
    Error::Usage(format!("no verb {given:?}{hint}; verbs: {}", VERBS.join(", ")))
}
