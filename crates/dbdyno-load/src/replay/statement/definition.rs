//! The text of stored routines, triggers and events: the statements of a body, in the form in which a log's are
//! compared with them.
//!
//! A server logs a statement of a body as it stands there, but for the variables of the routine, in whose place it
//! writes `NAME_CONST('name',value)`. Control flow, DECLARE, FETCH and RETURN are not logged.

use std::borrow::Cow;
use std::ops::Range;

use super::query::Class;
use super::session::{name, unquote};
use super::tokens::{Capitals, DEPTH_MAX, Token, Tokens, USUAL, is_word, skip_word};

/// Most statements of a body; those behind them are not known.
const STATEMENTS_MAX: usize = 5000;

/// Deepest nesting of a body that is followed.
const NESTING_MAX: usize = 32;

/// Most names of a statement that are looked up.
const NAMES_MAX: usize = 1000;

/// Most tokens of a variable's value: a number, or a text with its character set and collation.
const VALUE_TOKENS_MAX: usize = 16;

/// Most tokens from CREATE to what is created.
const HEAD_MAX: usize = 24;

/// What stands between the parameters of a routine and its body; sorted.
const CHARACTERISTICS: &[&str] = &[
    "AS",
    "ASCII",
    "BINARY",
    "BYTE",
    "CONTAINS",
    "DATA",
    "DEFINER",
    "DETERMINISTIC",
    "INVOKER",
    "IS",
    "LANGUAGE",
    "MODIFIES",
    "NATIONAL",
    "NO",
    "NOT",
    "PRECISION",
    "READS",
    "SECURITY",
    "SIGNED",
    "SQL",
    "UNICODE",
    "UNSIGNED",
    "VARYING",
    "ZEROFILL",
];

/// What a CREATE statement makes that runs statements of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Makes {
    /// A procedure, which CALL runs.
    Procedure,
    /// A function, which any statement may run.
    Function,
    /// A trigger, which a write to its table runs.
    Trigger,
    /// An event, which the server runs in a session of its own.
    Event,
}

/// A stored routine, a trigger or an event by its CREATE statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// What it is.
    pub makes: Makes,
    /// Its name, or that of the trigger's table, in small letters and without the schema.
    pub name: Vec<u8>,
    /// What it runs.
    pub body: Body,
}

/// A statement of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inner {
    /// See [`comparable`].
    pub text: Vec<u8>,
    /// No run of the body that comes to a later statement has left it out.
    pub is_certain: bool,
    /// It is a handler's, which may run at any moment.
    pub is_of_handler: bool,
    /// The IF and CASE that it stands in, by their numbers in the body, and in which branch of each.
    branches: Vec<(usize, usize)>,
}

impl Inner {
    /// Whether it may run after `before` without a loop: not in another branch of the same IF.
    pub fn may_follow(&self, before: &Self) -> bool {
        self.branches
            .iter()
            .zip(&before.branches)
            .find(|(own, other)| own != other)
            .is_none_or(|(own, other)| own.0 != other.0)
    }
}

/// The statements of a body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Body {
    /// In the order of the text.
    pub statements: Vec<Inner>,
    /// Which of them a loop may run again.
    pub loops: Vec<Range<usize>>,
    /// Names that are called like functions anywhere in it, in small letters.
    pub called: Vec<Vec<u8>>,
}

/// What a CREATE statement defines; `None` if it is none of a routine, a trigger or an event.
pub fn definition(sql: &[u8]) -> Option<Definition> {
    let sql = &*without_version_comments(sql, DEPTH_MAX);
    let mut tokens = Tokens::new(sql, USUAL);
    if !skip_word(&mut tokens, b"CREATE") {
        return None;
    }
    let makes = (0..HEAD_MAX).find_map(|_| match tokens.next() {
        Token::Word(word) => match Capitals::new(word).bytes() {
            b"PROCEDURE" => Some(Some(Makes::Procedure)),
            b"FUNCTION" => Some(Some(Makes::Function)),
            b"TRIGGER" => Some(Some(Makes::Trigger)),
            b"EVENT" => Some(Some(Makes::Event)),
            b"TABLE" | b"VIEW" | b"INDEX" | b"DATABASE" | b"SCHEMA" | b"USER" | b"ROLE" => Some(None),
            _ => None,
        },
        Token::End | Token::Open => Some(None),
        _ => None,
    })??;
    ["IF", "NOT", "EXISTS"].iter().all(|word| skip_word(&mut tokens, word.as_bytes()));
    let mut name = qualified_name(&mut tokens)?;
    match makes {
        Makes::Procedure | Makes::Function => skip_to_routine_body(&mut tokens)?,
        Makes::Trigger => {
            skip_to(&mut tokens, b"ON")?;
            name = qualified_name(&mut tokens)?;
            skip_to(&mut tokens, b"ROW")?;
            if skip_word(&mut tokens, b"FOLLOWS") || skip_word(&mut tokens, b"PRECEDES") {
                qualified_name(&mut tokens)?;
            }
        }
        Makes::Event => skip_to(&mut tokens, b"DO")?,
    }
    Some(Definition { makes, name, body: Body::read(&sql[tokens.place()..]) })
}

