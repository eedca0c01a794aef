//! Where each key of a TOML text stands, so that an error can name its line.

use std::collections::HashMap;
use std::ops::Range;

use toml_edit::{Document, Item, TableLike, TomlError, Value};

/// Line (from 1) of every key and array element, by dotted path (`stack.device`, `stack.device.1`).
pub fn lines(text: &str) -> Result<HashMap<String, usize>, TomlError> {
    let document = Document::parse(text)?;
    let mut line_numbers = HashMap::new();
    let locate = |span: Option<Range<usize>>| span.map(|range| 1 + text[..range.start].matches('\n').count());
    walk_table(document.as_table(), "", &locate, &mut line_numbers);
    Ok(line_numbers)
}

type Locate<'a> = dyn Fn(Option<Range<usize>>) -> Option<usize> + 'a;

fn walk_table(table: &dyn TableLike, prefix: &str, locate: &Locate<'_>, line_numbers: &mut HashMap<String, usize>) {
    for (name, item) in table.iter() {
        let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
        let span = table.key(name).and_then(toml_edit::Key::span);
        if let Some(line) = locate(span.or_else(|| item.span())) {
            line_numbers.insert(path.clone(), line);
        }
        walk_item(item, &path, locate, line_numbers);
    }
}

fn walk_item(item: &Item, path: &str, locate: &Locate<'_>, line_numbers: &mut HashMap<String, usize>) {
    if let Some(table) = item.as_table_like() {
        walk_table(table, path, locate, line_numbers);
    } else if let Some(array) = item.as_array() {
        for (index, value) in array.iter().enumerate() {
            let path = format!("{path}.{index}");
            if let Some(line) = locate(value.span()) {
                line_numbers.insert(path.clone(), line);
            }
            if let Value::InlineTable(table) = value {
                walk_table(table, &path, locate, line_numbers);
            }
        }
    } else if let Some(tables) = item.as_array_of_tables() {
        for (index, table) in tables.iter().enumerate() {
            walk_table(table, &format!("{path}.{index}"), locate, line_numbers);
        }
    }
}
