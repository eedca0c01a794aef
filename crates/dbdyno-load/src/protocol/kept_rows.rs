//! Rows of a reply that a load looks at: as the binary protocol gives them, whose types the load knows from its tables.

use super::packet::take_string;

/// Bytes of all rows of a reply, at most; later rows are left out.
const SIZE_MAX: usize = 64 << 10;

/// Rows of one reply, one after the other.
#[derive(Debug, Default)]
pub struct KeptRows {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl KeptRows {
    /// Forgets all.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Takes the payload of a row, if there is room.
    pub fn push(&mut self, payload: &[u8]) {
        if self.bytes.len() + payload.len() <= SIZE_MAX {
            self.bytes.extend_from_slice(payload);
            self.ends.push(self.bytes.len());
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Row `number`, from 0, of a prepared statement with so many columns; none of them may be NULL.
    pub fn row(&self, number: usize, columns: usize) -> Option<Row<'_>> {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        let payload = &self.bytes[start..*self.ends.get(number)?];
        // A marker, then a bit for each column that is NULL, after two bits that mean nothing.
        let values = 1 + (columns + 2).div_ceil(8);
        let (head, values) = payload.split_at_checked(values)?;
        head[1..].iter().all(|nulls| *nulls == 0).then_some(Row(values))
    }
}

/// The values of a row that are still to be read.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a>(&'a [u8]);

impl<'a> Row<'a> {
    /// The next value, of an INT.
    pub fn int(&mut self) -> Option<i32> {
        let (value, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(i32::from_le_bytes(*value))
    }

    /// The next value, of a text or a DECIMAL.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        take_string(&mut self.0).flatten()
    }

    /// The next value, of a DECIMAL with two digits behind the point, in hundredths.
    pub fn hundredths(&mut self) -> Option<i64> {
        let text = std::str::from_utf8(self.text()?).ok()?;
        let (whole, part) = text.split_once('.')?;
        if part.len() != 2 {
            return None;
        }
        format!("{whole}{part}").parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_their_order() {
        let mut rows = KeptRows::default();
        rows.push(b"\0\0\x07\0\0\0\x02ab\x06-12.34");
        rows.push(b"\0\0\xff\xff\xff\xff\0\x040.05");
        let read = |number| {
            let mut row = rows.row(number, 3).unwrap();
            (row.int().unwrap(), row.text().unwrap().to_vec(), row.hundredths().unwrap(), row.int())
        };
        assert_eq!(read(0), (7, b"ab".to_vec(), -1234, None));
        assert_eq!(read(1), (-1, Vec::new(), 5, None));
        assert!(rows.row(2, 3).is_none() && rows.len() == 2);
    }

    #[test]
    fn nulls_and_what_is_cut_short_are_no_rows() {
        let mut rows = KeptRows::default();
        rows.push(b"\0\x04");
        rows.push(b"\0");
        assert!(rows.row(0, 1).is_none() && rows.row(1, 1).is_none());
        rows.push(&vec![0; SIZE_MAX]);
        assert_eq!(rows.len(), 2);
        rows.clear();
        assert!(rows.is_empty() && rows.row(0, 1).is_none());
    }
}
