//! A script file read into sections and blocks.

use super::binding::{self, Defined, Definition, Draft, Name, Written};
use super::lexer::{Item, Items, Lexeme, Mistake, SourceFile, Token};
use super::model::{Literal, Plain, Script};
use crate::error::Error;

/// Where statements belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Before the first: to a block with the file's name.
    Unnamed,
    Setup,
    Cleanup,
    Connect,
    Block,
}

/// Reads a script; `constants` come from the command line in place of the file's, `inherited` from a setup file.
///
/// # Errors
/// Anything wrong with it, with file, line, column and the remedy.
pub fn script(source: &SourceFile, constants: &[(String, String)], inherited: &[Definition]) -> Result<Script, Error> {
    let mut reader = Reader::new(source, constants, inherited);
    reader.read().and_then(|()| reader.finish()).map_err(|mistake| source.error(&mistake))
}

/// Reads a file that makes the tables of other scripts: it has no block. Also what it defines, for those.
///
/// # Errors
/// As of [`script`], or it has a block or no setup.
pub fn setup(source: &SourceFile, constants: &[(String, String)]) -> Result<(Script, Vec<Definition>), Error> {
    let mut reader = Reader::new(source, constants, &[]);
    reader.read().and_then(|()| reader.finish_setup()).map_err(|mistake| source.error(&mistake))
}

/// A name of a block or statement, safe in every output.
///
/// # Errors
/// It is none, or too long.
pub fn safe_name(name: &str, at: usize) -> Result<String, Mistake> {
    const LONGEST: usize = 40;
    let safe = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > LONGEST || !name.chars().all(safe) {
        let text = format!("a name has 1 to {LONGEST} of a-z A-Z 0-9 _ -, not {name:?}");
        return Err(Mistake::new(at, text));
    }
    Ok(name.into())
}

struct Reader<'a> {
    source: &'a SourceFile,
    constants: &'a [(String, String)],
    section: Section,
    /// What a setup file defines.
    inherited: &'a [Definition],
    /// That, and what stands before all sections of this file.
    shared: Vec<Definition>,
    /// The unnamed one, then those with names.
    blocks: Vec<Draft<'a>>,
    /// The name for the next statement.
    name_next: Option<Name>,
    /// The list of which each value is one of the next statement.
    each_next: Option<Name>,
    script: Script,
}

impl<'a> Reader<'a> {
    fn new(source: &'a SourceFile, constants: &'a [(String, String)], inherited: &'a [Definition]) -> Self {
        let script = Script::named(&source.name);
        let unnamed = Draft::new(script.name.clone(), 0);
        Self {
            source,
            constants,
            section: Section::Unnamed,
            inherited,
            shared: inherited.to_vec(),
            blocks: vec![unnamed],
            name_next: None,
            each_next: None,
            script,
        }
    }

    fn read(&mut self) -> Result<(), Mistake> {
        let mut items = Items::new(&self.source.text);
        while let Some(item) = items.next()? {
            match item {
                Item::Steer { word, value, at, value_at } => self.steer(word, value, at, value_at)?,
                Item::Definition { name, at, value } => self.define(name, at, &value)?,
                Item::Statement(lexemes) => self.statement(lexemes)?,
            }
        }
        Ok(())
    }

    fn steer(&mut self, word: &str, value: &str, at: usize, value_at: usize) -> Result<(), Mistake> {
        if !matches!(word, "as" | "for each") {
            self.no_name_left()?;
        }
        match word {
            "setup" => self.section = Section::Setup,
            "cleanup" => self.section = Section::Cleanup,
            "connect" => self.section = Section::Connect,
            "name" => {
                let (name, weight) = name_and_weight(value, value_at)?;
                if let Some(same) = self.blocks[1..].iter().find(|block| block.name.text == name) {
                    let text = format!("the name {name} is taken by {}", self.source.place(same.name.at));
                    return Err(Mistake::new(value_at, text));
                }
                self.section = Section::Block;
                self.blocks.push(Draft { weight, ..Draft::new(name, at) });
            }
            "weight" => match self.open_block() {
                Some(block) => block.weight = weight(value, value_at)?,
                None => return Err(Mistake::new(at, "a weight belongs to a block: write it below its `-- name:`")),
            },
            "for each" if matches!(self.section, Section::Unnamed | Section::Block) => {
                let name = value.strip_prefix(':').unwrap_or(value);
                self.each_next = Some(Name { text: name.into(), at });
            }
            "as" if matches!(self.section, Section::Unnamed | Section::Block) => {
                self.name_next = Some(Name { text: safe_name(value, value_at)?, at });
            }
            "for each" => return Err(Mistake::new(at, "only a statement of a block can be sent for each value")),
            _ => return Err(Mistake::new(at, "only the statements of a block have names")),
        }
        Ok(())
    }

