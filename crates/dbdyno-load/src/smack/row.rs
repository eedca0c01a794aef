//! Rows of the table: keys by number, and contents that compress as asked.

use dbdyno_common::random::Random;

/// Letters in front of the number in a key of characters.
const LETTERS: usize = 12;

/// Type of the primary key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// BIGINT: the number itself.
    Integer,
    /// CHAR(25): letters that depend on the number, then the number, as Super-Smack's gen-data makes user names.
    /// Neighbouring numbers are far apart in the index.
    Char,
}

impl Key {
    /// Bytes of a row that it takes.
    pub fn bytes(self) -> usize {
        match self {
            Self::Integer => 8,
            Self::Char => 25,
        }
    }

    /// Its column as SQL defines it. The server's own character set might take more than a byte for a character.
    pub fn definition(self) -> &'static str {
        match self {
            Self::Integer => "id BIGINT NOT NULL PRIMARY KEY",
            Self::Char => "id CHAR(25) CHARACTER SET latin1 NOT NULL PRIMARY KEY",
        }
    }

    /// Its column as the server reports it.
    pub fn column(self) -> &'static str {
        match self {
            Self::Integer => "id bigint",
            Self::Char => "id char(25)",
        }
    }

    /// Replaces `out` by the key with `number`; as a literal if it is to stand in a text.
    #[inline]
    pub fn write(self, number: i64, as_literal: bool, out: &mut Vec<u8>) {
        out.clear();
        match self {
            Self::Integer => out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes()),
            Self::Char if as_literal => {
                out.push(b'\'');
                put_name(number, out);
                out.push(b'\'');
            }
            Self::Char => put_name(number, out),
        }
    }
}

/// Appends `value` in base 36, with lower-case letters.
#[inline]
fn put_base36(mut value: u64, out: &mut Vec<u8>) {
    const LENGTH_MAX: usize = 13;
    let (mut digits, mut at) = ([b'0'; LENGTH_MAX], LENGTH_MAX);
    while value > 0 || at == LENGTH_MAX {
        at -= 1;
        digits[at] = b"0123456789abcdefghijklmnopqrstuvwxyz"[(value % 36) as usize];
        value /= 36;
    }
    out.extend_from_slice(&digits[at..]);
}

#[inline]
fn put_name(number: i64, out: &mut Vec<u8>) {
    let mut fraction = Random::new(number as u64).bits();
    for _ in 0..LETTERS {
        let scaled = u128::from(fraction) * 26;
        out.push(b'a' + (scaled >> 64) as u8);
        fraction = scaled as u64;
    }
    put_base36(number as u64, out);
}

/// What a row holds besides its key.
#[derive(Debug, Clone)]
pub struct Content {
    bytes: Vec<u8>,
    /// Bytes from the front that are random.
    random: usize,
}

impl Content {
    /// `length` bytes, `compressible` percent of which any compressor takes away: they are all the same.
    pub fn new(length: usize, compressible: u8) -> Self {
        let random = length - length * usize::from(compressible) / 100;
        Self { bytes: vec![b'.'; length], random }
    }

    /// Draws it anew. It can stand between quotes as it is.
    #[inline]
    pub fn draw(&mut self, random: &mut Random) -> &[u8] {
        let fresh = &mut self.bytes[..self.random];
        // Whole words first: pieces of a length known ahead are written three times as fast.
        let mut pieces = fresh.chunks_exact_mut(8);
        for piece in &mut pieces {
            piece.copy_from_slice(&random.bits().to_le_bytes());
        }
        let rest = pieces.into_remainder();
        rest.copy_from_slice(&random.bits().to_le_bytes()[..rest.len()]);
        for byte in fresh {
            let special = matches!(byte, 0 | b'\'' | b'\\');
            *byte ^= u8::from(special) << 7;
        }
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn key(key: Key, number: i64, as_literal: bool) -> String {
        let mut out = b"before".to_vec();
        key.write(number, as_literal, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_written_in_base_36() {
        for (value, text) in [(0, "0"), (35, "z"), (36, "10"), (u64::MAX, "3w5e11264sgsf")] {
            let mut out = b"x".to_vec();
            put_base36(value, &mut out);
            assert_eq!(out, format!("x{text}").into_bytes());
        }
    }

    #[test]
    fn keys_depend_on_their_number_alone() {
        assert_eq!(key(Key::Integer, 42, true), "42");
        assert_eq!(key(Key::Char, 42, false), key(Key::Char, 42, false));
        assert_eq!(key(Key::Char, 42, true), format!("'{}'", key(Key::Char, 42, false)));
        assert!(key(Key::Char, 42, false).ends_with("16"));
        assert_eq!(key(Key::Char, i64::MAX, false).len(), 25);
    }

    #[test]
    fn names_are_spread_over_the_whole_index() {
        let names: BTreeSet<String> = (1..=26_000).map(|number| key(Key::Char, number, false)).collect();
        assert_eq!(names.len(), 26_000);
        for place in [0, LETTERS - 1] {
            let mut letters = [0; 26];
            for name in &names {
                letters[usize::from(name.as_bytes()[place] - b'a')] += 1;
            }
            assert!(letters.iter().all(|count| (850..1150).contains(count)), "{letters:?}");
        }
    }

    #[test]
    fn content_is_random_as_far_as_asked() {
        for (percent, expected) in [(0, 1000), (50, 500), (33, 670), (100, 0)] {
            let mut content = Content::new(1000, percent);
            let mut random = Random::new(1);
            let first = content.draw(&mut random).to_vec();
            let second = content.draw(&mut random).to_vec();
            let same = first.iter().zip(&second).rev().take_while(|(one, other)| one == other && **one == b'.').count();
            assert!((1000 - same).abs_diff(expected) <= 2, "{percent}: {same}");
            let differ = first.iter().zip(&second).filter(|(one, other)| one != other).count();
            assert!(differ >= expected * 98 / 100, "{percent}: {differ}");
        }
    }

    #[test]
    fn all_bytes_but_three_are_used_alike() {
        let mut counts = [0; 256];
        let mut content = Content::new(253_000, 0);
        for byte in content.draw(&mut Random::new(5)) {
            counts[usize::from(*byte)] += 1;
        }
        for (byte, count) in counts.into_iter().enumerate() {
            match byte as u8 {
                0 | b'\'' | b'\\' => assert_eq!(count, 0),
                0x80 | 0xa7 | 0xdc => assert!((1700..2300).contains(&count), "{byte}: {count}"),
                _ => assert!((800..1200).contains(&count), "{byte}: {count}"),
            }
        }
    }

    proptest! {
        #[test]
        fn content_has_its_length(length in 0_usize..200, percent in 0_u8..=100, seed: u64) {
            let mut content = Content::new(length, percent);
            prop_assert_eq!(content.draw(&mut Random::new(seed)).len(), length);
        }
    }
}