/// A statement as it is compared: its tokens with one blank between them, names in small letters, and a routine's
/// variables by their names.
pub fn comparable(sql: &[u8]) -> Comparable {
    let mut tokens = Tokens::new(sql, USUAL);
    Comparable::read(sql, &mut tokens)
}

/// What is compared of a statement.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Comparable {
    /// Its tokens.
    pub text: Vec<u8>,
    /// What is called like a function in it, in small letters.
    pub called: Vec<Vec<u8>>,
    /// Every name and keyword in it, in small letters.
    pub names: Vec<Vec<u8>>,
}

impl Comparable {
    /// Up to `;`, which is gone over, or to the end.
    fn read(sql: &[u8], tokens: &mut Tokens<'_>) -> Self {
        let mut all = Self::default();
        loop {
            let before = tokens.place();
            let token = tokens.next();
            let name = match token {
                Token::End | Token::Open | Token::Mark(b';') => return all,
                Token::Word(word) => word.to_ascii_lowercase(),
                Token::Name(name) => unquote(name, b'`').to_ascii_lowercase(),
                Token::Executable(code) => {
                    let inner = Self::read(code, &mut tokens.of_text(code));
                    all.push(&inner.text);
                    all.called.extend(inner.called);
                    all.names.extend(inner.names);
                    all.called.truncate(NAMES_MAX);
                    all.names.truncate(NAMES_MAX);
                    continue;
                }
                Token::Mark(mark) => {
                    all.push(&[mark]);
                    continue;
                }
                Token::Text(quote, text) => {
                    all.push(&[&[quote], text].concat());
                    continue;
                }
                Token::Number | Token::Foreign | Token::Odd => {
                    all.push(sql[before..tokens.place()].trim_ascii());
                    continue;
                }
            };
            if name == b"name_const"
                && let Some(variable) = variable(tokens)
            {
                all.push(&variable);
                continue;
            }
            all.push(&name);
            match name.as_slice() {
                // In place of a variable stands its value.
                b"limit" => skip_limit(tokens),
                // Of the text to prepare some servers log nothing.
                b"prepare" if all.names.is_empty() => {
                    all.push(&qualified_name(tokens).unwrap_or_default());
                    while !matches!(tokens.next(), Token::End | Token::Open | Token::Mark(b';')) {}
                    return all;
                }
                _ => {}
            }
            if tokens.peek() == Token::Mark(b'(') && all.called.len() < NAMES_MAX {
                all.called.push(name.clone());
            }
            if all.names.len() < NAMES_MAX {
                all.names.push(name);
            }
        }
    }

    fn push(&mut self, token: &[u8]) {
        if !self.text.is_empty() {
            self.text.push(b' ');
        }
        self.text.extend_from_slice(token);
    }
}

/// The variable of `NAME_CONST('name',value)`, whose parenthesis comes next.
fn variable(tokens: &mut Tokens<'_>) -> Option<Vec<u8>> {
    let mut after = *tokens;
    if !after.skip(b'(') {
        return None;
    }
    let Token::Text(quote, name) = after.next() else { return None };
    let mut depth = 1;
    for _ in 0..VALUE_TOKENS_MAX {
        match after.next() {
            Token::Mark(b'(') => depth += 1,
            Token::Mark(b')') => depth -= 1,
            Token::End | Token::Open => return None,
            _ => {}
        }
        if depth == 0 {
            *tokens = after;
            return Some(unquote(name, quote).to_ascii_lowercase());
        }
    }
    None
}

