//! What a script says, with everything in it bound.

use std::path::Path;
use std::sync::Arc;

use super::generator::Generator;

/// A script, or several as one.
#[derive(Debug, Default)]
pub struct Script {
    /// Its file's name without folder and suffix.
    pub name: String,
    /// Run on each new connection.
    pub connect: Vec<Plain>,
    /// Run once by prepare.
    pub setup: Vec<Plain>,
    /// Run once by cleanup.
    pub cleanup: Vec<Plain>,
    /// What events are made of.
    pub blocks: Vec<Block>,
    /// Names of the constants that a command line may replace.
    pub constants: Vec<String>,
    /// Where the first backslash in a string stands: its meaning depends on sql_mode.
    pub backslash: Option<String>,
}

/// A statement that is sent as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plain {
    /// File, line and column.
    pub place: String,
    /// The statement, without its delimiter.
    pub sql: String,
}

/// A transaction, or whatever its user counts as one.
#[derive(Debug)]
pub struct Block {
    /// Its name.
    pub name: String,
    /// How often it comes, compared with the others.
    pub weight: u64,
    /// What its parameters are drawn from.
    pub generators: Vec<Arc<Generator>>,
    /// At least one.
    pub statements: Vec<Template>,
}

/// A statement of a block.
#[derive(Debug)]
pub struct Template {
    /// File, line and column.
    pub place: String,
    /// Its name in every output.
    pub kind: String,
    /// Whether it counts as a query.
    pub is_query: bool,
    /// What it is made of.
    pub pieces: Vec<Piece>,
    /// Which statement of the block to go back to when the server gave this one up: the one that began its transaction.
    pub retry_from: usize,
    /// It may make tables, so that those after it cannot be checked before.
    pub makes_tables: bool,
}

/// A piece of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// SQL as it is.
    Sql(String),
    /// The value of one of the block's generators.
    Value(usize),
}

impl Script {
    /// Nothing yet, named after the file.
    pub fn named(file: &str) -> Self {
        let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
        let safe = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
        Self { name: stem.chars().take(40).map(safe).collect(), ..Self::default() }
    }

    /// All statements of all blocks.
    pub fn statements(&self) -> impl Iterator<Item = &Template> {
        self.blocks.iter().flat_map(|block| &block.statements)
    }

    /// This one and another: sections are joined, blocks stand beside each other.
    pub fn join(&mut self, other: Self) {
        self.name = format!("{}+{}", self.name, other.name);
        self.connect.extend(other.connect);
        self.setup.extend(other.setup);
        self.cleanup.extend(other.cleanup);
        self.blocks.extend(other.blocks);
        self.constants.extend(other.constants);
        self.backslash = self.backslash.take().or(other.backslash);
    }
}

impl Template {
    /// As a server prepares it.
    pub fn with_marks(&self) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Sql(sql) => sql.clone(),
            Piece::Value(_) => "?".into(),
        };
        self.pieces.iter().map(piece).collect()
    }

    /// The parameters in their order, by the block's generators.
    pub fn values(&self) -> impl Iterator<Item = usize> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Value(number) => Some(*number),
            Piece::Sql(_) => None,
        })
    }
}
