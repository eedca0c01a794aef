//! A script made ready to be sent (what can be written ahead, is), and the clients that send it.

use std::sync::Arc;

use dbdyno_common::random::Random;

use super::model::{Drawn, Generator, Piece, Place, Script, Template, pick};
use crate::dialect::error_codes::TRANSACTION_RETRYABLE;
use crate::protocol::packet::{self, Parameter, RequestEncoder};
use crate::statements::{After, Kind, Next, Part, Statement, Statements};
use crate::workload::Portion;

/// The clients of one thread.
pub struct ScriptClients<'a> {
    plan: &'a Plan,
    clients: Vec<Cursor>,
    rollback: Vec<u8>,
    text: Vec<u8>,
}

struct Cursor {
    random: Random,
    block: usize,
    /// Number of the next line.
    next: usize,
    /// The block is sent to its end.
    is_over: bool,
    /// A ROLLBACK comes before the next line, or is in flight.
    rollback: Rollback,
    drawn: Vec<Drawn>,
}

#[derive(Clone, Copy, PartialEq)]
enum Rollback {
    No,
    Due,
    InFlight,
}

impl<'a> ScriptClients<'a> {
    /// For the clients of `portion`.
    pub fn new(plan: &'a Plan, portion: Portion) -> Self {
        let most = plan.blocks.iter().map(|block| block.generators.len()).max().unwrap_or(0);
        // Seeds are often next to each other, as are clients: both are mixed before they meet.
        let base = Random::new(portion.seed).bits();
        let seed = |number: usize| Random::new(base.wrapping_add((portion.first + number) as u64)).bits();
        let client = |number: usize| Cursor {
            random: Random::new(seed(number)),
            block: 0,
            next: 0,
            is_over: true,
            rollback: Rollback::No,
            drawn: vec![Drawn::default(); most],
        };
        let clients = (0..portion.clients).map(client).collect();
        Self { plan, clients, rollback: packet::query(b"ROLLBACK"), text: Vec::new() }
    }
}

impl Cursor {
    /// Starts another event.
    fn begin(&mut self, plan: &Plan) {
        self.block = pick(&plan.ends, &mut self.random);
        self.next = 0;
        for (generator, drawn) in plan.blocks[self.block].generators.iter().zip(&mut self.drawn) {
            generator.draw(&mut self.random, drawn);
        }
    }

    /// Goes back to where the transaction began that the line in flight is in; false if there is
    /// none, and so nothing to send again but this line.
    fn go_back(&mut self, plan: &Plan) -> bool {
        let in_flight = self.next - 1;
        self.next = plan.blocks[self.block].lines[in_flight].retry_from;
        self.is_over = false;
        self.next < in_flight
    }
}

fn write(block: &BlockPlan, form: &Form, drawn: &[Drawn], text: &mut Vec<u8>, encoder: &mut RequestEncoder<'_>) {
    match form {
        Form::Packets(packets) => encoder.packets(packets),
        Form::Text(pieces) => {
            text.clear();
            for piece in pieces {
                match piece {
                    Piece::Sql(sql) => text.extend_from_slice(sql.as_bytes()),
                    Piece::Value(at) => block.generators[at.slot].write(&drawn[at.slot], at.plus, text),
                }
            }
            encoder.query(&[text]);
        }
        Form::Prepared(number, values) => {
            let parameter = |at: &Place| block.generators[at.slot].parameter(&drawn[at.slot], at.plus);
            // Most statements have few: these need no memory of their own.
            let mut few = [Parameter::Null; FEW];
            if let Some(few) = few.get_mut(..values.len()) {
                few.iter_mut().zip(values).for_each(|(slot, at)| *slot = parameter(at));
                encoder.execute(*number, few);
            } else {
                let many: Vec<Parameter<'_>> = values.iter().map(parameter).collect();
                encoder.execute(*number, &many);
            }
        }
    }
}

/// Parameters of a statement that has few.
const FEW: usize = 16;