/// Goes over the numbers or variables of `LIMIT 5, v` and `LIMIT v OFFSET 5`.
fn skip_limit(tokens: &mut Tokens<'_>) {
    loop {
        if skip_word(tokens, b"NAME_CONST") {
            variable(tokens);
        } else if matches!(tokens.peek(), Token::Number | Token::Word(_) | Token::Name(_) | Token::Mark(b'?')) {
            tokens.next();
        }
        if !tokens.skip(b',') && !skip_word(tokens, b"OFFSET") {
            return;
        }
    }
}

/// What encloses a statement of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    Block,
    /// An IF or a CASE of this number, in this branch.
    Condition(usize, usize),
    /// A loop whose first statement has this number.
    Loop(usize),
    Handler,
}

impl Body {
    /// Takes a body apart.
    pub fn read(sql: &[u8]) -> Self {
        let mut tokens = Tokens::new(sql, USUAL);
        let (mut body, mut around) = (Self::default(), Vec::new());
        // Behind a jump or a handler nobody knows what was left out.
        let mut is_straight = true;
        let mut conditions = 0;
        while body.statements.len().max(body.loops.len()) < STATEMENTS_MAX && around.len() < NESTING_MAX {
            let start = tokens;
            let word = match tokens.next() {
                Token::End | Token::Open => break,
                Token::Word(word) => Capitals::new(word),
                Token::Name(_) => Capitals::new(b""),
                // A query in parentheses.
                Token::Mark(b'(') => Capitals::new(b"SELECT"),
                _ => continue,
            };
            if tokens.skip(b':') {
                continue; // of a label
            }
            match word.bytes() {
                b"BEGIN" => {
                    ["NOT", "ATOMIC"].iter().all(|word| skip_word(&mut tokens, word.as_bytes()));
                    around.push(Around::Block);
                }
                b"IF" => {
                    body.expression(&mut tokens, b"THEN");
                    conditions += 1;
                    around.push(Around::Condition(conditions, 0));
                }
                b"CASE" => {
                    body.expression(&mut tokens, b"WHEN");
                    body.expression(&mut tokens, b"THEN");
                    conditions += 1;
                    around.push(Around::Condition(conditions, 0));
                }
                b"ELSEIF" | b"WHEN" | b"ELSE" => {
                    if word.bytes() != b"ELSE" {
                        body.expression(&mut tokens, b"THEN");
                    }
                    if let Some(Around::Condition(_, branch)) = around.last_mut() {
                        *branch += 1;
                    }
                }
                b"LOOP" | b"REPEAT" => around.push(Around::Loop(body.statements.len())),
                b"WHILE" | b"FOR" => {
                    body.expression(&mut tokens, b"DO");
                    around.push(Around::Loop(body.statements.len()));
                }
                b"UNTIL" => {
                    body.expression(&mut tokens, b"END");
                    body.end(&mut tokens, &mut around);
                }
                b"END" => body.end(&mut tokens, &mut around),
                b"DECLARE" if skip_handler_head(&mut tokens) => {
                    around.push(Around::Handler);
                    is_straight = false;
                }
                b"LEAVE" | b"ITERATE" | b"GOTO" => {
                    is_straight = false;
                    body.expression(&mut tokens, b";");
                }
                b"DECLARE" | b"RETURN" | b"OPEN" | b"FETCH" | b"CLOSE" => body.expression(&mut tokens, b";"),
                first => {
                    tokens = start;
                    let comparable = Comparable::read(sql, &mut tokens);
                    // Setting a routine's variable is not logged.
                    let is_certain =
                        is_straight && first != b"SET" && around.iter().all(|around| *around == Around::Block);
                    let is_of_handler = around.contains(&Around::Handler);
                    body.called.extend(comparable.called);
                    body.called.truncate(STATEMENTS_MAX);
                    let branches = around.iter().filter_map(|around| match around {
                        Around::Condition(number, branch) => Some((*number, *branch)),
                        _ => None,
                    });
                    let branches = branches.collect();
                    body.statements.push(Inner { text: comparable.text, is_certain, is_of_handler, branches });
                    around.pop_if(|around| *around == Around::Handler);
                }
            }
        }
        body.called.sort_unstable();
        body.called.dedup();
        body
    }

    /// Goes over an expression and the word behind it, which is `;` at the end of a statement.
    fn expression(&mut self, tokens: &mut Tokens<'_>, end: &[u8]) {
        let mut cases = 0_u32;
        loop {
            let name = match tokens.next() {
                Token::End | Token::Open | Token::Mark(b';') => return,
                Token::Word(word) => {
                    let capitals = Capitals::new(word);
                    match capitals.bytes() {
                        word if word == end && cases == 0 => return,
                        b"CASE" => cases += 1,
                        b"END" => cases = cases.saturating_sub(1),
                        _ => {}
                    }
                    word.to_ascii_lowercase()
                }
                Token::Name(name) => unquote(name, b'`').to_ascii_lowercase(),
                _ => continue,
            };
            if tokens.peek() == Token::Mark(b'(') && self.called.len() < NAMES_MAX {
                self.called.push(name);
            }
        }
    }

