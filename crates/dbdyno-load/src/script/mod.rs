//! The verb `script`: a user's SQL file with parameters, transactions and weights.
//!
//! Data flows one way: text -> tokens and items ([`lexer`]) -> sections and bound
//! statements ([`parse`], [`binding`], [`model`]) -> what is sent ([`clients`]). [`stage`] deals
//! with the server before and after.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::OnceLock;

use dbdyno_common::bounded;
use dbdyno_common::similar::did_you_mean;

use self::clients::{Plan, ScriptClients};
use self::lexer::SourceFile;
use self::model::{Script, Template};
use self::stage::{Checked, Destination};
use crate::account::Confined;
use crate::error::Error;
use crate::flags::Flag;
use crate::names;
use crate::protocol::session::Session;
use crate::statements::{Kind, Statements};
use crate::table_options::{self, TableOptions};
use crate::values::Values;
use crate::verb::Verb;
use crate::workload::{Portion, ServerState, Stepwise, Workload};

mod binding;
mod clients;
pub(crate) mod lexer;
pub(crate) mod model;
mod parse;
pub(crate) mod stage;

const ABOUT: &str = "\
Runs the transactions of an SQL file, which has parameters, weights and the statements that make
and drop its tables:

  -- setup:
  CREATE TABLE items (id INT PRIMARY KEY, stock INT);
  INSERT INTO items SELECT seq, 100 FROM seq_1_to_1000;
  -- name: buy  weight: 3
  :id = zipf(1, 1000)
  BEGIN;
  SELECT stock FROM items WHERE id = :id;
  UPDATE items SET stock = stock - 1 WHERE id = :id;
  COMMIT;
  -- name: look  weight: 7
  :id = uniform(1, 1000)
  SELECT stock FROM items WHERE id = :id;

A value is drawn once per event and is one of uniform, zipf, gaussian, pareto, special, exponential
(low, high), sequence(), one_of('a', 'b'), text(40), digits(9), pattern('##-@'), uuid(), or a list
of them: list(10, uniform(1, 9)). See docs/script.md.

";

const FLAGS: &[Flag] = &[
    Flag::value("file", "the script, or several; FILE@WEIGHT gives one a weight").short('f'),
    Flag::value("script", "").same_as("file"),
    Flag::value("setup", "a script whose setup makes the tables and whose constants the others share"),
    Flag::value("weights", "weights of blocks instead of the file's: buy=3,look=0"),
    Flag::value("set", "constants of the file: rows=5000,note=none"),
    Flag::value("schema", "schema of its tables"),
    Flag::value("engine", "storage engine of tables whose CREATE TABLE names none (the server's)").short('e'),
    Flag::value(table_options::FLAG, table_options::HELP),
    Flag::switch("whole-server", "use your own login with all its rights instead of an account made for the script"),
    Flag::value("account", ""),
    Flag::value("db-ps-mode", "prepared statements: auto or disable"),
];

/// The verb.
pub static VERB: Verb = Verb {
    name: "script",
    about: ABOUT,
    flags: FLAGS,
    loads: &[],
    word: Some("FILE"),
    has_phase_flag: false,
    workload,
    own: None,
};

/// A script with its options.
struct Load {
    script: Script,
    destination: Destination,
    prefers_prepared: bool,
    /// Made when the server was looked at, before the first run.
    ready: OnceLock<Ready>,
}

/// What the runs of a command have in common.
struct Ready {
    plan: Plan,
    engine: Option<String>,
}

fn workload(values: &Values<'_>, file: &str) -> Result<Box<dyn Stepwise>, Error> {
    let schema = names::schema(values, "schema", "dbdyno_script")?;
    let confined = Confined::new(&schema, values.text("account"))?;
    let confined = (!values.has("whole-server")).then_some(confined);
    let prefers_prepared = values.choice("db-ps-mode", &[("auto", true), ("disable", false)], true)?;
    Ok(Box::new(Load {
        script: script(values, file)?,
        destination: Destination {
            schema,
            engine: names::engine(values)?,
            table_options: TableOptions::read(values)?,
            confined,
            is_secret: false,
        },
        prefers_prepared,
        ready: OnceLock::new(),
    }))
}

