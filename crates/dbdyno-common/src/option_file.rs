//! What the lines of an option file (`my.cnf`) say, as the database servers' own programs read them.
//!
//! "Using Option Files" in the servers' manual has the rules. Files are neither opened nor included here.

/// A line that says something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// From 1.
    pub number: usize,
    /// The group that it stands in, in small letters; empty before the first.
    pub group: String,
    /// What it says.
    pub entry: Entry,
}

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A group begins, the one of [`Line::group`].
    Group,
    /// An option as it is written, and its value if it has an equals sign.
    Option(String, Option<String>),
    /// Another file is read here.
    Include(String),
    /// All `*.cnf` of a folder are read here.
    IncludeFolder(String),
    /// A word with an exclamation mark that no program knows.
    Unknown(String),
}

/// The lines of a file that say something.
pub fn lines(text: &str) -> Vec<Line> {
    let mut group = String::new();
    let mut lines = Vec::new();
    for (at, raw) in text.strip_prefix('\u{feff}').unwrap_or(text).split('\n').enumerate() {
        let line = raw.trim();
        let entry = if line.starts_with('!') {
            // A name of a file may hold a #.
            directive(line)
        } else {
            let line = without_comment(line).trim_end();
            if line.is_empty() {
                continue;
            }
            match line.strip_prefix('[') {
                Some(rest) => {
                    group = rest.split(']').next().unwrap_or_default().trim_end().to_lowercase();
                    Entry::Group
                }
                None => option(line),
            }
        };
        lines.push(Line { number: at + 1, group: group.clone(), entry });
    }
    lines
}

/// The groups that a program reads with a suffix (`--defaults-group-suffix`): each also with it behind.
pub fn with_suffix(groups: &[&str], suffix: &str) -> Vec<String> {
    let mut names: Vec<_> = groups.iter().map(|group| (*group).to_owned()).collect();
    if !suffix.is_empty() {
        names.extend(groups.iter().map(|group| format!("{group}{suffix}").to_lowercase()));
    }
    names
}

fn directive(line: &str) -> Entry {
    let (word, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    match word {
        "!include" => Entry::Include(rest.trim().to_owned()),
        "!includedir" => Entry::IncludeFolder(rest.trim().to_owned()),
        _ => Entry::Unknown(word.to_owned()),
    }
}

fn option(line: &str) -> Entry {
    match line.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Entry::Option(name.trim().to_owned(), Some(value_of(value.trim())))
        }
        _ => Entry::Option(line.to_owned(), None),
    }
}

/// A line up to a `#` outside of quotes; one that begins with `;` is a comment, too.
fn without_comment(line: &str) -> &str {
    if line.starts_with(';') {
        return "";
    }
    let (mut quote, mut is_escaped) = (None, false);
    for (at, letter) in line.char_indices() {
        match letter {
            '\'' | '"' if !is_escaped && quote.is_none_or(|open| open == letter) => {
                quote = if quote.is_none() { Some(letter) } else { None };
            }
            '#' if quote.is_none() => return &line[..at],
            _ => {}
        }
        is_escaped = quote.is_some() && letter == '\\' && !is_escaped;
    }
    line
}

/// A value without the quotes around it, its escapes resolved. A backslash before any other letter stands for itself.
fn value_of(text: &str) -> String {
    let quoted = ['"', '\''].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote));
    let mut letters = quoted.unwrap_or(text).chars();
    let mut value = String::new();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            value.push(letter);
            continue;
        }
        match letters.next() {
            Some('n') => value.push('\n'),
            Some('t') => value.push('\t'),
            Some('r') => value.push('\r'),
            Some('b') => value.push('\u{8}'),
            Some('s') => value.push(' '),
            Some(same @ ('"' | '\'' | '\\')) => value.push(same),
            Some(other) => value.extend(['\\', other]),
            None => value.push('\\'),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Vec<(String, String, Option<String>)> {
        let entries = lines(text).into_iter();
        entries
            .filter_map(|line| match line.entry {
                Entry::Option(name, value) => Some((line.group, name, value)),
                _ => None,
            })
            .collect()
    }

    fn value(text: &str) -> Option<String> {
        options(&format!("[client]\npassword={text}\n")).pop()?.2
    }

    #[test]
    fn values_are_as_the_clients_of_mysql_take_them() {
        // Each was compared with what `my_print_defaults client` of MariaDB 10.11 prints.
        for (text, expected) in [
            (r"a\\b", r"a\b"),
            (r#""x\sy""#, "x y"),
            (r"x\sy", "x y"),
            (r"a\tb\nc\rd\be", "a\tb\nc\rd\u{8}e"),
            (r#""p#q""#, "p#q"),
            ("'p#q' # what follows", "p#q"),
            ("app#the application", "app"),
            (" blanks  around  ", "blanks  around"),
            (r#"a"b"#, r#"a"b"#),
            (r#""un"balanced"#, r#""un"balanced"#),
            (r#""a\"b""#, r#"a"b"#),
            (r"c:\dir", r"c:\dir"),
            ("semi;colon", "semi;colon"),
            ("a=b", "a=b"),
            ("", ""),
            (r"end\", r"end\"),
            ("\"tab\t\"", "tab\t"),
        ] {
            assert_eq!(value(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn groups_directives_and_comments_have_their_lines() {
        let text =
            "\u{feff}a=1\r\n[Client ] # c\r\n;b=1\n  #c\n!includedir /e #f/\n!include\tg\n!x y\nport\n[open\nh=1";
        let entries: Vec<_> = lines(text).into_iter().map(|line| (line.number, line.group, line.entry)).collect();
        let option = |name: &str, value: Option<&str>| Entry::Option(name.into(), value.map(Into::into));
        assert_eq!(
            entries,
            [
                (1, String::new(), option("a", Some("1"))),
                (2, "client".into(), Entry::Group),
                (5, "client".into(), Entry::IncludeFolder("/e #f/".into())),
                (6, "client".into(), Entry::Include("g".into())),
                (7, "client".into(), Entry::Unknown("!x".into())),
                (8, "client".into(), option("port", None)),
                (9, "open".into(), Entry::Group),
                (10, "open".into(), option("h", Some("1"))),
            ]
        );
    }

    #[test]
    fn a_suffix_adds_groups() {
        assert_eq!(with_suffix(&["client"], ""), ["client"]);
        assert_eq!(with_suffix(&["client", "dbdyno"], "_X"), ["client", "dbdyno", "client_x", "dbdyno_x"]);
    }
}
