use super::*;
use crate::script::items::{Item, Items};
use proptest::prelude::*;

fn value(text: &str) -> Result<Defined, String> {
    let text = format!(":x = {text}");
    let Ok(Some(Item::Definition { name, at, value })) = Items::new(&text).next() else {
        return Err("no definition".into());
    };
    let constant = |name: &str| (name == "rows").then_some(Literal::Integer(50));
    read(name, at, &value, &constant).map_err(|mistake| {
        assert!(text.is_char_boundary(mistake.at));
        format!("{}|{}", &text[mistake.at..], mistake.text)
    })
}

fn constant(text: &str) -> Literal {
    match value(text) {
        Ok(Defined::Constant(value)) => value,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn constants_are_numbers_strings_or_null() {
    assert_eq!(constant("-5"), Literal::Integer(-5));
    assert_eq!(constant("1.5e-3").sql(), "1.5e-3");
    assert_eq!(constant(".5;").sql(), ".5");
    assert_eq!(constant("'it''s'"), Literal::Text("it's".into()));
    assert_eq!(constant("null"), Literal::Null);
    assert_eq!(constant(":rows"), Literal::Integer(50));
}

#[test]
fn all_functions_are_read() {
    let right = [
        "uniform(-5, 5)",
        "ZIPF(1, :rows)",
        "zipf(1, 9, 1.2)",
        "gaussian(1, 9)",
        "gaussian(1, 9, 3)",
        "pareto(1, 9)",
        "pareto(1, 9, .3)",
        "special(1, 9)",
        "special(1, 9, 5, 90.5)",
        "exponential(1, 9, 2)",
        "exponential(1,9)",
        "sequence()",
        "sequence(100)",
        "one_of('a', 'b')",
        "one_of(1: 0, NULL :2, 2.5:1)",
        "text(0)",
        "text(4, 40)",
        "digits(3)",
        "uuid()",
    ];
    for text in right {
        assert!(matches!(value(text), Ok(Defined::Drawn(_))), "{text}: {:?}", value(text));
    }
}

#[test]
fn what_is_wrong_is_shown_where_it_is() {
    let wrong = [
        ("uniform(5, 1)", "uniform(5, 1)|write uniform(low, high)"),
        ("uniform(1.5, 2)", "uniform(1.5, 2)|write uniform"),
        ("zipf(1, 9, 101)", "zipf(1, 9, 101)|write zipf"),
        ("uniform", "uniform|write uniform(low, high)"),
        ("uniforn(1, 2)", "uniforn(1, 2)|there is no function uniforn: did you mean uniform?"),
        ("now()", "now()|there is no function now: There are uniform, zipf"),
        ("uniform(1, 2", "2|a , or ) is missing"),
        ("uniform(1 2)", "2)|a , or ) is missing"),
        ("uniform(1, 2) * 3", "* 3|* is too much here"),
        ("uniform(1, 2: 3)", "2: 3)|only the values of one_of"),
        ("uniform(1, :other)", ":other)|:other is no constant"),
        ("one_of()", "one_of()|write one_of"),
        ("one_of('a': 0)", "one_of('a': 0)|write one_of"),
        ("one_of('a', 1)", "1)|one_of has strings and numbers"),
        ("one_of('a': 1, 'b')", "'b')|this value of one_of has no weight"),
        ("one_of('a': x)", "x)|x is no value"),
        ("one_of('a': 1.5)", "1.5)|a weight is a whole"),
        ("text(99999999)", "text(99999999)|write text"),
        ("text(5, 2)", "text(5, 2)|write text"),
        ("hello", "hello|hello is no value"),
        ("99999999999999999999", "99999999999999999999|99999999999999999999 is no value"),
        ("", ":x = |:x has no value"),
    ];
    for (text, expected) in wrong {
        let said = value(text).map(drop).unwrap_err();
        assert!(said.starts_with(expected), "{text}: {said}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(uniform|one_of|text|\\(|\\)|,|:|:rows|'a'|1|\\.|-|e| |é){0,12}") {
        let _ = value(&text);
    }
}
