//! The statements of `ingest`.

use crate::protocol::packet;

use super::options::{Mode, Options};

/// Name of the procedure.
pub const PROCEDURE: &str = "ingest_rows";

/// The columns that a row gives values to.
pub const COLUMNS: &str = "b1, b2, b3, c";

/// Columns that get an index each.
pub const INDEXED: [&str; 3] = ["b1", "b2", "b3"];

/// What column `c` holds.
pub const TEXT: &[u8; 40] = b"1111111111111111111111111111111111111111";

/// CREATE TABLE's list; indexes come when the initial rows are there, which is faster.
pub const DEFINITION: &str = "id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, \
    b1 INT NOT NULL, b2 INT NOT NULL, b3 INT NOT NULL, c VARCHAR(100) CHARACTER SET latin1 NOT NULL";

/// The columns as the server reports them.
pub const FOUND: [&str; 5] = ["id bigint", "b1 int", "b2 int", "b3 int", "c varchar(100)"];

/// CREATE PROCEDURE in the schema called `schema`, which is quoted for SQL.
///
/// Without transactions of its own (`rows_per_commit` of 1) every row commits by itself where the engine commits at all.
/// With them, an error takes back what did not commit.
pub fn create_procedure(schema: &str, comment: &str) -> String {
    format!(
        "CREATE PROCEDURE {schema}.{PROCEDURE} \
         (IN row_count BIGINT, IN value_range BIGINT, IN rows_per_commit BIGINT) \
         MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT '{comment}' \
         BEGIN \
           DECLARE done BIGINT DEFAULT 0; \
           DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END; \
           IF rows_per_commit > 1 THEN START TRANSACTION; END IF; \
           WHILE done < row_count DO \
             INSERT INTO ingest ({COLUMNS}) VALUES \
               (RAND() * value_range, RAND() * value_range, RAND() * value_range, REPEAT('1', {length})); \
             SET done = done + 1; \
             IF rows_per_commit > 1 AND done MOD rows_per_commit = 0 AND done < row_count THEN \
               COMMIT AND CHAIN; \
             END IF; \
           END WHILE; \
           IF rows_per_commit > 1 THEN COMMIT; END IF; \
         END",
        length = TEXT.len()
    )
}

/// ALTER TABLE's list that adds the indexes.
pub fn add_indexes() -> String {
    INDEXED.map(|column| format!("ADD INDEX ({column})")).join(", ")
}

/// The head of every INSERT.
pub fn insert_head() -> String {
    format!("INSERT INTO ingest ({COLUMNS}) VALUES ")
}

/// What is prepared on each connection.
pub fn prepared(options: &Options) -> Vec<String> {
    if !options.prepared {
        return Vec::new();
    }
    vec![match options.mode {
        Mode::Procedure => format!("CALL {PROCEDURE}(?, ?, ?)"),
        Mode::Insert | Mode::Transaction => {
            insert_head() + &vec!["(?, ?, ?, ?)"; options.rows_per_insert as usize].join(",")
        }
    }]
}

/// The packets of a CALL that adds `rows` rows.
pub fn call(options: &Options, rows: u32) -> Vec<u8> {
    let sql = format!("CALL {PROCEDURE}({rows}, {}, {})", options.value_range, options.rows_per_commit);
    packet::query(sql.as_bytes())
}
