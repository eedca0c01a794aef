//! Lines of a text, each of bounded length.

use std::io::{self, BufRead, Read};

/// Bytes of a line that is read; a longer one is damaged.
const LINE_BYTES_MOST: u64 = 16 << 10;

/// What some editors put before the first line of a text in UTF-8.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// One line without its end, or that it was too long or no UTF-8.
pub type Line<'a> = Result<&'a str, &'static str>;

/// Reads line by line into one buffer.
pub struct Lines<R> {
    from: R,
    buffer: Vec<u8>,
    begun: bool,
}

impl<R: BufRead> Lines<R> {
    pub fn new(from: R) -> Self {
        Self { from, buffer: Vec::new(), begun: false }
    }

    /// The next line; `None` at the end.
    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        if self.from.by_ref().take(LINE_BYTES_MOST).read_until(b'\n', &mut self.buffer)? == 0 {
            return Ok(None);
        }
        if self.buffer.len() as u64 == LINE_BYTES_MOST && self.buffer.last() != Some(&b'\n') {
            self.skip_rest()?;
            return Ok(Some(Err("is longer than 16 KiB")));
        }
        if !std::mem::replace(&mut self.begun, true) && self.buffer.starts_with(MARK) {
            self.buffer.drain(..MARK.len());
        }
        let text = std::str::from_utf8(&self.buffer).map_err(|_| "is no UTF-8");
        Ok(Some(text.map(|text| text.trim_end_matches(['\n', '\r']))))
    }

    fn skip_rest(&mut self) -> io::Result<()> {
        loop {
            let part = self.from.fill_buf()?;
            let (used, ended) = match part.iter().position(|&byte| byte == b'\n') {
                Some(end) => (end + 1, true),
                None => (part.len(), part.is_empty()),
            };
            self.from.consume(used);
            if ended {
                return Ok(());
            }
        }
    }
}
