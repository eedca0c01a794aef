//! What a statement leaves to the later ones: the default schema, prepared statements, tables, savepoints; and the
//! statements of a packet of several.

use std::ops::Range;

use super::tokens::{Capitals, DEPTH_MAX, READINGS, Token, Tokens, USUAL, skip_word};

/// Most tokens between CREATE and VIEW.
const VIEW_HEAD_MAX: usize = 20;

/// Most statements of a packet that are told apart.
const PARTS_MAX: usize = 1000;

/// How statements begin that only stand within others: a packet with one of them has a block, whose `;` end no
/// statement.
const OF_BLOCKS: &[&str] = &[
    "CASE", "CLOSE", "DECLARE", "ELSE", "ELSEIF", "END", "FETCH", "FOR", "IF", "ITERATE", "LEAVE", "LOOP", "OPEN",
    "REPEAT", "RETURN", "UNTIL", "WHILE",
];

/// What a statement makes for later ones, or takes from them; names are in small letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// PREPARE, and whether the log has the text.
    Prepare {
        /// Its name.
        name: Vec<u8>,
        /// MySQL writes `...` in its place.
        is_hidden: bool,
    },
    /// EXECUTE of that name.
    Execute(Vec<u8>),
    /// EXECUTE IMMEDIATE.
    ExecuteText,
    /// DEALLOCATE PREPARE, DROP PREPARE.
    Deallocate(Vec<u8>),
    /// CREATE TEMPORARY TABLE.
    MakeTemporary(Vec<u8>),
    /// CREATE TABLE, CREATE VIEW; RENAME TABLE to these.
    MakeTables(Vec<Vec<u8>>),
    /// DROP TABLE of these.
    DropTables(Vec<Vec<u8>>),
    /// SAVEPOINT.
    Savepoint(Vec<u8>),
    /// ROLLBACK TO, RELEASE SAVEPOINT.
    ToSavepoint(Vec<u8>),
    /// Nothing of that.
    None,
}

/// What the statement makes or takes.
pub fn step(sql: &[u8]) -> Step {
    let mut tokens = Tokens::new(sql, USUAL);
    for _ in 0..DEPTH_MAX {
        match tokens.next() {
            Token::Executable(code) => tokens = tokens.of_text(code),
            Token::Word(word) => return step_of(&Capitals::new(word), tokens).unwrap_or(Step::None),
            _ => break,
        }
    }
    Step::None
}

