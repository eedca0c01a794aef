//! Sizes in bytes as people write them.

/// A number of bytes, with K, M, G or T (and iB or B after it) as powers of 1024; `None` for anything else.
pub fn bytes(given: &str) -> Option<u64> {
    let digits = given.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = given[digits.len()..].trim_end_matches('B').trim_end_matches('i').to_ascii_uppercase();
    let shift = match unit.as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_1024() {
        let sizes = ["7", "2K", "2k", "3MiB", "4GB", "99999999999T", "1X", "", "-1"].map(bytes);
        let (k, m, g) = (Some(2 << 10), Some(3 << 20), Some(4 << 30));
        assert_eq!(sizes, [Some(7), k, k, m, g, None, None, None, None]);
    }
}
