use super::*;
use Operation::{Insert, Select};
use proptest::prelude::*;

const ONE: Columns = Columns { count: 1, indexed: false };

const PLAIN: Shape = Shape { key: Key::None, secondary: 0, integers: ONE, strings: ONE };

/// `text` with every literal replaced, as one compares shapes of statements.
fn shape_of(text: &str) -> String {
    let mut out = String::new();
    let mut parts = text.split('\'');
    out.push_str(parts.next().unwrap_or_default());
    while let (Some(_), Some(after)) = (parts.next(), parts.next()) {
        out.push('S');
        out.push_str(after);
    }
    let mut shape = String::new();
    let mut inside_word = false;
    for c in out.chars() {
        if c.is_ascii_digit() && !inside_word {
            if !shape.ends_with('I') {
                shape.push('I');
            }
        } else {
            shape.push(c);
        }
        inside_word = c.is_ascii_alphabetic() || (inside_word && c.is_ascii_digit());
    }
    shape
}

fn list(shape: Shape, load: Load, unique: u64) -> Vec<ListEntry> {
    shape.statements(load, unique, &mut Random::new(1))
}

#[test]
fn tables_have_mysqlslaps_columns_in_its_order() {
    let sql = |shape: Shape, engine| shape.create_table(engine);
    assert_eq!(sql(PLAIN, None), "CREATE TABLE `t1` (intcol1 INT(32),charcol1 VARCHAR(128)) COMMENT = 'dbdyno slap'");
    let serial = Shape {
        key: Key::Serial,
        integers: Columns { count: 2, indexed: true },
        strings: Columns { count: 2, indexed: false },
        ..PLAIN
    };
    assert_eq!(
        sql(serial, Some("innodb")),
        "CREATE TABLE `t1` (id serial,intcol1 INT(32),INDEX(intcol1),intcol2 INT(32),\
         INDEX(intcol2),charcol1 VARCHAR(128),charcol2 VARCHAR(128)) Engine = innodb \
         COMMENT = 'dbdyno slap'"
    );
    let guid = Shape { key: Key::Guid, secondary: 2, ..PLAIN };
    assert_eq!(
        sql(guid, None),
        "CREATE TABLE `t1` (id varchar(36) primary key,id0 varchar(36) unique key,\
         id1 varchar(36) unique key,intcol1 INT(32),charcol1 VARCHAR(128)) COMMENT = 'dbdyno slap'"
    );
    assert_eq!(guid.columns(), ["id", "id0", "id1", "intcol1", "charcol1"]);
}

#[test]
fn statements_have_mysqlslaps_shape() {
    let serial = Shape { key: Key::Serial, ..PLAIN };
    let guid = Shape { key: Key::Guid, secondary: 1, ..PLAIN };
    let first = |shape, load| list(shape, load, 10).remove(0);
    let cases = [
        (PLAIN, Load::Write, "INSERT INTO t1 VALUES (I,S)"),
        (serial, Load::Write, "INSERT INTO t1 VALUES (NULL,I,S)"),
        (guid, Load::Write, "INSERT INTO t1 VALUES (uuid(),uuid(),I,S)"),
        (PLAIN, Load::Read, "SELECT intcol1,charcol1 FROM t1"),
        (PLAIN, Load::Update, "UPDATE t1 SET intcol1 = I,charcol1 = S"),
        (serial, Load::Read, "SELECT intcol1,charcol1 FROM t1"),
    ];
    for (shape, load, expected) in cases {
        assert_eq!(shape_of(&first(shape, load).text), expected);
    }
    let key = first(serial, Load::Key);
    assert_eq!(key.text, "SELECT intcol1,charcol1 FROM t1 WHERE id =  '");
    assert!(key.keyed);
    let update = first(serial, Load::Update);
    assert!(update.keyed && update.text.ends_with(" WHERE id =  '"));
}

#[test]
fn lists_have_one_more_than_asked_and_mixed_alternates() {
    let kinds = |shape, load| -> Vec<(Operation, bool)> {
        let statements = list(shape, load, 3);
        statements.iter().map(|s| (s.operation, s.keyed)).collect()
    };
    let plain = [(Insert, false), (Select, false), (Insert, false), (Select, false)];
    assert_eq!(kinds(PLAIN, Load::Mixed), plain);
    let guid = Shape { key: Key::Guid, ..PLAIN };
    assert_eq!(kinds(guid, Load::Mixed)[1], (Select, true));
}

#[test]
fn strings_are_126_characters_without_u_and_v() {
    let text = string(&mut Random::new(9));
    assert_eq!(text.len(), 126);
    assert!(!text.contains(['U', 'V']));
}

proptest! {
    #[test]
    fn a_row_has_a_value_for_every_column(
        integers in 0u32..9, strings in 0u32..9, secondary in 0u32..4, key in 0usize..3, seed: u64
    ) {
        let shape = Shape {
            key: [Key::None, Key::Serial, Key::Guid][key],
            secondary,
            integers: Columns { count: integers, indexed: true },
            strings: Columns { count: strings, indexed: false },
        };
        let columns = shape.columns();
        let row = shape.row(&mut Random::new(seed));
        let values = row.trim_matches(['(', ')']).split(',').filter(|v| !v.is_empty()).count();
        prop_assert_eq!(values, columns.len());
        prop_assert_eq!(&row, &shape.row(&mut Random::new(seed)));
        for column in &columns {
            let named = format!("{column} ");
            prop_assert!(shape.create_table(None).contains(&named));
        }
    }
}