    /// Goes over `END IF label;` and leaves what it ends.
    fn end(&mut self, tokens: &mut Tokens<'_>, around: &mut Vec<Around>) {
        while !matches!(tokens.next(), Token::Mark(b';') | Token::End | Token::Open) {}
        if let Some(Around::Loop(from)) = around.pop()
            && from < self.statements.len()
        {
            self.loops.push(from..self.statements.len());
        }
        around.pop_if(|around| *around == Around::Handler);
    }
}

/// The procedure that a CALL calls, in small letters and without its schema.
pub fn called_procedure(sql: &[u8]) -> Option<Vec<u8>> {
    let mut tokens = Tokens::new(sql, USUAL);
    if skip_word(&mut tokens, b"CALL") { qualified_name(&mut tokens) } else { None }
}

/// Whether no client can have sent it, whose class is known: `SELECT ... INTO variable`, or the `NEW.column` of a
/// trigger.
pub fn is_only_of_routine(sql: &[u8], class: Class) -> bool {
    let mut tokens = Tokens::new(sql, USUAL);
    let is_query = [&b"SELECT"[..], b"WITH", b"VALUES"].iter().any(|word| is_word(tokens, word));
    // Nearly no statement need be looked at as a whole.
    let is_row = |three: &[u8]| three.eq_ignore_ascii_case(b"NEW") || three.eq_ignore_ascii_case(b"OLD");
    let has_point = || (3..sql.len()).any(|at| sql[at] == b'.' && is_row(&sql[at - 3..at]));
    if class < Class::Writes || !is_query && !has_point() {
        return false;
    }
    let (mut has_row, mut may_be_table) = (false, false);
    loop {
        let word = match tokens.next() {
            Token::End => return has_row,
            Token::Word(word) => Capitals::new(word),
            token => {
                may_be_table = matches!(token, Token::Mark(b'.'));
                continue;
            }
        };
        match word.bytes() {
            b"INTO" if is_query => match tokens.peek() {
                Token::Word(word) => return !Capitals::new(word).is_one_of(&["DUMPFILE", "OUTFILE"]),
                Token::Name(_) => return true,
                _ => {}
            },
            // With a name of one's own, as in `VALUES (1) AS new`, the word stands without a point, too.
            b"NEW" | b"OLD" if may_be_table || tokens.peek() != Token::Mark(b'.') => return false,
            b"NEW" | b"OLD" => has_row = true,
            _ => {}
        }
        may_be_table = matches!(word.bytes(), b"FROM" | b"JOIN" | b"INTO" | b"UPDATE" | b"TABLE");
    }
}

/// Whether a client sent a block, whose statements some servers log as well.
pub fn is_block(sql: &[u8]) -> bool {
    let mut tokens = Tokens::new(sql, USUAL);
    match tokens.next() {
        Token::Word(word) => match Capitals::new(word).bytes() {
            b"BEGIN" => skip_word(&mut tokens, b"NOT"),
            b"IF" | b"CASE" | b"LOOP" | b"WHILE" | b"REPEAT" | b"FOR" => true,
            _ => false,
        },
        _ => false,
    }
}

/// Goes over `CONTINUE HANDLER FOR SQLSTATE '02000', 1146`, if that comes next.
fn skip_handler_head(tokens: &mut Tokens<'_>) -> bool {
    let mut after = *tokens;
    after.next();
    if !skip_word(&mut after, b"HANDLER") || !skip_word(&mut after, b"FOR") {
        return false;
    }
    loop {
        if skip_word(&mut after, b"SQLSTATE") {
            skip_word(&mut after, b"VALUE");
        } else {
            skip_word(&mut after, b"NOT");
        }
        after.next();
        if !after.skip(b',') {
            *tokens = after;
            return true;
        }
    }
}

