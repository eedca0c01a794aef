use std::ffi::OsString;

use super::*;
use crate::command::{self, Asked};
use crate::slap::VERB;

fn parsed(line: &str) -> Result<Options, Error> {
    let arguments = line.split_whitespace().map(OsString::from);
    let arguments = std::iter::once("--no-defaults".into()).chain(arguments);
    match command::read(VERB.name, VERB.table(), 0, arguments, &mut Vec::new())? {
        Asked::Load(command) => read(&command.values()),
        other => panic!("{other:?}"),
    }
}

fn mistake(line: &str) -> String {
    let error = parsed(line).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    error.to_string()
}

#[test]
fn a_line_of_mysqlslap_is_understood() {
    let options = parsed(
        "-a -c 10,50 -i 3 -e innodb,myisam --number-of-queries=1000 -x 2 -y 3:1 \
         --auto-generate-sql-load-type=write --auto-generate-sql-add-autoincrement -uroot",
    )
    .unwrap();
    assert_eq!(options.run.clients, [10, 50]);
    assert_eq!(options.engines, ["innodb", "myisam"]);
    assert_eq!(options.load_name(), "write");
    let Source::Generated { shape, rows, .. } = options.source else {
        panic!("not generated");
    };
    assert_eq!(rows, 99);
    assert_eq!((shape.integers.count, shape.integers.indexed), (3, true));
    assert_eq!((shape.strings.count, shape.strings.indexed), (2, false));
}

#[test]
fn queries_are_split_evenly_and_the_rest_is_told() {
    let options = parsed("-a -c 3 --number-of-queries=10").unwrap();
    let (per_client, dropped) = options.per_client(3, 11);
    assert_eq!((per_client.queries, dropped), (Some(3), 1));
    let options = parsed("-a -c 3").unwrap();
    assert_eq!(options.per_client(3, 11).0.queries, Some(11));
}

#[test]
fn mistakes_of_users_are_told() {
    for (line, said) in [
        ("", "give -a (--auto-generate-sql) or --query"),
        ("-a --auto-generate-sql-load-type=key", "needs a key"),
        ("-a --auto-generate-sql-load-type=wirte", "did you mean write?"),
        ("-a --concurency=3", "did you mean --concurrency?"),
        ("-a -c 0", "1 to 100000 each"),
        ("-a -c 5 --number-of-queries=3", "leaves none"),
        ("-a --number-of-queries=3 --duration=5", "give one"),
        ("-a -x0 -y0", "without columns"),
        ("-a --create-schema=mysql", "belongs to the server"),
        ("-a --engine=x;y", "not the name of an engine"),
        ("-a --detach=x", "--detach=x"),
        ("-a --query=x", "leave out"),
    ] {
        let text = mistake(line);
        assert!(text.contains(said), "{line}: {text}");
    }
}

#[test]
fn flags_without_effect_are_noted() {
    let mut notes = Vec::new();
    let line = ["-a", "--no-defaults", "--debug-info"].map(OsString::from);
    command::read(VERB.name, VERB.table(), 0, line, &mut notes).unwrap();
    assert_eq!(notes, ["--debug-info is ignored: the report has the client's CPU"]);
}