impl Load {
    fn ready(&self, checked: Checked) -> &Ready {
        self.ready.get_or_init(|| {
            let is_prepared =
                |statement: &Template| self.prefers_prepared && checked.preparable.contains(&statement.kind);
            Ready { plan: Plan::new(&self.script, is_prepared), engine: checked.engine }
        })
    }
}

impl Workload for Load {
    fn load(&self) -> &str {
        &self.script.name
    }

    fn schema(&self) -> &str {
        &self.destination.schema
    }

    fn kinds(&self) -> Vec<Kind> {
        clients::kinds(&self.script)
    }

    fn setup(&self) -> Vec<String> {
        self.script.connect.iter().map(|plain| plain.sql.clone()).collect()
    }

    fn prepared(&self) -> Vec<String> {
        self.ready(Checked::default()).plan.prepared.clone()
    }

    fn statements(&self, portion: Portion) -> Result<Box<dyn Statements + '_>, Error> {
        Ok(Box::new(ScriptClients::new(&self.ready(Checked::default()).plan, portion)))
    }
}

impl Stepwise for Load {
    fn confined(&self) -> Option<&Confined> {
        self.destination.confined.as_ref()
    }

    fn prepare(&self, session: &mut Session, begun: &mut bool) -> Result<(), Error> {
        stage::prepare(&self.script, &self.destination, session, begun)
    }

    fn check(&self, session: &mut Session) -> Result<ServerState, Error> {
        // Before each run, but the connect section may not bear to be run twice on one connection.
        let ready = match self.ready.get() {
            Some(ready) => ready,
            None => self.ready(stage::check(&self.script, &self.destination, session)?),
        };
        Ok(ServerState { engine: ready.engine.clone() })
    }

    fn cleanup(&self, session: &mut Session) -> Result<(), Error> {
        stage::cleanup(&self.script, &self.destination, session)
    }
}

/// Most statements of all blocks: each has a histogram of its own.
const STATEMENTS_MAX: usize = 100;

/// Largest file, in bytes.
const SIZE_MAX: u64 = 64 << 20;

/// Reads the files, puts them together and applies `--weights` and `--set`.
///
/// # Errors
/// No file, one that cannot be read or is wrong, or a name that it does not have.
fn script(values: &Values<'_>, file: &str) -> Result<Script, Error> {
    let constants = constants(values)?;
    let named = values.all("file");
    let files = Some(file).filter(|file| !file.is_empty()).into_iter().chain(named);
    let setup = values.text("setup").map(|path| parse::setup(&read(path)?, &constants)).transpose()?;
    let (setup, inherited) = setup.unzip();
    let inherited = inherited.unwrap_or_default();
    let mut whole: Option<Script> = None;
    for file in files {
        let (path, weight) = file_and_weight(file);
        let mut script = parse::script(&read(path)?, &constants, &inherited)?;
        if let Some(own) = script.setup.iter().chain(&script.cleanup).next().filter(|_| setup.is_some()) {
            let text = "--setup names the file that makes the tables: leave this section out, or --setup";
            return Err(Error::Usage(format!("{}: {text}", own.place)));
        }
        for block in &mut script.blocks {
            block.weight *= weight;
            if let Some(same) = whole.iter().flat_map(|whole| &whole.blocks).find(|other| other.name == block.name) {
                let text = format!("{path}: another file has a block {}: rename one", same.name);
                return Err(Error::Usage(text));
            }
        }
        match &mut whole {
            Some(whole) => whole.join(script),
            None => whole = Some(script),
        }
    }
    let Some(mut script) = whole else {
        return Err(Error::Usage("which script? dbdyno script FILE [flags] [prepare|run|cleanup]".into()));
    };
    if let Some(setup) = setup {
        script.prepend(setup);
    }
    for (name, _) in &constants {
        check_name("set", name, script.constants.iter().map(String::as_str), "constant")?;
    }
    weigh(&mut script, values)?;
    let statements = script.statements().count();
    if statements > STATEMENTS_MAX {
        return Err(Error::Usage(format!(
            "{} has {statements} statements in its blocks, more than {STATEMENTS_MAX}, each of which is measured separately: \
             leave some out, or run parts of it one after the other",
            script.name
        )));
    }
    Ok(script)
}