/// Goes to the body behind the parameters of a routine.
fn skip_to_routine_body(tokens: &mut Tokens<'_>) -> Option<()> {
    skip_parentheses(tokens)?;
    loop {
        let mut after = *tokens;
        match after.next() {
            Token::Word(word) => {
                let word = Capitals::new(word);
                match word.bytes() {
                    // A type, with the length or the values that it may have.
                    b"RETURNS" => {
                        after.next();
                        if after.peek() == Token::Mark(b'(') {
                            skip_parentheses(&mut after)?;
                        }
                    }
                    b"CHARSET" | b"COLLATE" | b"COMMENT" => drop(after.next()),
                    b"CHARACTER" => {
                        after.next();
                        after.next();
                    }
                    _ if word.is_one_of(CHARACTERISTICS) => {
                        if after.peek() == Token::Mark(b'(') {
                            skip_parentheses(&mut after)?;
                        }
                    }
                    _ => return Some(()),
                }
            }
            Token::End | Token::Open => return None,
            _ => return Some(()),
        }
        *tokens = after;
    }
}

fn skip_parentheses(tokens: &mut Tokens<'_>) -> Option<()> {
    if !tokens.skip(b'(') {
        return None;
    }
    let mut depth = 1;
    while depth > 0 {
        match tokens.next() {
            Token::Mark(b'(') => depth += 1,
            Token::Mark(b')') => depth -= 1,
            Token::End | Token::Open => return None,
            _ => {}
        }
    }
    Some(())
}

/// Goes behind the next such word.
fn skip_to(tokens: &mut Tokens<'_>, end: &[u8]) -> Option<()> {
    loop {
        match tokens.next() {
            Token::Word(word) if word.eq_ignore_ascii_case(end) => return Some(()),
            Token::End | Token::Open => return None,
            _ => {}
        }
    }
}

/// The name that comes next, in small letters and without a schema before it.
fn qualified_name(tokens: &mut Tokens<'_>) -> Option<Vec<u8>> {
    let mut last = name(tokens)?;
    while tokens.skip(b'.') {
        last = name(tokens)?;
    }
    Some(last)
}

