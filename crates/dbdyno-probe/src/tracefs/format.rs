//! How the running kernel lays out its events: read from tracefs, never assumed.

/// Where a field lies in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub offset: usize,
    pub size: usize,
}

impl Field {
    /// The field as an unsigned number; `None` where the record is too short. Only the low 64 bits of larger fields.
    pub fn number(self, record: &[u8]) -> Option<u64> {
        let bytes = self.bytes(record)?;
        let mut wide = [0; 8];
        let size = bytes.len().min(8);
        wide[..size].copy_from_slice(&bytes[..size]);
        Some(u64::from_le_bytes(wide))
    }

    /// The field's bytes; `None` where the record is too short.
    pub fn bytes(self, record: &[u8]) -> Option<&[u8]> {
        record.get(self.offset..self.offset.checked_add(self.size)?)
    }
}

/// The fields of a `format` file or of `header_page`, by name.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    /// The number that records of this event begin with; 0 where the file has none.
    pub id: u16,
    fields: Vec<(String, Field)>,
}

impl Fields {
    /// Reads lines such as `field:sector_t sector; offset:16; size:8; signed:0;`; other lines are passed over.
    pub fn parse(text: &str) -> Self {
        let mut found = Self::default();
        for line in text.lines() {
            let line = line.trim();
            if let Some(id) = line.strip_prefix("ID:") {
                found.id = id.trim().parse().unwrap_or(0);
            }
            if let Some(field) = line.strip_prefix("field:").and_then(parse_field) {
                found.fields.push(field);
            }
        }
        found
    }

    /// A field; an error that names it where this kernel has none, or none of `size` bytes at most.
    pub fn field(&self, name: &str, size_max: usize) -> Result<Field, String> {
        let found = self.fields.iter().find(|(known, _)| known == name).map(|(_, field)| *field);
        let field = found.ok_or_else(|| format!("no field {name}"))?;
        if field.size == 0 || field.size > size_max {
            return Err(format!("field {name} has {} bytes, not 1 to {size_max}", field.size));
        }
        Ok(field)
    }
}

fn parse_field(text: &str) -> Option<(String, Field)> {
    let mut parts = text.split(';').map(str::trim);
    let declaration = parts.next()?;
    // What lies elsewhere in the record is no field of a fixed place.
    if declaration.starts_with("__data_loc") || declaration.starts_with("__rel_loc") {
        return None;
    }
    let name = declaration.rsplit([' ', '*']).next()?.split('[').next()?;
    let (mut offset, mut size) = (None, None);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", value)) => offset = value.trim().parse().ok(),
            Some(("size", value)) => size = value.trim().parse().ok(),
            _ => {}
        }
    }
    Some((name.to_owned(), Field { offset: offset?, size: size? }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ISSUE: &str = "name: block_rq_issue\nID: 2104\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
        \tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"%d,%d\", REC->dev\n";

    #[test]
    fn a_format_file_is_understood() {
        let fields = Fields::parse(ISSUE);
        assert_eq!(fields.id, 2104);
        assert_eq!(fields.field("sector", 8), Ok(Field { offset: 16, size: 8 }));
        assert_eq!(fields.field("rwbs", 16), Ok(Field { offset: 34, size: 10 }));
        assert_eq!(fields.field("bytes", 4), Err("no field bytes".into()));
        assert_eq!(fields.field("cmd", 4), Err("no field cmd".into()));
        assert_eq!(fields.field("sector", 4), Err("field sector has 8 bytes, not 1 to 4".into()));
    }

    #[test]
    fn a_number_is_little_endian_and_a_short_record_has_none() {
        let field = Field { offset: 2, size: 2 };
        assert_eq!(field.number(&[9, 9, 0x34, 0x12, 9]), Some(0x1234));
        assert_eq!(field.number(&[9, 9, 0x34]), None);
        assert_eq!(Field { offset: usize::MAX, size: 2 }.number(&[1]), None);
    }

    proptest! {
        #[test]
        fn garbage_never_panics(text in ".{0,400}") {
            let _ = Fields::parse(&text);
            let _ = Fields::parse(&format!("field:{text}"));
        }
    }
}
