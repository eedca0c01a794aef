//! sysbench's tables, as SQL.

use crate::error::Error;
use crate::names;
use crate::values::Values;

/// Most tables, and the greatest size of one: ids and their ranges stay within 64 bits.
const COUNT_MAX: u32 = 1_000_000;
const SIZE_MAX: i64 = 1 << 60;

/// Which tables there are and how they are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables {
    /// How many: sbtest1, sbtest2, ...
    pub count: u32,
    /// Rows in each.
    pub size: i64,
    /// The server makes ids.
    pub auto_inc: bool,
    /// The id has a secondary index instead of the primary key.
    pub secondary: bool,
    /// There is an index on `k`.
    pub create_secondary: bool,
    /// Storage engine, if one was asked for.
    pub engine: Option<String>,
    /// What else CREATE TABLE ends in.
    pub options: String,
}

/// A switch of sysbench: on, off, true, false, 1 or 0; alone it is on.
///
/// # Errors
/// Anything else.
pub fn switch(values: &Values<'_>, name: &str, default: bool) -> Result<bool, Error> {
    const WORDS: [(&str, bool); 6] =
        [("on", true), ("off", false), ("true", true), ("false", false), ("1", true), ("0", false)];
    let default = default || (values.has(name) && values.text(name).is_none());
    values.choice(name, &WORDS, default)
}

impl Tables {
    /// Reads the flags [`super::flags::TABLES`].
    ///
    /// # Errors
    /// A value that is none or out of range.
    pub fn read(values: &Values<'_>) -> Result<Self, Error> {
        Ok(Self {
            count: values.within("tables", 1, 1..=COUNT_MAX)?,
            size: values.within("table-size", 10_000, 1..=SIZE_MAX)?,
            auto_inc: switch(values, "auto-inc", true)?,
            secondary: switch(values, "secondary", false)?,
            create_secondary: switch(values, "create-secondary", true)?,
            engine: names::engine(values)?,
            options: values.text("mysql-table-options").unwrap_or_default().into(),
        })
    }

    /// The engine that CREATE TABLE names.
    pub fn engine(&self) -> &str {
        self.engine.as_deref().unwrap_or("innodb")
    }

    /// Numbers of the tables.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        1..=self.count
    }

    /// Type of ids and keys: sysbench's own, unless there are more rows than it holds.
    fn integer(&self) -> &'static str {
        if self.size > i64::from(i32::MAX) { "BIGINT" } else { "INTEGER" }
    }

    /// CREATE TABLE.
    pub fn create(&self, number: u32) -> String {
        let integer = self.integer();
        let auto_inc = if self.auto_inc { " AUTO_INCREMENT" } else { "" };
        let key = if self.secondary { "KEY xid" } else { "PRIMARY KEY" };
        let (engine, options) = (self.engine(), &self.options);
        format!(
            "CREATE TABLE sbtest{number}(\n  id {integer} NOT NULL{auto_inc},\n  k {integer} DEFAULT '0' NOT NULL,\n  \
             c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL,\n  {key} (id)\n) \
             /*! ENGINE = {engine} */ {options}"
        )
    }

    /// A multi-row INSERT up to its first row.
    pub fn insert_head(&self, number: u32) -> String {
        let id = if self.auto_inc { "" } else { "id, " };
        format!("INSERT INTO sbtest{number}({id}k, c, pad) VALUES")
    }

    /// CREATE INDEX for after the rows; `None` if there is to be none.
    pub fn create_index(&self, number: u32) -> Option<String> {
        self.create_secondary.then(|| format!("CREATE INDEX k_{number} ON sbtest{number}(k)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(flags: &[(&'static str, Option<&'static str>)]) -> Result<Tables, String> {
        Tables::read(&Values::new(flags.to_vec())).map_err(|error| error.to_string())
    }

    #[test]
    fn tables_are_sysbenchs() {
        let tables = read(&[]).unwrap();
        let expected = "CREATE TABLE sbtest2(\n  id INTEGER NOT NULL AUTO_INCREMENT,\n  k INTEGER DEFAULT '0' NOT NULL,\n  \
                        c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL,\n  PRIMARY KEY (id)\n) \
                        /*! ENGINE = innodb */ ";
        assert_eq!(tables.create(2), expected);
        assert_eq!(tables.create_index(2).as_deref(), Some("CREATE INDEX k_2 ON sbtest2(k)"));
        let other = [
            ("auto-inc", Some("off")),
            ("secondary", None),
            ("create-secondary", Some("false")),
            ("engine", Some("MyISAM")),
            ("mysql-table-options", Some("ROW_FORMAT=COMPRESSED")),
        ];
        let tables = read(&other).unwrap();
        let text = tables.create(1);
        assert!(text.contains("id INTEGER NOT NULL,\n") && text.contains("  KEY xid (id)\n"), "{text}");
        assert!(text.ends_with("/*! ENGINE = MyISAM */ ROW_FORMAT=COMPRESSED"), "{text}");
        assert_eq!(tables.create_index(1), None);
    }

    #[test]
    fn ids_beyond_32_bits_have_room() {
        let of_size = |size| read(&[("table-size", Some(size))]).unwrap().create(1);
        assert!(of_size("2147483647").contains("id INTEGER"));
        assert!(of_size("2147483648").contains("id BIGINT") && of_size("2147483648").contains("k BIGINT"));
    }

    #[test]
    fn mistakes_name_their_flag() {
        for (flag, value) in
            [("tables", "0"), ("table-size", "0"), ("table-size", "x"), ("auto-inc", "maybe"), ("engine", "a b")]
        {
            let text = read(&[(flag, Some(value))]).unwrap_err();
            assert!(text.starts_with(&format!("--{flag}={value}")), "{text}");
        }
    }
}