fn read(path: &str) -> Result<SourceFile, Error> {
    let bytes = bounded::read(Path::new(path), SIZE_MAX).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => {
            Error::Usage(format!("{path} has more than {} MiB: load the data with another tool before", SIZE_MAX >> 20))
        }
        _ => Error::File(path.into(), error),
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let readable = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = String::from_utf8_lossy(readable).matches('\n').count() + 1;
        Error::Usage(format!("{path}:{line}: this is not UTF-8: convert the file, for example with iconv"))
    })?;
    let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    Ok(SourceFile { name: path.into(), text })
}

/// `FILE@WEIGHT`; a file whose own name ends so is `FILE@NUMBER@1`.
fn file_and_weight(argument: &str) -> (&str, u64) {
    const MOST: u64 = 1_000_000;
    let split = argument.rsplit_once('@').filter(|(file, _)| !file.is_empty() && !Path::new(argument).is_file());
    let weighted = split.and_then(|(file, weight)| Some((file, weight.parse().ok().filter(|weight| *weight <= MOST)?)));
    weighted.unwrap_or((argument, 1))
}

/// The constants of all `--set=name=value,name=value`. A comma is part of a value unless a name and `=` follow.
fn constants(values: &Values<'_>) -> Result<Vec<(String, String)>, Error> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for assignments in values.all("set") {
        let mut is_first = true;
        for part in assignments.split(',').filter(|_| !assignments.is_empty()) {
            let pair = part.split_once('=').map(|(name, value)| (name.trim().trim_start_matches(':'), value));
            match (pair.filter(|(name, _)| is_name(name)), pairs.last_mut()) {
                (Some((name, value)), _) => pairs.push((name.into(), value.into())),
                (None, Some((_, value))) if !is_first => {
                    value.push(',');
                    value.push_str(part);
                }
                (None, _) => return Err(Error::Usage(format!("--set={assignments}: write --set=name=value"))),
            }
            is_first = false;
        }
    }
    Ok(pairs)
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn check_name<'a>(
    flag: &str,
    name: &str,
    names: impl Iterator<Item = &'a str> + Clone,
    what: &str,
) -> Result<(), Error> {
    if names.clone().any(|known| known == name) {
        return Ok(());
    }
    let hint = did_you_mean(name, names.clone());
    let all = names.collect::<Vec<_>>().join(", ");
    let all = if all.is_empty() { "none" } else { &all };
    Err(Error::Usage(format!("--{flag}={name}: the script has no {what} {name}; there is {all}{hint}")))
}

