//! The SQL that makes the tables which a log is replayed on, such as a dump.

use std::fs::File;
use std::io::Read as _;

use crate::error::Error;
use crate::script::items::{Item, Items};
use crate::script::lexer::SourceFile;
use crate::script::model::{Plain, Script};

/// Largest file: its statements are held in memory.
const SIZE_MAX: u64 = 1 << 30;

/// The file as a script that has a setup section alone.
///
/// # Errors
/// It cannot be read or cut into statements; with file and line.
pub fn read(path: &str) -> Result<Script, Error> {
    let failed = |error| Error::File(path.into(), error);
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(SIZE_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > SIZE_MAX {
        return Err(Error::Usage(format!(
            "{path} has more than {} MiB: load it by the mariadb client before",
            SIZE_MAX >> 20
        )));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
        Error::Usage(format!(
            "{path}:{line}: this is not UTF-8: dump with --hex-blob, or load it by the mariadb client before"
        ))
    })?;
    let source = SourceFile { name: path.into(), text };
    let mut script = Script::named(path);
    script.setup = statements(&source)?;
    Ok(script)
}

fn statements(source: &SourceFile) -> Result<Vec<Plain>, Error> {
    let (mut items, mut all) = (Items::plain(&source.text), Vec::new());
    let (mut counted_to, mut line) = (0, 1);
    while let Some(item) = items.next().map_err(|mistake| source.error(&mistake))? {
        let Item::Statement(lexemes) = item else { continue };
        let (first, last) = (lexemes[0], lexemes[lexemes.len() - 1]);
        line += source.text[counted_to..first.at].matches('\n').count();
        counted_to = first.at;
        let sql = source.text[first.at..last.at + last.text.len()].to_owned();
        all.push(Plain { place: format!("{}:{line}", source.name), sql });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_is_cut_into_its_statements() {
        let text = "/*M!999999\\- enable the sandbox mode */ \n-- MariaDB dump 10.19\n-- Host: h    Database: shop\n-- name: it's no script\n\
                    /*!40101 SET NAMES utf8mb4 */;\nINSERT INTO t VALUES (1,'a;\\'b'),\n(2,':x ?');\nDELIMITER ;;\nCREATE TRIGGER a \
                    BEFORE INSERT ON t FOR EACH ROW BEGIN SET @a = 1; END ;;\nDELIMITER ;\n-- Dump completed on 2026-11-23\n";
        let found = statements(&SourceFile { name: "d.sql".into(), text: text.into() }).unwrap();
        let each: Vec<(&str, &str)> = found.iter().map(|plain| (plain.place.as_str(), plain.sql.as_str())).collect();
        assert_eq!(each[1], ("d.sql:6", "INSERT INTO t VALUES (1,'a;\\'b'),\n(2,':x ?')"));
        assert!(each[2].0 == "d.sql:9" && each[2].1.ends_with("SET @a = 1; END"), "{each:?}");
        assert!(each[0].0 == "d.sql:1" && each[0].1.ends_with("SET NAMES utf8mb4 */"), "{each:?}");
        assert_eq!(each.len(), 3);
    }
}
