use super::*;
use proptest::prelude::*;

fn items(text: &str) -> Result<Vec<String>, Mistake> {
    let mut reader = Items::new(text);
    let mut found = Vec::new();
    while let Some(item) = reader.next()? {
        found.push(match item {
            Item::Steer { word, value, .. } => format!("{word}|{value}"),
            Item::Definition { name, value, .. } => {
                format!("{name}={}", value.iter().map(|piece| piece.text).collect::<String>())
            }
            Item::Statement(pieces) => pieces.iter().map(|piece| piece.text).collect(),
        });
    }
    Ok(found)
}

fn refused(text: &str) -> String {
    items(text).unwrap_err().text
}

#[test]
fn a_file_is_lines_that_steer_definitions_and_statements() {
    let text = "-- A shop.\n-- setup: run once\nCREATE TABLE t (a int); # done\n\n-- Name: buy  weight: 3\n\
                :id = zipf(1, 9) -- hot\n:b = one_of('x;',\n  'y'); BEGIN; ;\n/* both */ SELECT :id, ':x' -- why\n;\nCOMMIT";
    let expected = [
        "setup|run once",
        "CREATE TABLE t (a int)",
        "name|buy  weight: 3",
        "id=zipf(1,9)",
        "b=one_of('x;','y')",
        "BEGIN",
        "SELECT :id, ':x'",
        "COMMIT",
    ];
    assert_eq!(items(text).unwrap(), expected);
}

#[test]
fn a_stored_program_needs_no_delimiter() {
    let programs = [
        "CREATE PROCEDURE p()\nBEGIN\n IF a THEN SET b = IF(1, 2, 3); END IF;\n WHILE 1 DO SET a = 2; END WHILE;\n\
         CASE a WHEN 1 THEN SET b = CASE c WHEN 1 THEN 2 END; END CASE;\n BEGIN SELECT 1; END;\nEND",
        "CREATE DEFINER=`a`@`b` TRIGGER t BEFORE INSERT ON x FOR EACH ROW BEGIN SET NEW.a = 1; END",
        "create or replace function f() returns int begin return 1; end",
        "BEGIN NOT ATOMIC SELECT 1; SELECT 2; END",
    ];
    for program in programs {
        assert_eq!(items(&format!("{program};\nSELECT 1;")).unwrap(), [program, "SELECT 1"]);
    }
    let plain = "CREATE TABLE event (begin datetime, end datetime);SELECT CASE 1 WHEN 1 THEN 2;BEGIN;COMMIT";
    assert_eq!(items(plain).unwrap().join(";"), plain);
    assert!(refused("CREATE PROCEDURE p() BEGIN SELECT 1;").contains("without END"));
}

#[test]
fn delimiter_lines_work_as_in_the_mysql_client() {
    let text = "DELIMITER //\nCREATE TRIGGER t IF 1 THEN SET a = 1; END IF//\ndelimiter ;\nSELECT 1;";
    assert_eq!(items(text).unwrap(), ["CREATE TRIGGER t IF 1 THEN SET a = 1; END IF", "SELECT 1"]);
    assert!(refused("DELIMITER go\n").contains("DELIMITER takes"));
}

#[test]
fn what_the_server_reads_in_a_comment_is_a_statement() {
    assert_eq!(items("/*!40101 SET NAMES utf8 */;\n/* no */;").unwrap(), ["/*!40101 SET NAMES utf8 */"]);
    assert_eq!(items("SELECT /*+ MAX_EXECUTION_TIME(5) */ 1;").unwrap(), ["SELECT /*+ MAX_EXECUTION_TIME(5) */ 1"]);
}

#[test]
fn steering_lines_that_would_be_missed_are_refused() {
    assert!(refused("SELECT 1\n-- name: b\n").contains("before `-- name:` has no ;"));
    assert!(refused("SELECT 1; -- as: one\n").contains("line of its own"));
    for slip in ["nmae", "names", "nam", "nome", "Cleenup", "wieght"] {
        assert!(refused(&format!("-- {slip}: b")).contains("did you mean"), "{slip}");
    }
    for comment in ["note", "todo", "has", "a name", "sets", "step 1"] {
        assert_eq!(items(&format!("-- {comment}: b")).unwrap().len(), 0, "{comment}");
    }
}

#[test]
fn a_definition_has_an_equals_sign() {
    assert!(refused(":id uniform(1, 2)\n").contains(":id = uniform"));
    assert!(refused(":id := 3\n").contains(":id = uniform"));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(-- |name:|:a|=|\\(|\\)|;|'|\n|BEGIN|CREATE|PROCEDURE|END|IF|DELIMITER|//|é|.){0,30}") {
        let _ = items(&text);
    }

    #[test]
    fn statements_come_out_as_they_went_in(
        statements in prop::collection::vec("(SELECT|UPDATE|BEGIN) [a-z0-9_,.=<>+*() \n]{0,20}('[^'\\\\]{0,9}'|`[^`]{0,5}`|x|/\\*[^*/]*\\*/ 1)", 0..6),
        between in prop::sample::select(vec![";", ";\n", " ;\n-- so\n", ";\n\n# then\n", "; /* and */ "]),
    ) {
        let text = statements.join(between);
        prop_assert_eq!(items(&text).unwrap(), statements);
    }
}