impl Statements for ScriptClients<'_> {
    fn next(&mut self, client: usize, encoder: &mut RequestEncoder<'_>) -> Next {
        let client = &mut self.clients[client];
        if client.rollback == Rollback::Due {
            client.rollback = Rollback::InFlight;
            encoder.packets(&self.rollback);
            return Next::Send(Statement { kind: self.plan.rollback, part: Part::Apart, rows: 0, phase: 0 });
        }
        client.rollback = Rollback::No;
        if client.is_over {
            client.begin(self.plan);
        }
        let block = &self.plan.blocks[client.block];
        let line = &block.lines[client.next];
        write(block, &line.form, &client.drawn, &mut self.text, encoder);
        client.next += 1;
        client.is_over = client.next == block.lines.len();
        let part = if client.is_over { Part::Last } else { Part::Inner };
        Next::Send(Statement { kind: line.kind, part, rows: 0, phase: 0 })
    }

    fn refused(&mut self, client: usize, code: u16) -> After {
        let client = &mut self.clients[client];
        if client.rollback == Rollback::InFlight || !TRANSACTION_RETRYABLE.contains(&code) {
            return After::GoOn;
        }
        // A lock wait timeout ends no transaction.
        if client.go_back(self.plan) {
            client.rollback = Rollback::Due;
        }
        After::StartOver
    }

    fn reconnected(&mut self, client: usize) -> After {
        let client = &mut self.clients[client];
        if client.rollback == Rollback::InFlight {
            return After::GoOn;
        }
        let line = &self.plan.blocks[client.block].lines[client.next - 1];
        // A statement on its own may have been executed.
        if line.retry_from == client.next - 1 {
            return After::GoOn;
        }
        client.go_back(self.plan);
        After::StartOver
    }
}

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
    Prepared(usize, Vec<Place>),
}

impl Plan {
    /// Of a script of which `is_prepared` says what goes as a prepared statement. The number of
    /// statements has been checked to fit the kinds.
    pub fn new(script: &Script, is_prepared: impl Fn(&Template) -> bool) -> Self {
        let mut plan = Self::default();
        let mut weight = 0;
        for block in &script.blocks {
            let mut lines = Vec::new();
            let mut first_lines = Vec::new();
            for statement in &block.statements {
                first_lines.push(lines.len());
                let is_prepared = statement.values().next().is_some() && is_prepared(statement);
                if is_prepared {
                    plan.prepared.push(statement.with_marks());
                }
                for time in 0..statement.times {
                    let form = if is_prepared {
                        let values = statement.values().map(|place| place.at(time)).collect();
                        Form::Prepared(plan.prepared.len() - 1, values)
                    } else {
                        text_form(statement, time)
                    };
                    let retry_from = if statement.is_alone { lines.len() } else { first_lines[statement.retry_from] };
                    lines.push(StatementPlan { kind: plan.rollback, form, retry_from });
                }
                plan.rollback += 1;
            }
            plan.blocks.push(BlockPlan { generators: block.generators.clone(), lines });
            weight += block.weight;
            plan.ends.push(weight);
        }
        plan
    }
}

/// The statement as text, at its repetition `time`.
fn text_form(statement: &Template, time: usize) -> Form {
    if statement.values().next().is_none() {
        return Form::Packets(packet::query(statement.with_marks().as_bytes()));
    }
    let at_time = |piece: &Piece| match piece {
        Piece::Value(place) => Piece::Value(place.at(time)),
        Piece::Sql(sql) => Piece::Sql(sql.clone()),
    };
    Form::Text(statement.pieces.iter().map(at_time).collect())
}