/// The statement with what stands in `/*!50003 ... */`, as mysqldump writes triggers and routines.
fn without_version_comments(sql: &[u8], depth: u32) -> Cow<'_, [u8]> {
    let has_some = sql.windows(3).any(|three| three == b"/*!") || sql.windows(4).any(|four| four == b"/*M!");
    if !has_some || depth == 0 {
        return Cow::Borrowed(sql);
    }
    let (mut out, mut tokens) = (Vec::with_capacity(sql.len()), Tokens::new(sql, USUAL));
    loop {
        let before = tokens.place();
        match tokens.next() {
            Token::End => return Cow::Owned(out),
            Token::Executable(code) => {
                out.push(b' ');
                out.extend_from_slice(&without_version_comments(code, depth - 1));
                out.push(b' ');
            }
            _ => out.extend_from_slice(&sql[before..tokens.place()]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(sql: &str) -> Vec<String> {
        let body = definition(sql.as_bytes()).unwrap_or_else(|| panic!("{sql}")).body;
        let mark = |inner: &Inner| match (inner.is_of_handler, inner.is_certain) {
            (true, _) => "h ",
            (_, true) => "",
            _ => "? ",
        };
        body.statements.iter().map(|inner| format!("{}{}", mark(inner), String::from_utf8_lossy(&inner.text))).collect()
    }

    #[test]
    fn what_a_body_runs_is_told_from_how_it_runs() {
        for (sql, expected) in [
            ("CREATE PROCEDURE p() UPDATE cnt SET n=n+1", &["update cnt set n = n + 1"][..]),
            (
                "CREATE DEFINER=`a`@`%` PROCEDURE shop.P(IN x INT, OUT y DECIMAL(5,2)) MODIFIES SQL DATA COMMENT 'BEGIN' \
                 BEGIN INSERT INTO t VALUES (x, 'it''s; END'); -- a;\n CALL q(); SELECT 1 INTO y; END",
                &["insert into t values ( x , 'it''s; END )", "call q ( )", "select 1 into y"],
            ),
            (
                "CREATE FUNCTION f() RETURNS VARCHAR(9) CHARACTER SET utf8 READS SQL DATA BEGIN DECLARE r INT DEFAULT g(2); \
                 SELECT 1 INTO r; IF r > CASE WHEN r THEN 1 END THEN SET r = 2; DELETE FROM t; ELSEIF h(1) THEN DELETE FROM u; END IF; \
                 DO 1; RETURN (SELECT 1); END",
                &["select 1 into r", "? set r = 2", "? delete from t", "? delete from u", "do 1"],
            ),
            (
                "CREATE PROCEDURE p() BEGIN DECLARE c CURSOR FOR SELECT id FROM t; DECLARE CONTINUE HANDLER FOR NOT FOUND, \
                 SQLSTATE VALUE '23000' SET done = 1; DECLARE EXIT HANDLER FOR 1146 BEGIN INSERT INTO e VALUES (1); ROLLBACK; END; \
                 OPEN c; l: LOOP FETCH c INTO i; IF done THEN LEAVE l; END IF; UPDATE t SET a = i; END LOOP l; CLOSE c; COMMIT; END",
                &["h set done = 1", "h insert into e values ( 1 )", "h rollback", "? update t set a = i", "? commit"],
            ),
            (
                "/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER a BEFORE INSERT ON `T``1` FOR EACH ROW \
                 FOLLOWS b BEGIN INSERT INTO aud VALUES (NEW.b); END */",
                &["insert into aud values ( new . b )"],
            ),
            (
                "CREATE EVENT e ON SCHEDULE EVERY 1 DAY STARTS NOW() + INTERVAL 1 HOUR ON COMPLETION PRESERVE DO w: WHILE 1 DO \
                 TRUNCATE t; END WHILE w",
                &["? truncate t"],
            ),
        ] {
            assert_eq!(statements(sql), expected, "{sql}");
        }
        for none in ["CREATE TABLE t (i INT)", "SELECT 1", "CREATE PROCEDURE", "CREATE VIEW procedure AS SELECT 1"] {
            assert_eq!(definition(none.as_bytes()), None, "{none}");
        }
        let trigger = definition(b"CREATE TRIGGER a AFTER UPDATE ON shop.`T1` FOR EACH ROW SET @a = f(NEW.b)").unwrap();
        assert_eq!(
            (trigger.makes, trigger.name.as_slice(), &trigger.body.called),
            (Makes::Trigger, &b"t1"[..], &vec![b"f".to_vec()])
        );
    }

    #[test]
    fn what_is_deep_or_long_beyond_measure_is_bounded() {
        let long = format!("CALL {}b()", "a.".repeat(300_000));
        assert_eq!(called_procedure(long.as_bytes()), Some(b"b".to_vec()));
        let deep = format!("CREATE PROCEDURE p() BEGIN {}{} END", "IF a THEN ".repeat(10_000), "DO 1; ".repeat(5000));
        assert_eq!(definition(deep.as_bytes()).unwrap().body.statements.len(), 0);
        let open = "NAME_CONST('x',".repeat(20_000);
        assert_eq!(comparable(open.as_bytes()).names.len(), NAMES_MAX);
    }

    #[test]
    fn what_no_client_can_send_is_a_routines() {
        for sql in
            ["SELECT MAX(n) INTO r FROM cnt", "select 1, 2 into `a`, b", "INSERT INTO aud (w) VALUES (NEW.b, old.c)"]
        {
            assert!(is_only_of_routine(sql.as_bytes(), Class::Writes), "{sql}");
        }
        for sql in [
            "SELECT 1 INTO @a",
            "SELECT 1 INTO OUTFILE '/x'",
            "INSERT INTO t SELECT 1",
            "INSERT INTO t VALUES (1) AS new ON DUPLICATE KEY UPDATE a = new.a",
            "SELECT 1 FROM old.t WHERE old.t.a = 1",
            "UPDATE t SET a = 'NEW.b'",
        ] {
            assert!(!is_only_of_routine(sql.as_bytes(), Class::Writes), "{sql}");
        }
    }

    #[test]
    fn a_statement_is_compared_without_the_values_of_variables() {
        let text = |sql: &str| String::from_utf8(comparable(sql.as_bytes()).text).unwrap();
        for (of_body, logged) in [
            (
                "UPDATE t SET a = v, b=`s` /* c */ WHERE id=1",
                "UPDATE t SET a =  NAME_CONST('v',4), b= NAME_CONST('s',_latin1'q)' COLLATE 'latin1_swedish_ci') WHERE id=1",
            ),
            ("SELECT 1 LIMIT v, 5", "select 1\nLIMIT 3, 5;"),
            ("PREPARE st FROM @s", "PREPARE st FROM ..."),
            ("PREPARE st FROM @s", "PREPARE st FROM 'SELECT 1'"),
        ] {
            assert_eq!(text(of_body), text(logged));
        }
        assert_ne!(text("SELECT 'a'"), text("SELECT 'A'"));
        assert_ne!(text("SELECT 1.5"), text("SELECT 1 .5 . 2"));
    }
}
