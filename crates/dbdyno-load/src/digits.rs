//! Integers as text, for hot paths on which a formatter would show.

/// Appends `value` in decimal.
#[inline]
pub fn put_decimal(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    put::<10>(value.unsigned_abs(), out);
}

/// Appends `value` in base 36, with lower-case letters: at most 13 characters.
#[inline]
pub fn put_base36(value: u64, out: &mut Vec<u8>) {
    put::<36>(value, out);
}

/// The base is a constant, so that a division becomes a multiplication.
#[inline]
fn put<const BASE: u64>(value: u64, out: &mut Vec<u8>) {
    const LENGTH_MAX: usize = 20;
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut digits = [0; LENGTH_MAX];
    let mut at = LENGTH_MAX;
    let mut rest = value;
    loop {
        at -= 1;
        digits[at] = DIGITS[(rest % BASE) as usize];
        rest /= BASE;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_longest_fit() {
        for value in [0, 9, 10, -1, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            put_decimal(value, &mut out);
            assert_eq!(out, value.to_string().into_bytes());
        }
        let mut out = Vec::new();
        put_base36(u64::MAX, &mut out);
        assert_eq!(out, b"3w5e11264sgsf");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value: i64, other: u64) {
            let mut out = b"x".to_vec();
            put_decimal(value, &mut out);
            prop_assert_eq!(out, format!("x{value}").into_bytes());
            let mut out = Vec::new();
            put_base36(other, &mut out);
            prop_assert_eq!(u64::from_str_radix(&String::from_utf8(out).unwrap(), 36), Ok(other));
        }
    }
}