fn step_of(word: &Capitals, mut tokens: Tokens<'_>) -> Option<Step> {
    match word.bytes() {
        b"PREPARE" => {
            let name = name(&mut tokens)?;
            if !skip_word(&mut tokens, b"FROM") {
                return None;
            }
            Some(Step::Prepare { name, is_hidden: matches!(tokens.next(), Token::Mark(b'.') | Token::End) })
        }
        b"EXECUTE" if skip_word(&mut tokens, b"IMMEDIATE") => Some(Step::ExecuteText),
        b"EXECUTE" => name(&mut tokens).map(Step::Execute),
        b"DEALLOCATE" | b"DROP" if skip_word(&mut tokens, b"PREPARE") => name(&mut tokens).map(Step::Deallocate),
        b"CREATE" => {
            if skip_word(&mut tokens, b"OR") {
                skip_word(&mut tokens, b"REPLACE");
            }
            let is_temporary = skip_word(&mut tokens, b"TEMPORARY");
            // A view may have its algorithm, its definer and the rights that it uses before its name.
            let is_of_table = (0..VIEW_HEAD_MAX).find_map(|_| match tokens.next() {
                Token::Word(word) => match Capitals::new(word).bytes() {
                    b"TABLE" | b"VIEW" => Some(true),
                    b"PROCEDURE" | b"FUNCTION" | b"TRIGGER" | b"EVENT" | b"PACKAGE" | b"INDEX" | b"DATABASE"
                    | b"SCHEMA" | b"USER" | b"ROLE" | b"SERVER" => Some(false),
                    _ => None,
                },
                Token::Mark(_) | Token::Name(_) | Token::Text(..) => None,
                _ => Some(false),
            });
            if is_of_table != Some(true) {
                return None;
            }
            ["IF", "NOT", "EXISTS"].iter().all(|word| skip_word(&mut tokens, word.as_bytes()));
            let name = table(&mut tokens)?;
            Some(if is_temporary { Step::MakeTemporary(name) } else { Step::MakeTables(vec![name]) })
        }
        b"RENAME" => {
            if !skip_word(&mut tokens, b"TABLE") && !skip_word(&mut tokens, b"TABLES") {
                return None;
            }
            let mut names = Vec::new();
            loop {
                table(&mut tokens)?;
                if !skip_word(&mut tokens, b"TO") {
                    return None;
                }
                names.push(table(&mut tokens)?);
                if !tokens.skip(b',') || names.len() >= PARTS_MAX {
                    return Some(Step::MakeTables(names));
                }
            }
        }
        b"DROP" => {
            skip_word(&mut tokens, b"TEMPORARY");
            if !skip_word(&mut tokens, b"TABLE") && !skip_word(&mut tokens, b"TABLES") {
                return None;
            }
            ["IF", "EXISTS"].iter().all(|word| skip_word(&mut tokens, word.as_bytes()));
            let mut names = vec![table(&mut tokens)?];
            while tokens.skip(b',') && names.len() < PARTS_MAX {
                names.extend(table(&mut tokens));
            }
            Some(Step::DropTables(names))
        }
        b"SAVEPOINT" => name(&mut tokens).map(Step::Savepoint),
        b"RELEASE" if skip_word(&mut tokens, b"SAVEPOINT") => name(&mut tokens).map(Step::ToSavepoint),
        b"ROLLBACK" => {
            skip_word(&mut tokens, b"WORK");
            if !skip_word(&mut tokens, b"TO") {
                return None;
            }
            skip_word(&mut tokens, b"SAVEPOINT");
            name(&mut tokens).map(Step::ToSavepoint)
        }
        _ => None,
    }
}

/// The schema that a `USE` names, which may have letters beyond ASCII.
pub fn used_schema(sql: &[u8]) -> Option<Vec<u8>> {
    let mut tokens = Tokens::new(sql, USUAL);
    if !skip_word(&mut tokens, b"USE") {
        return None;
    }
    match tokens.next() {
        Token::Name(name) => Some(unquote(name, b'`')),
        // By a server with ANSI_QUOTES.
        Token::Text(quote, name) => Some(unquote(name, quote)),
        Token::Word(_) | Token::Foreign | Token::Number | Token::Odd => {
            // The name is as it stands, up to a blank.
            let at = Tokens::new(sql, USUAL).behind_word();
            let rest = sql[at..].trim_ascii();
            let end = rest.iter().position(|byte| byte.is_ascii_whitespace() || *byte == b';').unwrap_or(rest.len());
            Some(rest[..end].to_vec())
        }
        _ => None,
    }
}

/// The statements of a packet of several, each by its place; `None` if it depends on the server where one ends.
///
/// Each is looked at and sent by itself, so a wrong cut would be refused as a mistake, and do no harm.
pub fn parts(sql: &[u8]) -> Option<Vec<Range<usize>>> {
    let usual = cut(Tokens::new(sql, USUAL))?;
    let is_clear = !sql.contains(&b'\\')
        || READINGS[1..].iter().all(|reading| cut(Tokens::new(sql, *reading)).is_some_and(|parts| parts == usual));
    (is_clear && usual.len() > 1).then_some(usual)
}

