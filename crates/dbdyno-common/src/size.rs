//! Sizes in bytes as people write them.

/// A number of bytes, read as in a study: K, M, G, T and KiB, MiB, GiB, TiB are powers of 1024, KB, MB, GB, TB powers
/// of 1000, in upper or lower case; `None` for anything else.
pub fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let factor: u64 = match text[digits..].trim_start().to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KIB" => 1 << 10,
        "M" | "MIB" => 1 << 20,
        "G" | "GIB" => 1 << 30,
        "T" | "TIB" => 1 << 40,
        "KB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_a_study() {
        let sizes = ["7", "7B", "2K", "2k", "3MiB", "4 mib", "4GB", "1tb", " 5 KB "].map(bytes);
        let binary = [2 << 10, 2 << 10, 3 << 20, 4 << 20].map(Some);
        assert_eq!(sizes[..2], [Some(7); 2]);
        assert_eq!(sizes[2..6], binary);
        assert_eq!(sizes[6..], [4_000_000_000, 1_000_000_000_000, 5000].map(Some));
        let none = ["99999999999T", "1X", "", "-1", "K", "1iB", "1KBB", "1KiBB", "1K B", "1.5K"].map(bytes);
        assert_eq!(none, [None; 10]);
    }
}
