//! A script made ready to be sent: what can be written ahead, is.

use std::sync::Arc;

use crate::protocol::packet;
use crate::statements::Kind;

use super::generator::Generator;
use super::model::{Piece, Script, Template};

/// Name of what comes after a transaction that the server gave up.
const ROLLBACK: &str = "rollback";

/// All blocks.
#[derive(Debug, Default)]
pub struct Plan {
    /// In the script's order.
    pub blocks: Vec<BlockPlan>,
    /// Sums of the blocks' weights up to each.
    pub ends: Vec<u64>,
    /// Statements that each connection prepares.
    pub prepared: Vec<String>,
    /// Kind of a ROLLBACK, the last.
    pub rollback: u16,
}

/// The statements of a block.
#[derive(Debug)]
pub struct BlockPlan {
    /// What its parameters are drawn from.
    pub generators: Vec<Arc<Generator>>,
    /// One after the other.
    pub lines: Vec<StatementPlan>,
}

/// A statement.
#[derive(Debug)]
pub struct StatementPlan {
    /// Index into the kinds.
    pub kind: u16,
    /// How it is sent.
    pub form: Form,
    /// StatementPlan to go back to when the server gave it up.
    pub retry_from: usize,
}

/// How a statement is sent.
#[derive(Debug)]
pub enum Form {
    /// As packets, as it is always the same.
    Packets(Vec<u8>),
    /// As text with values in it.
    Text(Vec<Piece>),
    /// As an execution of the prepared statement of this number with these values.
    Prepared(usize, Vec<usize>),
}

impl Plan {
    /// Of a script of which `is_prepared` says what goes as a prepared statement. The number of
    /// statements has been checked to fit the kinds.
    pub fn new(script: &Script, is_prepared: impl Fn(&Template) -> bool) -> Self {
        let mut plan = Self::default();
        let mut weight = 0;
        for block in &script.blocks {
            let mut lines = Vec::new();
            for statement in &block.statements {
                let values: Vec<usize> = statement.values().collect();
                let form = if values.is_empty() {
                    Form::Packets(packet::query(statement.with_marks().as_bytes()))
                } else if is_prepared(statement) {
                    plan.prepared.push(statement.with_marks());
                    Form::Prepared(plan.prepared.len() - 1, values)
                } else {
                    Form::Text(statement.pieces.clone())
                };
                lines.push(StatementPlan { kind: plan.rollback, form, retry_from: statement.retry_from });
                plan.rollback += 1;
            }
            plan.blocks.push(BlockPlan { generators: block.generators.clone(), lines });
            weight += block.weight;
            plan.ends.push(weight);
        }
        plan
    }
}

/// The kinds of statement of a script, ROLLBACK last.
pub fn kinds(script: &Script) -> Vec<Kind> {
    let kind = |statement: &Template| Kind { name: statement.kind.clone(), is_query: statement.is_query };
    script.statements().map(kind).chain([Kind::apart(ROLLBACK)]).collect()
}
