//! What is sent to and fro, unless files are given: one point select by key over sysbench's table
//! (`c` is CHAR(120)), as captured between a client and MariaDB 10.11 that agreed on
//! CLIENT_DEPRECATE_EOF and, for the prepared statement, on metadata that is sent only once.

/// A request and its reply, whole packets each.
#[derive(Debug, Clone)]
pub struct Message {
    pub request: Vec<u8>,
    pub reply: Vec<u8>,
}

const COLUMN: &[u8] = b"\x03def\x02sb\x07sbtest1\x07sbtest1\x01c\x01c\x0c-\0\xe0\x01\0\0\xfe\x01\0\0\0\0";
const VALUE: &[u8] = b"17233077177-28312413561-73887386069-31047812704-77576209874-\
    11837326596-76059144333-26271769781-14845380761-54472791871";
const END: [u8; 7] = [0xfe, 0, 0, 2, 0, 0, 0];

impl Message {
    /// COM_QUERY and a text row.
    pub fn text() -> Self {
        let row = [&[VALUE.len() as u8], VALUE].concat();
        Self {
            request: packet(0, b"\x03SELECT c FROM sbtest1 WHERE id=50321"),
            reply: [packet(1, &[1]), packet(2, COLUMN), packet(3, &row), packet(4, &END)].concat(),
        }
    }

    /// COM_STMT_EXECUTE with one BIGINT whose type the server knows, and a binary row.
    pub fn prepared() -> Self {
        let execute = b"\x17\x01\0\0\0\0\x01\0\0\0\0\0\x91\xc4\0\0\0\0\0\0";
        let row = [&[0, 0, VALUE.len() as u8], VALUE].concat();
        Self { request: packet(0, execute), reply: [packet(1, &[1, 0]), packet(2, &row), packet(3, &END)].concat() }
    }
}

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    [&[payload.len() as u8, 0, 0, sequence], payload].concat()
}
