//! A script file read into sections and blocks.

use crate::error::Error;

use super::block::{self, Draft, Name, Written};
use super::definition::{self, Defined, Definition};
use super::items::{Item, Items};
use super::lexer::{Lexeme, Mistake, SourceFile, Token};
use super::literal::Literal;
use super::model::{Plain, Script};

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

/// Reads a script; `given` are constants from the command line in place of the file's.
///
/// # Errors
/// Anything wrong with it, with file, line, column and the remedy.
pub fn script(source: &SourceFile, given: &[(String, String)]) -> Result<Script, Error> {
    let mut reader = Reader::new(source, given);
    reader.read().and_then(|()| reader.finish()).map_err(|mistake| source.error(&mistake))
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
    given: &'a [(String, String)],
    section: Section,
    shared: Vec<Definition>,
    /// The unnamed one, then those with names.
    blocks: Vec<Draft<'a>>,
    /// The name for the next statement.
    name_next: Option<Name>,
    script: Script,
}

impl<'a> Reader<'a> {
    fn new(source: &'a SourceFile, given: &'a [(String, String)]) -> Self {
        let script = Script::named(&source.name);
        let unnamed = Draft::new(script.name.clone(), 0);
        Self {
            source,
            given,
            section: Section::Unnamed,
            shared: Vec::new(),
            blocks: vec![unnamed],
            name_next: None,
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
        if word != "as" {
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
            _ if matches!(self.section, Section::Unnamed | Section::Block) => {
                self.name_next = Some(Name { text: safe_name(value, value_at)?, at });
            }
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
        match &self.name_next {
            Some(name) => Err(Mistake::new(name.at, "no statement follows in this block that `-- as:` could name")),
            None => Ok(()),
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
        let known = || own.iter().chain(&self.shared);
        if let Some(same) = known().find(|known| known.name == name) {
            return Err(Mistake::new(at, format!(":{name} is defined already, in {}", self.source.place(same.at))));
        }
        let constant = |name: &str| {
            known().find(|known| known.name == name).and_then(|known| match &known.value {
                Defined::Constant(value) => Some(value.clone()),
                Defined::Drawn(_) => None,
            })
        };
        let value = match definition::read(name, at, lexemes, &constant)? {
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
        let Some((_, text)) = self.given.iter().rev().find(|(given, _)| given == name) else {
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
        let name = self.name_next.take();
        if let Some(block) = self.open_block() {
            block.statements.push(Written { lexemes, name });
            return Ok(());
        }
        let sql = block::plain_sql(&lexemes, &self.shared)?;
        let plain = Plain { place: self.source.place(at), sql };
        match self.section {
            Section::Setup => self.script.setup.push(plain),
            Section::Cleanup => self.script.cleanup.push(plain),
            _ => self.script.connect.push(plain),
        }
        Ok(())
    }

    fn note_backslash(&mut self, lexemes: &[Lexeme<'_>]) {
        let found = lexemes.iter().find(|lexeme| lexeme.token == Token::Quoted && lexeme.text.contains('\\'));
        if let Some(lexeme) = found.filter(|_| self.script.backslash.is_none()) {
            self.script.backslash = Some(self.source.place(lexeme.at));
        }
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
#[path = "parse_tests.rs"]
mod tests;
