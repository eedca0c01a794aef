//! Hints for names that were misspelled.

/// Bytes of a word that is looked for in others: a shorter one is part of too many.
const PART_MIN: usize = 3;

/// The candidate that differs least from `text`, if it is near at all; or the first that holds it, or is part of it:
/// "deadline" is far from "mq-deadline" by letters, yet that is what was meant.
pub fn nearest<'a>(text: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let candidates: Vec<_> = candidates.collect();
    let near = candidates
        .iter()
        .map(|candidate| (strsim::levenshtein(text, candidate), *candidate))
        .filter(|(distance, _)| *distance <= (text.len() / 3).max(2).min(text.len() / 2))
        .min()
        .map(|(_, candidate)| candidate);
    let holds = |long: &str, short: &str| short.len() >= PART_MIN && long.contains(short);
    near.or_else(|| candidates.into_iter().find(|candidate| holds(candidate, text) || holds(text, candidate)))
}

/// `. Did you mean "NAME"?` with the nearest candidate, the end of a message; empty without one.
pub fn did_you_mean<'a>(text: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    nearest(text, candidates).map_or_else(String::new, |near| format!(". Did you mean \"{near}\"?"))
}

/// Sorts `names`, those first that differ least from `text`.
pub fn sort_nearest_first(text: &str, names: &mut [String]) {
    names.sort_by_cached_key(|name| strsim::levenshtein(text, name));
}

/// Whether `text` is `word` with one letter wrong, missing or too many, or two neighbours swapped.
pub fn is_slip(text: &str, word: &str) -> bool {
    strsim::osa_distance(text, word) == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_near_or_missing() {
        let names = || ["read_only", "write_only"].into_iter();
        assert_eq!(did_you_mean("read_olny", names()), ". Did you mean \"read_only\"?");
        assert_eq!(did_you_mean("bulk", names()), "");
        assert_eq!(did_you_mean("deadline", ["none", "mq-deadline"].into_iter()), ". Did you mean \"mq-deadline\"?");
        assert_eq!(did_you_mean("re", ["bigger_read_only"].into_iter()), "", "too short to tell");
    }

    #[test]
    fn a_slip_is_one_letter_or_two_swapped() {
        for slip in ["nmae", "nme", "namee", "nane"] {
            assert!(is_slip(slip, "name"), "{slip}");
        }
        assert!(!is_slip("name", "name") && !is_slip("note", "name"));
    }
}
