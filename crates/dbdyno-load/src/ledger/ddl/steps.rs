//! Which statement comes when, and what it does to which table.

use crate::names::quoted;

/// Partitions of the table [`PARTITIONED`].
pub const PARTITIONS: u64 = 4;

/// Rows that a table or a partition is filled with: more than a page of them.
pub const ROWS: u64 = 100;

/// Ids of a partition.
pub const IDS: u64 = 1000;

/// The table whose partitions are filled and truncated.
pub const PARTITIONED: &str = "ddl_parts";

/// What all tables of this part are called like.
pub const PREFIX: &str = "ddl_";

/// What marks them as ours, as it marks the tables of prepare.
const COMMENT: &str = "COMMENT = 'dbdyno ledger'";

/// Columns of a row, but for those that ALTER adds.
const COLUMNS: &str = "id BIGINT NOT NULL, value BIGINT NOT NULL, filler CHAR(200) NOT NULL, PRIMARY KEY (id)";

/// Statements of the first round; of the others, which also drop what the one before left.
const FIRST_ROUND: u64 = 6;
const ROUND: u64 = 7;

/// What a statement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// CREATE TABLE of this round.
    Create(u64),
    /// INSERT of its rows.
    Fill(u64),
    /// ALTER TABLE ... ADD COLUMN.
    Alter(u64),
    /// RENAME TABLE.
    Rename(u64),
    /// DROP TABLE of the round before, which is given.
    Drop(u64),
    /// INSERT of rows into a partition, with this value.
    FillPartition(u64, u64),
    /// ALTER TABLE ... TRUNCATE PARTITION.
    Truncate(u64),
}

/// What a statement changes; what it does to one does not depend on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    /// Name and columns of the table of a round.
    Table(u64),
    /// Its rows.
    Rows(u64),
    /// The rows of a partition.
    Partition(u64),
}

impl Step {
    /// The one with a number, from 1.
    pub fn of(number: u64) -> Self {
        let at = number - 1;
        let (round, place) = match at.checked_sub(FIRST_ROUND) {
            None => (0, at),
            Some(at) => (1 + at / ROUND, at % ROUND),
        };
        let partition = round % PARTITIONS;
        match place {
            0 => Self::Create(round),
            1 => Self::Fill(round),
            2 => Self::Alter(round),
            3 => Self::Rename(round),
            4 => Self::FillPartition(partition, number),
            5 => Self::Truncate(partition),
            _ => Self::Drop(round - 1),
        }
    }

    /// What it changes.
    pub fn object(self) -> Object {
        match self {
            Self::Create(round) | Self::Alter(round) | Self::Rename(round) | Self::Drop(round) => Object::Table(round),
            Self::Fill(round) => Object::Rows(round),
            Self::FillPartition(partition, _) | Self::Truncate(partition) => Object::Partition(partition),
        }
    }

    /// The round whose table it makes.
    pub fn makes(self) -> Option<u64> {
        if let Self::Create(round) = self { Some(round) } else { None }
    }

    /// Whether it is DDL, not an INSERT.
    pub fn is_ddl(self) -> bool {
        !matches!(self, Self::Fill(_) | Self::FillPartition(..))
    }

    /// In words.
    pub fn name(self) -> String {
        match self {
            Self::Create(round) => format!("CREATE TABLE {}", made(round)),
            Self::Fill(round) => format!("INSERT INTO {}", made(round)),
            Self::Alter(round) => format!("ALTER TABLE {} ADD COLUMN", made(round)),
            Self::Rename(round) => format!("RENAME TABLE {}", made(round)),
            Self::Drop(round) => format!("DROP TABLE {}", renamed(round)),
            Self::FillPartition(partition, _) => format!("INSERT INTO {PARTITIONED} PARTITION p{partition}"),
            Self::Truncate(partition) => format!("ALTER TABLE {PARTITIONED} TRUNCATE PARTITION p{partition}"),
        }
    }

    /// As SQL, in a schema and for an engine.
    pub fn sql(self, schema: &str, engine: &str) -> String {
        let of = |name: String| format!("{}.{}", quoted(schema), quoted(&name));
        let filled = |table: String, first: u64, value: u64| {
            let row = |id: u64| format!("({id}, {value}, '{}')", "x".repeat(200));
            let rows: Vec<String> = (first..first + ROWS).map(row).collect();
            format!("INSERT INTO {table} (id, value, filler) VALUES {}", rows.join(", "))
        };
        match self {
            Self::Create(round) => format!("CREATE TABLE {} ({COLUMNS}) ENGINE = {engine} {COMMENT}", of(made(round))),
            Self::Fill(round) => filled(of(made(round)), 1, round),
            Self::Alter(round) => {
                format!("ALTER TABLE {} ADD COLUMN added BIGINT NOT NULL DEFAULT {round}", of(made(round)))
            }
            Self::Rename(round) => format!("RENAME TABLE {} TO {}", of(made(round)), of(renamed(round))),
            Self::Drop(round) => format!("DROP TABLE {}", of(renamed(round))),
            Self::FillPartition(partition, value) => filled(of(PARTITIONED.into()), partition * IDS, value),
            Self::Truncate(partition) => {
                format!("ALTER TABLE {} TRUNCATE PARTITION p{partition}", of(PARTITIONED.into()))
            }
        }
    }
}

/// The partitioned table, made before the first statement.
pub fn partitioned(schema: &str, engine: &str) -> String {
    let part = |number: u64| format!("PARTITION p{number} VALUES LESS THAN ({})", (number + 1) * IDS);
    let parts: Vec<String> = (0..PARTITIONS).map(part).collect();
    format!(
        "CREATE TABLE {}.{} ({COLUMNS}) ENGINE = {engine} {COMMENT} PARTITION BY RANGE (id) ({})",
        quoted(schema),
        quoted(PARTITIONED),
        parts.join(", ")
    )
}

/// Name of a round's table at first.
pub fn made(round: u64) -> String {
    format!("{PREFIX}{round}")
}

/// Its name after RENAME.
pub fn renamed(round: u64) -> String {
    format!("{PREFIX}{round}_renamed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_made_changed_and_dropped_in_this_order() {
        for round in 0..5 {
            let steps: Vec<Step> = (1..60).map(Step::of).filter(|step| step.object() == Object::Table(round)).collect();
            assert_eq!(steps, [Step::Create(round), Step::Alter(round), Step::Rename(round), Step::Drop(round)]);
        }
        let partition: Vec<Step> = (1..60).map(Step::of).filter(|step| step.object() == Object::Partition(1)).collect();
        assert_eq!(&partition[..2], [Step::FillPartition(1, 11), Step::Truncate(1)]);
        assert!(matches!(partition[2], Step::FillPartition(1, later) if later > 11));
    }

    #[test]
    fn names_are_quoted() {
        assert!(Step::Rename(3).sql("a`b", "InnoDB").contains("`a``b`.`ddl_3` TO `a``b`.`ddl_3_renamed`"));
        assert!(partitioned("s", "Aria").contains("PARTITION p3 VALUES LESS THAN (4000)"));
    }
}