/// The kinds of statement of a script, ROLLBACK last.
pub fn kinds(script: &Script) -> Vec<Kind> {
    let kind = |statement: &Template| Kind { name: statement.kind.clone(), is_query: statement.is_query };
    script.statements().map(kind).chain([Kind::apart(ROLLBACK)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::packet::Prepared;
    use crate::script::lexer::SourceFile;
    use crate::script::model::{Script, Template};
    use crate::script::parse;

    const SHOP: &str = "\
    :id = uniform(1, 1000)
    :note = one_of('it''s \\\\', NULL)
    -- name: buy  weight: 3
    BEGIN;
    UPDATE items SET note = :note WHERE id = :id;
    SELECT :id, :id;
    COMMIT;
    DO :id;
    -- name: look  weight: 7
    SELECT stock FROM items WHERE id = :id;
    ";

    fn script(text: &str) -> Script {
        parse::script(&SourceFile { name: "shop.sql".into(), text: text.into() }, &[], &[]).unwrap()
    }

    fn portion(first: usize, clients: usize) -> Portion {
        Portion { first, clients, of: 10, seed: 1, warmup: false }
    }

    /// A statement as bytes behind the packet's header, and what it is.
    fn say(talk: &mut ScriptClients<'_>, client: usize) -> (Vec<u8>, Statement) {
        let mut out = Vec::new();
        let parameters = [2, 2, 1, 1];
        let mut prepared: Vec<Prepared> =
            parameters.into_iter().map(|parameters| Prepared { id: 9, parameters, bound: true }).collect();
        let Next::Send(statement) = talk.next(client, &mut RequestEncoder::new(&mut out, &mut prepared)) else {
            panic!()
        };
        (out.split_off(4), statement)
    }

    fn text(talk: &mut ScriptClients<'_>, client: usize) -> String {
        let (bytes, _) = say(talk, client);
        assert_eq!(bytes[0], 3, "no query");
        String::from_utf8(bytes[1..].to_vec()).unwrap()
    }

    /// A talk whose first client is at the start of the block `buy`.
    fn at_buy(plan: &Plan) -> ScriptClients<'_> {
        let mut talk = ScriptClients::new(plan, portion(0, 1));
        while say(&mut talk, 0).1.kind != 0 {}
        talk
    }

    fn number_in(sql: &str, before: &str) -> i64 {
        let rest = &sql[sql.find(before).unwrap() + before.len()..];
        rest.split([',', ' ']).next().unwrap().parse().unwrap()
    }

    #[test]
    fn an_event_is_a_block_whose_parameters_stay() {
        let script = script(SHOP);
        let plan = Plan::new(&script, |_| false);
        let mut talk = at_buy(&plan);
        let (update, part) = say(&mut talk, 0);
        assert_eq!((part.kind, part.part), (1, Part::Inner));
        let update = String::from_utf8(update[1..].to_vec()).unwrap();
        assert!(
            update.starts_with("UPDATE items SET note = NULL WHERE") || update.contains(r"= 'it''s \\' WHERE"),
            "{update}"
        );
        let id = number_in(&update, "id = ");
        assert!((1..=1000).contains(&id));
        assert_eq!(text(&mut talk, 0), format!("SELECT {id}, {id}"));
        assert_eq!(text(&mut talk, 0), "COMMIT");
        let (bytes, statement) = say(&mut talk, 0);
        assert_eq!(bytes, format!("\x03DO {id}").as_bytes());
        assert_eq!((statement.kind, statement.part), (4, Part::Last));
    }

    #[test]
    fn prepared_statements_have_their_values() {
        let script = script(SHOP);
        let plan = Plan::new(&script, |_| true);
        let marks =
            ["UPDATE items SET note = ? WHERE id = ?", "SELECT ?, ?", "DO ?", "SELECT stock FROM items WHERE id = ?"];
        assert_eq!(plan.prepared, marks);
        let mut talk = at_buy(&plan);
        let (update, _) = say(&mut talk, 0);
        let (select, _) = say(&mut talk, 0);
        // COM_STMT_EXECUTE of statement 9; types are known.
        assert_eq!(select[..12], [0x17, 9, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]);
        let id = &select[12..20];
        assert_eq!(id, &select[20..28]);
        assert_eq!(id, &update[update.len() - 8..]);
        assert!(update.ends_with(&[b"\x06it's \\".as_slice(), id].concat()) || update[10] == 1, "{update:?}");
        assert_eq!(text(&mut talk, 0), "COMMIT");
    }

    #[test]
    fn blocks_come_by_weight_and_by_seed() {
        let script = script(SHOP);
        let plan = Plan::new(&script, |_| false);
        let bought = |talk: &mut ScriptClients<'_>, client| {
            let events = (0..1000).map(|_| {
                let first = say(talk, client).1;
                (first.kind..4).for_each(|_| drop(say(talk, client)));
                first.kind == 0
            });
            events.collect::<Vec<bool>>()
        };
        let (mut all, mut last) = (ScriptClients::new(&plan, portion(0, 4)), ScriptClients::new(&plan, portion(3, 1)));
        let first = bought(&mut all, 0);
        assert!((250..350).contains(&first.iter().filter(|bought| **bought).count()));
        assert_ne!(first, bought(&mut all, 1));
        assert_eq!(bought(&mut all, 3), bought(&mut last, 0));
    }

    #[test]
    fn neighbours_by_seed_or_number_have_nothing_in_common() {
        let script = script(":u = uuid()\nDO :u;");
        let plan = Plan::new(&script, |_| false);
        let mut seen = std::collections::BTreeSet::new();
        for seed in 1..4 {
            let mut talk = ScriptClients::new(&plan, Portion { seed, ..portion(0, 3) });
            for client in [0, 1, 2, 0, 1, 2] {
                assert!(seen.insert(text(&mut talk, client)));
            }
        }
    }

    #[test]
    fn a_transaction_given_up_is_said_again_with_the_same_values() {
        let script = script(SHOP);
        let plan = Plan::new(&script, |_| false);
        let mut talk = at_buy(&plan);
        let update = text(&mut talk, 0);
        assert_eq!(talk.refused(0, 1213), After::StartOver);
        let (bytes, statement) = say(&mut talk, 0);
        assert_eq!((bytes.as_slice(), statement.part), (b"\x03ROLLBACK".as_slice(), Part::Apart));
        assert_eq!(kinds(&script)[usize::from(statement.kind)].name, "rollback");
        assert_eq!(text(&mut talk, 0), "BEGIN");
        assert_eq!(text(&mut talk, 0), update);
        // Also the last but one, and also twice.
        text(&mut talk, 0);
        assert_eq!(text(&mut talk, 0), "COMMIT");
        assert_eq!(talk.refused(0, 1205), After::StartOver);
        assert_eq!(text(&mut talk, 0), "ROLLBACK");
        assert_eq!(talk.refused(0, 1205), After::GoOn);
        assert_eq!(text(&mut talk, 0), "BEGIN");
        assert_eq!(text(&mut talk, 0), update);
    }

    #[test]
    fn a_statement_on_its_own_is_said_again_alone() {
        let script = script(SHOP);
        let plan = Plan::new(&script, |_| false);
        let mut talk = at_buy(&plan);
        (0..3).for_each(|_| drop(text(&mut talk, 0)));
        let last = text(&mut talk, 0);
        assert!(last.starts_with("DO "));
        assert_eq!(talk.refused(0, 1205), After::StartOver);
        assert_eq!(text(&mut talk, 0), last);
    }

    #[test]
    fn another_error_is_passed_over() {
        let script = script(SHOP);
        let plan = Plan::new(&script, |_| false);
        let mut talk = at_buy(&plan);
        text(&mut talk, 0);
        assert_eq!(talk.refused(0, 1062), After::GoOn);
        assert!(text(&mut talk, 0).starts_with("SELECT "));
    }

    #[test]
    fn a_lost_transaction_is_said_again_and_a_lost_statement_is_not() {
        let script = script(SHOP);
        let plan = Plan::new(&script, |_| false);
        let mut talk = at_buy(&plan);
        let update = text(&mut talk, 0);
        assert_eq!(talk.reconnected(0), After::StartOver);
        assert_eq!(text(&mut talk, 0), "BEGIN");
        assert_eq!(text(&mut talk, 0), update);
        (0..2).for_each(|_| drop(text(&mut talk, 0)));
        assert!(text(&mut talk, 0).starts_with("DO "));
        assert_eq!(talk.reconnected(0), After::GoOn);
    }

    #[test]
    fn a_list_is_drawn_once_per_event_and_sent_one_by_one() {
        let script =
            script(":ids = list(3, uniform(1, 1000000))\nBEGIN;\n-- for each: ids\nSELECT :ids;\nDO :ids;\nCOMMIT;");
        assert_eq!(kinds(&script).len(), 5);
        let plan = Plan::new(&script, |_| false);
        let mut talk = ScriptClients::new(&plan, portion(0, 1));
        assert_eq!(text(&mut talk, 0), "BEGIN");
        let one_by_one: Vec<String> =
            (0..3).map(|_| text(&mut talk, 0).strip_prefix("SELECT ").unwrap().to_owned()).collect();
        assert_eq!(text(&mut talk, 0), format!("DO {}", one_by_one.join(", ")));
        assert_eq!(talk.refused(0, 1213), After::StartOver);
        assert_eq!([text(&mut talk, 0), text(&mut talk, 0)], ["ROLLBACK", "BEGIN"]);
        assert_eq!(text(&mut talk, 0), format!("SELECT {}", one_by_one[0]));
        let prepared = Plan::new(&script, |_| true);
        assert_eq!(prepared.prepared, ["SELECT ?", "DO ?, ?, ?"]);
    }

    #[test]
    fn a_number_and_those_after_it_are_sent() {
        let script = script(":id = uniform(7, 7)\n:ids = list(3, :id)\n:last = :id + 99\nDO :ids, :last;");
        let plan = Plan::new(&script, |_| false);
        let mut talk = ScriptClients::new(&plan, portion(0, 1));
        assert_eq!(text(&mut talk, 0), "DO 7, 8, 9, 106");
    }

    #[test]
    fn a_sequence_is_disjoint_among_clients() {
        let script = script(":n = sequence(5)\nDO :n;");
        let plan = Plan::new(&script, |_: &Template| false);
        let mut threads = [ScriptClients::new(&plan, portion(0, 2)), ScriptClients::new(&plan, portion(2, 1))];
        let mut seen = Vec::new();
        for client in [0, 1, 1, 0] {
            seen.push(text(&mut threads[0], client));
            seen.push(text(&mut threads[1], 0));
        }
        seen.sort_by_key(String::len);
        assert_eq!(seen, (5..13).map(|n| format!("DO {n}")).collect::<Vec<_>>());
    }
}