fn cut(mut tokens: Tokens<'_>) -> Option<Vec<Range<usize>>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    // Where the statement begins and ends that is read, and how many of its tokens were seen.
    let (mut start, mut end, mut seen) = (0, 0, 0);
    let mut is_block = false;
    loop {
        let token = tokens.next();
        match token {
            Token::Odd | Token::Open => return None,
            Token::End | Token::Mark(b';') => {
                if seen > 0 {
                    parts.push(start..end);
                }
                if is_block || parts.len() > PARTS_MAX {
                    return None;
                }
                if token == Token::End {
                    return Some(parts);
                }
                (start, seen) = (tokens.place(), 0);
            }
            Token::Word(word) => {
                let word = Capitals::new(word);
                is_block |= seen == 0 && word.is_one_of(OF_BLOCKS);
                is_block |= seen == 1 && word.bytes() == b"NOT";
                is_block |=
                    seen > 0 && matches!(word.bytes(), b"PROCEDURE" | b"FUNCTION" | b"TRIGGER" | b"EVENT" | b"PACKAGE");
                (end, seen) = (tokens.place(), seen + 1);
            }
            _ => (end, seen) = (tokens.place(), seen + 1),
        }
    }
}

/// Whether the statement names one of these tables, which are in small letters, where a table stands.
pub fn names_table(sql: &[u8], is_listed: impl Fn(&[u8]) -> bool) -> bool {
    fn look(mut tokens: Tokens<'_>, depth: u32, is_of_table: &mut bool, is_listed: &dyn Fn(&[u8]) -> bool) -> bool {
        loop {
            let is_named = match tokens.next() {
                Token::End => return false,
                Token::Word(word) => match Capitals::new(word).bytes() {
                    b"FROM" | b"JOIN" | b"STRAIGHT_JOIN" | b"INTO" | b"UPDATE" | b"TABLE" | b"TABLES" | b"DESCRIBE"
                    | b"DESC" | b"EXPLAIN" | b"COLUMNS" | b"INDEX" | b"KEYS" | b"INSERT" | b"REPLACE" | b"DELETE" => {
                        *is_of_table = true;
                        false
                    }
                    b"SELECT" | b"WHERE" | b"SET" | b"VALUES" | b"GROUP" | b"ORDER" | b"HAVING" | b"LIMIT" | b"ON"
                    | b"USING" => {
                        *is_of_table = false;
                        false
                    }
                    _ => *is_of_table && is_listed(&word.to_ascii_lowercase()),
                },
                Token::Name(name) => *is_of_table && is_listed(&unquote(name, b'`').to_ascii_lowercase()),
                Token::Executable(code) if depth > 0 => look(tokens.of_text(code), depth - 1, is_of_table, is_listed),
                _ => false,
            };
            if is_named {
                return true;
            }
        }
    }
    look(Tokens::new(sql, USUAL), DEPTH_MAX, &mut false, &is_listed)
}

/// The name that comes next, in small letters.
pub fn name(tokens: &mut Tokens<'_>) -> Option<Vec<u8>> {
    match tokens.next() {
        Token::Word(name) => Some(name.to_ascii_lowercase()),
        Token::Name(name) => Some(unquote(name, b'`').to_ascii_lowercase()),
        _ => None,
    }
}

/// The table that comes next, without its schema.
fn table(tokens: &mut Tokens<'_>) -> Option<Vec<u8>> {
    let first = name(tokens)?;
    if tokens.skip(b'.') { name(tokens) } else { Some(first) }
}

