use std::sync::Arc;

use super::*;
use crate::script::model::{Block, Piece};
use proptest::prelude::*;

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
    script(&source, &[]).map_err(|error| error.to_string())
}

fn refused(text: &str) -> String {
    let said = read(text).map(|_| ()).unwrap_err();
    said.strip_prefix("dir/shop.sql:").expect(&said).to_owned()
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
    assert_eq!(buy.statements[2].values().collect::<Vec<_>>(), [1, 0]);
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
    let with = |given: &[(&str, &str)]| {
        let given: Vec<(String, String)> = given.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
        script(&source, &given).map_err(|error| error.to_string())
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
        ("SELECT :idd;\n:id = uuid()", "1:8: :idd is not defined: did you mean :id? Define it above as :idd = "),
        ("\n SELECT 1, :x", "2:12: :x is not defined: Define it above"),
        ("SELECT ?", "1:8: ? is no parameter"),
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
        ("-- as: x\nDO 1;\n-- as: x\nDO 2;", "3:1: another statement of this block is called shop.x"),
        (":a = uniform(9, 1)\nDO :a", "1:6: write uniform(low, high)"),
        ("SELECT 'a", "1:8: this string has no closing '"),
    ];
    for (text, expected) in wrong {
        let said = refused(text);
        assert!(said.starts_with(expected), "{text:?}: {said}");
    }
}

#[test]
fn a_label_is_no_parameter() {
    let text = "-- setup:\nCREATE PROCEDURE p() BEGIN again:LOOP LEAVE again; END LOOP; END;\n-- name: a\nCALL p();";
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