fn weigh(script: &mut Script, values: &Values<'_>) -> Result<(), Error> {
    for part in values.text("weights").into_iter().filter(|text| !text.is_empty()).flat_map(|text| text.split(',')) {
        let weight =
            part.split_once('=').and_then(|(name, weight)| Some((name.trim(), weight.trim().parse::<u32>().ok()?)));
        let Some((name, weight)) = weight else {
            return Err(Error::Usage(format!("--weights={part}: write --weights=buy=3,look=7, whole numbers")));
        };
        check_name("weights", name, script.blocks.iter().map(|block| block.name.as_str()), "block")?;
        for block in script.blocks.iter_mut().filter(|block| block.name == name) {
            block.weight = weight.into();
        }
    }
    if script.blocks.iter().all(|block| block.weight == 0) {
        return Err(Error::Usage("all weights are 0: nothing would be run".into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::env::temp_dir;
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    struct File(PathBuf);

    impl File {
        fn new(name: &str, text: &[u8]) -> Self {
            let path = temp_dir().join(format!("dbdyno-script-{}-{name}.sql", std::process::id()));
            fs::write(&path, text).unwrap();
            Self(path)
        }

        fn name(&self) -> &str {
            self.0.to_str().unwrap()
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    fn read(flags: &[(&'static str, &str)], file: &str) -> Result<Script, String> {
        script(&Values::of(flags), file).map_err(|error| error.to_string())
    }

    fn weights(script: &Script) -> Vec<u64> {
        script.blocks.iter().map(|block| block.weight).collect()
    }

    #[test]
    fn a_file_without_an_end_is_refused() {
        let message = read(&[], "/dev/zero").unwrap_err();
        assert_eq!(message, "/dev/zero has more than 64 MiB: load the data with another tool before");
    }

    #[test]
    fn files_are_words_or_flags_with_weights() {
        let both = File::new("both", b"\xef\xbb\xbf-- name: a\nDO 1;\n-- name: b weight: 4\nDO 2;");
        let other = File::new("other", b"-- name: c\nDO 1;");
        assert_eq!(weights(&read(&[], both.name()).unwrap()), [1, 4]);
        let weighted = format!("{}@5", other.name());
        assert_eq!(weights(&read(&[("file", &weighted)], both.name()).unwrap()), [1, 4, 5]);
        let flags = [("file", both.name()), ("weights", "b=0, a=7")];
        assert_eq!(weights(&read(&flags, "").unwrap()), [7, 0]);
        assert!(read(&[("file", both.name())], both.name()).unwrap_err().contains("another file has a block a"));
    }

    #[test]
    fn a_setup_file_makes_the_tables_of_all() {
        let tables = File::new("tables", b":rows = 5\n-- setup:\nCREATE TABLE t SELECT :rows;\n");
        let load = File::new("load", b":id = uniform(1, :rows)\nDO :id;");
        let whole = read(&[("setup", tables.name()), ("set", "rows=7")], load.name()).unwrap();
        assert_eq!(whole.setup[0].sql, "CREATE TABLE t SELECT 7");
        assert!(whole.name.ends_with("load") && !whole.name.contains('+'), "{}", whole.name);
        assert!(read(&[], load.name()).unwrap_err().contains(":rows is not a constant"));
        let own = File::new("own", b"-- setup:\nDO 1;\n-- name: a\nDO 2;");
        let message = read(&[("setup", tables.name())], own.name()).unwrap_err();
        assert!(message.contains(":2:1: --setup names the file that makes the tables"), "{message}");
    }

    #[test]
    fn constants_are_set_together_or_one_by_one() {
        let set = |texts: &[&str]| {
            let flags = texts.iter().map(|value| ("set", Some(*value))).collect();
            constants(&Values::new(flags)).map_err(|error| error.to_string())
        };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(set(&["a=1,b=x"]).unwrap(), [pair("a", "1"), pair("b", "x")]);
        assert_eq!(set(&["a=1", "", ":b=x, y,1=2"]).unwrap(), [pair("a", "1"), pair("b", "x, y,1=2")]);
        assert!(set(&["a=1", "b"]).unwrap_err().contains("--set=b: write"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let file = File::new("wrong", b":rows = 5\n-- name: buy\nDO :rows;");
        let refused = |flags: &[(&'static str, &str)]| read(flags, file.name()).unwrap_err();
        assert!(refused(&[("weights", "bay=3")]).contains("no block bay; there is buy"));
        assert!(refused(&[("weights", "buy")]).contains("--weights=buy: write"));
        assert!(refused(&[("weights", "buy=0")]).contains("all weights are 0"));
        assert!(refused(&[("set", "row=3")]).contains("no constant row; there is rows"));
        assert!(refused(&[("set", "rows")]).contains("name=value"));
        assert!(read(&[("set", "rows=3")], file.name()).is_ok());
        assert!(read(&[], "").unwrap_err().contains("which script?"));
        assert!(read(&[], "/no/such.sql").unwrap_err().contains("/no/such.sql"));
        let latin = File::new("latin", b"DO 1;\nDO '\xe9';");
        assert!(read(&[], latin.name()).unwrap_err().contains(":2: this is not UTF-8"));
        let many = File::new("many", "DO 1;".repeat(STATEMENTS_MAX + 1).as_bytes());
        assert!(read(&[], many.name()).unwrap_err().contains("has 101 statements"));
    }
}