    fn open_block(&mut self) -> Option<&mut Draft<'a>> {
        match self.section {
            Section::Unnamed | Section::Block => self.blocks.last_mut(),
            Section::Setup | Section::Cleanup | Section::Connect => None,
        }
    }

    fn no_name_left(&self) -> Result<(), Mistake> {
        match (&self.name_next, &self.each_next) {
            (Some(name), _) => {
                Err(Mistake::new(name.at, "no statement follows in this block that `-- as:` could name"))
            }
            (None, Some(each)) => Err(Mistake::new(each.at, "no statement follows in this block to be sent for each")),
            (None, None) => Ok(()),
        }
    }

    fn define(&mut self, name: &str, at: usize, lexemes: &[Lexeme<'_>]) -> Result<(), Mistake> {
        let own = match self.section {
            Section::Unnamed => &[],
            Section::Block => self.blocks.last().map_or(&[][..], |block| &block.definitions),
            Section::Setup | Section::Cleanup | Section::Connect => {
                let text = "this section takes no definitions: put constants at the top of the file, parameters there or into a block";
                return Err(Mistake::new(at, text));
            }
        };
        if self.inherited.iter().any(|known| known.name == name) {
            return Err(Mistake::new(at, format!(":{name} is defined already, in the file of --setup")));
        }
        let definition_of = |name: &str| own.iter().chain(&self.shared).find(|known| known.name == name);
        if let Some(same) = definition_of(name) {
            return Err(Mistake::new(at, format!(":{name} is defined already, in {}", self.source.place(same.at))));
        }
        let value_of = |name: &str| definition_of(name).map(|known| known.value.clone());
        let value = match binding::read(name, at, lexemes, &value_of)? {
            Defined::Constant(value) if self.section == Section::Unnamed => {
                Defined::Constant(self.replaced(name, at, value)?)
            }
            other => other,
        };
        let definition = Definition { name: name.into(), at, value };
        match self.section {
            Section::Block => self.blocks.last_mut().map(|block| &mut block.definitions),
            _ => None,
        }
        .unwrap_or(&mut self.shared)
        .push(definition);
        self.note_backslash(lexemes);
        Ok(())
    }

    /// A constant as the command line wants it.
    fn replaced(&mut self, name: &str, at: usize, value: Literal) -> Result<Literal, Mistake> {
        self.script.constants.push(name.into());
        let Some((_, text)) = self.constants.iter().rev().find(|(known, _)| known == name) else {
            return Ok(value);
        };
        if text.contains('\\') {
            self.script.backslash.get_or_insert_with(|| format!("--set={name}"));
        }
        match value {
            Literal::Integer(_) | Literal::Decimal(..) => Literal::number(text)
                .ok_or_else(|| Mistake::new(at, format!("--set={name}={text}: :{name} is a number here"))),
            Literal::Text(_) | Literal::Null => Ok(Literal::Text(text.clone())),
        }
    }

    fn statement(&mut self, lexemes: Vec<Lexeme<'a>>) -> Result<(), Mistake> {
        let at = lexemes[0].at;
        self.note_backslash(&lexemes);
        let (name, each) = (self.name_next.take(), self.each_next.take());
        if let Some(block) = self.open_block() {
            block.statements.push(Written { lexemes, name, each });
            return Ok(());
        }
        let sql = binding::plain_sql(&lexemes, &self.shared)?;
        let plain = Plain { place: self.source.place(at), sql };
        match self.section {
            Section::Setup => self.script.setup.push(plain),
            Section::Cleanup => self.script.cleanup.push(plain),
            _ => self.script.connect.push(plain),
        }
        Ok(())
    }

    fn note_backslash(&mut self, lexemes: &[Lexeme<'_>]) {
        let escaped = lexemes.iter().find(|lexeme| lexeme.token == Token::Quoted && lexeme.text.contains('\\'));
        if let Some(lexeme) = escaped.filter(|_| self.script.backslash.is_none()) {
            self.script.backslash = Some(self.source.place(lexeme.at));
        }
    }

    fn finish_setup(self) -> Result<(Script, Vec<Definition>), Mistake> {
        self.no_name_left()?;
        let [unnamed, named @ ..] = self.blocks.as_slice() else { return Ok((self.script, self.shared)) };
        let statement = unnamed.statements.first().map(|written| written.lexemes[0].at);
        if let Some(at) = statement.or_else(|| named.first().map(|block| block.name.at)) {
            let text = "a file of --setup makes tables and offers no load: put `-- setup:` above its statements";
            return Err(Mistake::new(at, text));
        }
        if self.script.setup.is_empty() {
            return Err(Mistake::new(0, "a file of --setup makes tables: add a line `-- setup:` and statements"));
        }
        Ok((self.script, self.shared))
    }

    fn finish(mut self) -> Result<Script, Mistake> {
        self.no_name_left()?;
        let mut blocks = self.blocks;
        let unnamed = blocks.remove(0);
        match unnamed.statements.first() {
            Some(written) if !blocks.is_empty() => {
                let text = "this statement belongs to no section: put `-- setup:` or `-- name: NAME` above it";
                return Err(Mistake::new(written.lexemes[0].at, text));
            }
            Some(_) => blocks.push(unnamed),
            None => {}
        }
        if blocks.is_empty() {
            return Err(Mistake::new(0, "there is nothing to run: add a block, a line `-- name: NAME` and statements"));
        }
        let autocommit = !self.script.connect.iter().any(|plain| plain.sql.to_ascii_lowercase().contains("autocommit"));
        for draft in blocks {
            self.script.blocks.push(draft.finish(&self.shared, self.source, autocommit)?);
        }
        Ok(self.script)
    }
}

fn name_and_weight(value: &str, at: usize) -> Result<(String, u64), Mistake> {
    let end = value.find(|c: char| c.is_whitespace() || c == ',').unwrap_or(value.len());
    let name = safe_name(&value[..end], at)?;
    let rest = value[end..].trim_start_matches([' ', '\t', ',']);
    if rest.is_empty() {
        return Ok((name, 1));
    }
    let at = at + value.len() - rest.len();
    match rest.split_once(':') {
        Some((word, number)) if word.trim().eq_ignore_ascii_case("weight") => Ok((name, weight(number, at)?)),
        _ => Err(Mistake::new(at, format!("after a name comes only its weight: `-- name: {name}  weight: 3`"))),
    }
}

/// A weight.
fn weight(text: &str, at: usize) -> Result<u64, Mistake> {
    const MOST: u64 = 1_000_000;
    let weight = text.trim().parse().ok().filter(|weight| *weight <= MOST);
    weight
        .ok_or_else(|| Mistake::new(at, format!("a weight is a whole number from 0 to {MOST}, not {:?}", text.trim())))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::script::model::{Block, Piece, Template};

    const SHOP: &str = "\
-- A shop.
:rows = 1000
:id = zipf(1, :rows)

-- setup:
CREATE TABLE items (id INT PRIMARY KEY, stock INT);
INSERT INTO items SELECT seq, 100 FROM seq WHERE seq <= :rows;

-- name: buy  weight: 3
:amount = uniform(1, 9)
BEGIN;
SELECT stock FROM items WHERE id = :id; -- the same row
UPDATE items SET stock = stock - :amount WHERE id = :id;
SELECT ':id', 1 FROM items WHERE id = :id;
COMMIT;
-- as: total
SELECT SUM(stock) FROM items;

-- name: look
SELECT stock FROM items WHERE id = :id;
";

    fn read(text: &str) -> Result<Script, String> {
        let source = SourceFile { name: "dir/shop.sql".into(), text: text.into() };
        script(&source, &[], &[]).map_err(|error| error.to_string())
    }

    fn refused(text: &str) -> String {
        let message = read(text).map(|_| ()).unwrap_err();
        message.strip_prefix("dir/shop.sql:").expect(&message).to_owned()
    }

    fn kinds(block: &Block) -> Vec<&str> {
        block.statements.iter().map(|statement| statement.kind.as_str()).collect()
    }

    #[test]
    fn a_script_has_sections_and_blocks() {
        let script = read(SHOP).unwrap();
        assert_eq!(script.name, "shop");
        assert_eq!(script.setup.len(), 2);
        assert_eq!(script.setup[1].sql, "INSERT INTO items SELECT seq, 100 FROM seq WHERE seq <= 1000");
        assert_eq!(script.setup[1].place, "dir/shop.sql:7:1");
        let [buy, look] = script.blocks.as_slice() else { panic!("{:?}", script.blocks) };
        assert_eq!((buy.weight, look.weight), (3, 1));
        assert_eq!(
            kinds(buy),
            ["buy.begin", "buy.select_items", "buy.update_items", "buy.select_items_2", "buy.commit", "buy.total"]
        );
        assert_eq!(buy.statements[2].with_marks(), "UPDATE items SET stock = stock - ? WHERE id = ?");
        assert_eq!(buy.statements[2].values().map(|place| place.slot).collect::<Vec<_>>(), [1, 0]);
        assert_eq!(buy.statements[3].with_marks(), "SELECT ':id', 1 FROM items WHERE id = ?");
        let queries: Vec<bool> = buy.statements.iter().map(|statement| statement.is_query).collect();
        assert_eq!(queries, [false, true, true, true, false, true]);
    }

    #[test]
    fn what_is_given_up_starts_over_where_its_transaction_began() {
        let from = |text: &str| {
            let script = read(text).unwrap();
            script.blocks[0].statements.iter().map(|statement| statement.retry_from).collect::<Vec<_>>()
        };
        assert_eq!(from(SHOP), [0, 0, 0, 0, 0, 5]);
        assert_eq!(from("SELECT 1; BEGIN; SELECT 2; ROLLBACK; SELECT 3; SELECT 4;"), [0, 1, 1, 1, 4, 5]);
        let without = "-- connect:\nSET autocommit = 0;\n-- name: a\nSELECT 1; SELECT 2; COMMIT; SELECT 3; COMMIT;";
        assert_eq!(from(without), [0, 0, 0, 3, 3]);
    }

    #[test]
    fn a_file_of_statements_is_one_block() {
        let script = read(":id = uniform(1, 9)\nSELECT :id;\nDO 1").unwrap();
        assert_eq!(script.blocks.len(), 1);
        assert_eq!(kinds(&script.blocks[0]), ["shop.select", "shop.do"]);
        assert_eq!(script.blocks[0].generators.len(), 1);
    }

    #[test]
    fn a_list_stands_for_its_values() {
        let script = read(
            ":id = uniform(1, 9)\n:ids = list(3, uniform(1, 9))\n:run = list(2, :id)\n:last = :id + 4\n\
             SELECT :ids, :last;\nSELECT :run, :ids;",
        )
        .unwrap();
        let [first, second] = script.blocks[0].statements.as_slice() else { panic!("{script:?}") };
        assert_eq!(first.with_marks(), "SELECT ?, ?, ?, ?");
        assert_eq!(second.with_marks(), "SELECT ?, ?, ?, ?, ?");
        let places = |statement: &Template| statement.values().map(|at| (at.slot, at.plus)).collect::<Vec<_>>();
        assert_eq!(places(first), [(0, 0), (1, 0), (2, 0), (3, 4)]);
        assert_eq!(places(second), [(3, 0), (3, 1), (0, 0), (1, 0), (2, 0)]);
        assert_eq!(script.blocks[0].generators.len(), 4);
    }

    #[test]
    fn a_statement_is_sent_for_each_value() {
        let script = read(":ids = list(3, uniform(1, 9))\nBEGIN;\n-- for each: ids\nSELECT :ids;\nCOMMIT;").unwrap();
        let select = &script.blocks[0].statements[1];
        assert_eq!((select.with_marks().as_str(), select.times, select.is_alone), ("SELECT ?", 3, false));
        assert_eq!(select.values().next().unwrap().at(2).slot, 2);
        assert_eq!(script.blocks[0].statements[0].times, 1);
    }

    #[test]
    fn a_file_for_the_setup_shares_what_it_defines() {
        let file = |name: &str, text: &str| SourceFile { name: name.into(), text: text.into() };
        let tables = file("t.sql", ":rows = 10\n-- setup:\nCREATE TABLE t SELECT :rows;");
        let set = [("rows".to_owned(), "20".to_owned())];
        let (made, shared) = setup(&tables, &set).unwrap();
        assert_eq!(made.setup[0].sql, "CREATE TABLE t SELECT 20");
        assert_eq!(made.constants, ["rows"]);
        let load = file("a.sql", ":id = uniform(1, :rows)\nSELECT :id, :rows;");
        let bound = script(&load, &set, &shared).unwrap();
        assert_eq!(bound.blocks[0].statements[0].with_marks(), "SELECT ?, 20");
        let refused = |text: &str| setup(&file("t.sql", text), &[]).map(drop).unwrap_err().to_string();
        assert!(refused("DO 1;").starts_with("t.sql:1:1: a file of --setup makes tables and offers no load"));
        assert!(refused("-- setup:\nDO 1;\n-- name: a\nDO 1;").starts_with("t.sql:3:1: a file of --setup makes"));
        assert!(refused(":rows = 1").contains("add a line `-- setup:`"));
        let again = script(&file("a.sql", ":rows = 1\nDO :rows;"), &[], &shared).map(drop).unwrap_err();
        assert!(again.to_string().starts_with("a.sql:1:1: :rows is defined already, in the file of --setup"));
    }

    #[test]
    fn a_sequence_is_one_for_all_blocks() {
        let script = read(":n = sequence()\n-- name: a\nSELECT :n;\n-- name: b\nSELECT :n;").unwrap();
        assert!(Arc::ptr_eq(&script.blocks[0].generators[0], &script.blocks[1].generators[0]));
    }

    #[test]
    fn only_what_a_block_uses_is_drawn() {
        let script = read(":a = uuid()\n:b = uuid()\n-- name: x\n:c = uuid()\nSELECT :b;").unwrap();
        assert_eq!(script.blocks[0].generators.len(), 1);
    }

    #[test]
    fn a_constant_is_replaced_from_the_command_line() {
        let source = SourceFile { name: "a.sql".into(), text: ":n = 5\n:t = 'x'\nSELECT :n, :t, :n;".into() };
        let with = |constants: &[(&str, &str)]| {
            let constants: Vec<(String, String)> =
                constants.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
            script(&source, &constants, &[]).map_err(|error| error.to_string())
        };
        let bound = with(&[("n", "7"), ("t", "it's 3")]).unwrap();
        assert_eq!(bound.blocks[0].statements[0].pieces, [Piece::Sql("SELECT 7, 'it''s 3', 7".into())]);
        assert_eq!(bound.constants, ["n", "t"]);
        assert!(with(&[("n", "many")]).unwrap_err().contains("a.sql:1:1: --set=n=many: :n is a number"));
        assert_eq!(with(&[("t", "a\\b")]).unwrap().backslash.as_deref(), Some("--set=t"));
    }

    #[test]
    fn the_first_backslash_is_known() {
        assert_eq!(read("SELECT 'a', '\\n', '\\t'").unwrap().backslash.as_deref(), Some("dir/shop.sql:1:13"));
        assert_eq!(read("SELECT 'a' -- \\\n").unwrap().backslash, None);
    }

    #[test]
    fn mistakes_are_shown_with_place_and_remedy() {
        let wrong = [
            (
                "SELECT :idd;\n:id = uuid()",
                "1:8: :idd is not defined; define it above as :idd = uniform(1, 100). Did you mean :id?",
            ),
            ("\n SELECT 1, :x", "2:12: :x is not defined; define it above"),
            ("SELECT ?", "1:8: ? is not a parameter"),
            ("", "1:1: there is nothing to run"),
            ("-- setup:\nSELECT 1;", "1:1: there is nothing to run"),
            ("-- name: a\n-- name: b\nDO 1;", "1:1: the block a has no statements"),
            ("-- name: a\nDO 1;\n-- name: a\nDO 1;", "3:10: the name a is taken by dir/shop.sql:1:1"),
            ("-- name: a b\nDO 1;", "1:12: after a name comes only its weight: `-- name: a  weight: 3`"),
            ("-- name: a weight: -1\nDO 1;", "1:12: a weight is a whole number from 0 to 1000000, not \"-1\""),
            ("-- name:\nDO 1;", "1:9: a name has 1 to 40"),
            ("-- name: é\nDO 1;", "1:10: a name has 1 to 40"),
            ("-- setup:\n-- weight: 3", "2:1: a weight belongs to a block"),
            ("DO 1;\n-- name: a\nDO 2;", "1:1: this statement belongs to no section"),
            ("BEGIN; DO 1;", "1:1: this transaction has no COMMIT"),
            ("BEGIN; START TRANSACTION; COMMIT;", "1:8: a transaction is open here"),
            (":a = 1\n:a = 2\nDO :a", "2:1: :a is defined already, in dir/shop.sql:1:1"),
            (":a = 1\n-- name: x\n:a = 2\nDO :a", "3:1: :a is defined already"),
            ("-- setup:\n:a = 1\n", "2:1: this section takes no definitions"),
            (
                ":a = uuid()\n-- setup:\nDO :a;\n-- name: x\nDO 1;",
                "3:1: this statement is run once, so :a must be a constant",
            ),
            ("-- setup:\n-- as: x\n", "2:1: only the statements of a block"),
            ("-- as: x\n-- name: a\nDO 1;", "1:1: no statement follows"),
            ("DO 1;\n-- as: x", "2:1: no statement follows"),
            ("-- as: a.b\nDO 1;", "1:8: a name has 1 to 40"),
            ("-- for each: x\nDO 1;", "1:1: :x is no list"),
            (":x = uuid()\n-- for each: x\nDO :x;", "2:1: :x is no list"),
            (":x = list(2, uuid())\n-- for each: x\nDO 1;", "2:1: the statement below does not use :x"),
            (":x = list(2, uuid())\n-- for each: x\nSET @a = :x;", "2:1: only a query can be sent"),
            ("-- setup:\n-- for each: x\nDO 1;", "2:1: only a statement of a block"),
            ("DO 1;\n-- for each: x", "2:1: no statement follows"),
            ("-- as: x\nDO 1;\n-- as: x\nDO 2;", "3:1: another statement of this block is called shop.x"),
            (":a = uniform(9, 1)\nDO :a", "1:6: write uniform(low, high)"),
            ("SELECT 'a", "1:8: this string has no closing '"),
        ];
        for (text, expected) in wrong {
            let message = refused(text);
            assert!(message.starts_with(expected), "{text:?}: {message}");
        }
    }

    #[test]
    fn a_label_is_no_parameter() {
        let text =
            "-- setup:\nCREATE PROCEDURE p() BEGIN again:LOOP LEAVE again; END LOOP; END;\n-- name: a\nCALL p();";
        assert!(read(text).unwrap().setup[0].sql.contains("again:LOOP"));
    }

    #[test]
    fn a_parameter_may_touch_a_word() {
        let script = read(":n = 5\n:m = uniform(1, 2)\nSELECT 1 LIMIT:n;\nSELECT 1 LIMIT:m;").unwrap();
        let sent: Vec<String> = script.statements().map(crate::script::model::Template::with_marks).collect();
        assert_eq!(sent, ["SELECT 1 LIMIT 5", "SELECT 1 LIMIT ?"]);
    }

    #[test]
    fn scripts_are_joined() {
        let mut first = read(SHOP).unwrap();
        first.join(read("-- connect:\nSET a = 1;\n-- name: other\nDO 1;").unwrap());
        assert_eq!(first.name, "shop+shop");
        assert_eq!((first.blocks.len(), first.connect.len(), first.setup.len()), (3, 1, 2));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(-- |name: a|setup:|as: |weight: 3|:a|=|uuid\\(\\)|1|;|'|\n|BEGIN|COMMIT|\\?|é|.){0,30}") {
            let _ = read(&text);
        }

        #[test]
        fn plain_sql_is_sent_as_it_stands(
            statements in prop::collection::vec("(SELECT|UPDATE|SET) [a-z0-9_,.=<>+() \n]{0,20}('[^']{0,9}'|`[^`]{0,5}`|1)", 1..6),
        ) {
            prop_assume!(!statements.iter().any(|sql| sql.contains('\\')));
            let script = read(&statements.join(";\n")).unwrap();
            let sent: Vec<String> = script.statements().map(crate::script::model::Template::with_marks).collect();
            prop_assert_eq!(sent, statements);
        }
    }
}