/// A name without the quotes that are doubled in it.
pub fn unquote(name: &[u8], quote: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut bytes = name.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte == quote {
            bytes.next_if_eq(&quote);
        }
        out.push(byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_session_is_left_with_is_told() {
        let name = |text: &str| text.as_bytes().to_vec();
        for (sql, expected) in [
            ("PREPARE s FROM ...", Step::Prepare { name: name("s"), is_hidden: true }),
            ("/* a */ prepare `S` from 'SELECT 1'", Step::Prepare { name: name("s"), is_hidden: false }),
            ("EXECUTE s USING @a", Step::Execute(name("s"))),
            ("EXECUTE IMMEDIATE 'SELECT 1'", Step::ExecuteText),
            ("DEALLOCATE PREPARE s", Step::Deallocate(name("s"))),
            ("drop prepare s", Step::Deallocate(name("s"))),
            ("CREATE TEMPORARY TABLE IF NOT EXISTS shop.`T``1` (i INT)", Step::MakeTemporary(name("t`1"))),
            ("/*!50000 CREATE TEMPORARY TABLE t SELECT 1 */", Step::MakeTemporary(name("t"))),
            ("CREATE TABLE t (i INT)", Step::MakeTables(vec![name("t")])),
            (
                "CREATE OR REPLACE ALGORITHM=MERGE DEFINER=`a`@`%` SQL SECURITY INVOKER VIEW shop.V AS SELECT 1",
                Step::MakeTables(vec![name("v")]),
            ),
            ("RENAME TABLE a TO b.C, c TO d", Step::MakeTables(vec![name("c"), name("d")])),
            ("CREATE PROCEDURE p() CREATE TABLE t (i INT)", Step::None),
            ("DROP TEMPORARY TABLE IF EXISTS a, b.c", Step::DropTables(vec![name("a"), name("c")])),
            ("DROP VIEW a", Step::None),
            ("ROLLBACK", Step::None),
            ("ROLLBACK TO SAVEPOINT a", Step::ToSavepoint(name("a"))),
            ("SELECT 1", Step::None),
        ] {
            assert_eq!(step(sql.as_bytes()), expected, "{sql}");
        }
        for sql in
            ["SELECT * FROM t /*! , `U` */", "SELECT 1 FROM (a JOIN shop.u x ON 1)", "DESC u", "INSERT u VALUES (1)"]
        {
            assert!(names_table(sql.as_bytes(), |name| name == b"u"), "{sql}");
        }
        for sql in ["SELECT 'u', ut", "SELECT u FROM t WHERE t.u = 1 ORDER BY u", "SELECT 1 FROM t JOIN a ON u = 1"] {
            assert!(!names_table(sql.as_bytes(), |name| name == b"u"), "{sql}");
        }
    }

    #[test]
    fn a_schema_is_named_in_any_letters() {
        for (sql, name) in [
            ("USE shop", "shop"),
            ("use `sh``op`;", "sh`op"),
            ("/* a */ USE shop /* b */", "shop"),
            ("USE gr\u{f6}\u{df}e;", "gr\u{f6}\u{df}e"),
            ("use 2024_shop ", "2024_shop"),
        ] {
            assert_eq!(used_schema(sql.as_bytes()), Some(name.as_bytes().to_vec()), "{sql}");
        }
    }

    #[test]
    fn a_packet_is_cut_where_every_server_cuts_it() {
        let cut = |sql: &str| {
            parts(sql.as_bytes())
                .map(|parts| parts.into_iter().map(|part| sql[part].trim().to_owned()).collect::<Vec<_>>())
        };
        let all = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        assert_eq!(cut("USE a; SELECT ';' /* ; */;;\n SELECT 2 ; -- c"), all(&["USE a", "SELECT ';'", "SELECT 2"]));
        assert_eq!(cut("SELECT 1;"), None);
        assert_eq!(cut(r"SELECT 'a\'; SELECT 2; -- '; SELECT 3"), None);
        assert_eq!(cut(r"SELECT 'a\n'; SELECT 2"), all(&[r"SELECT 'a\n'", "SELECT 2"]));
        for block in [
            "SET @a = 1; BEGIN NOT ATOMIC SELECT 1; END",
            "DROP PROCEDURE p; SELECT 1",
            "SELECT 1; CREATE PROCEDURE p() SELECT 1",
            "SELECT 1; IF 1 THEN SELECT 2; END IF",
            "SELECT 1; SELECT 'a",
        ] {
            assert_eq!(cut(block), None, "{block}");
        }
    }
}
