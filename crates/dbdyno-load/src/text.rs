//! Text that others wrote (messages, versions, names and values from a server), made fit to show: nothing that a
//! terminal obeys, nothing that turns the direction of writing or cannot be seen, and no more of it than a reader
//! wants.

use std::borrow::Cow;

/// Most characters shown of a text from a server; the servers themselves end a message at 512 bytes.
pub const CHARS_MAX: usize = 512;

/// Whether a character is seen where it stands, and does nothing else. Control characters do not, nor separators of
/// lines and paragraphs, marks of annotations, and what Unicode calls `Default_Ignorable_Code_Point`, with all marks of
/// direction.
fn is_plain(c: char) -> bool {
    !c.is_control()
        && !matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// At most `chars_max` characters of a text of `length` bytes that starts with `head`, on one line, and how much is
/// left out. What is not UTF-8 becomes U+FFFD.
pub fn printable(head: &[u8], length: usize, chars_max: usize) -> String {
    let pieces = head.utf8_chunks().flat_map(|chunk| {
        let broken = Some((char::REPLACEMENT_CHARACTER, chunk.invalid().len())).filter(|(_, size)| *size > 0);
        chunk.valid().chars().map(|c| (c, c.len_utf8())).chain(broken)
    });
    let (mut text, mut taken) = (String::new(), 0);
    for (c, size) in pieces.take(chars_max) {
        text.push(if is_plain(c) { c } else { ' ' });
        taken += size;
    }
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match length.saturating_sub(taken) {
        0 => line,
        left => format!("{line} ... ({left} more bytes)"),
    }
}

/// A name or a value from a server, on one line, cut after [`CHARS_MAX`] characters.
pub fn shown(text: &str) -> String {
    printable(text.as_bytes(), text.len(), CHARS_MAX)
}

/// Several lines of ours, in which names and messages from elsewhere may stand.
pub fn lines(text: &str) -> Cow<'_, str> {
    let stays = |c: char| matches!(c, '\n' | '\t') || is_plain(c);
    if text.chars().all(stays) {
        return text.into();
    }
    text.chars().map(|c| if stays(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What must not reach a terminal: C0, DEL, C1; soft hyphen; marks, embeddings, overrides and isolates of
    /// direction; what has no width; separators; tags.
    fn is_harmful(c: char) -> bool {
        matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}' | '\u{2029}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
    }

    /// Characters of which about half are harmful.
    fn text() -> impl Strategy<Value = String> {
        let harmful = prop::sample::select(('\0'..=char::MAX).filter(|c| is_harmful(*c)).collect::<Vec<_>>());
        prop::collection::vec(prop_oneof![harmful, any::<char>()], 0..600).prop_map(String::from_iter)
    }

    #[test]
    fn what_a_terminal_obeys_is_no_text() {
        assert_eq!(lines("a\n\tb \u{e9}"), "a\n\tb \u{e9}");
        assert_eq!(lines("a\u{1b}[31mred\u{9b}2J\u{7f}\r"), "a\u{fffd}[31mred\u{fffd}2J\u{fffd}\u{fffd}");
        assert_eq!(shown("a\u{1b}[31mred\u{9b}2J\r\n\tb"), "a [31mred 2J b");
        assert_eq!(shown("user\u{202e}nimda\u{2066}\u{200b}\u{feff}x"), "user nimda x");
        assert_eq!(
            shown("Zugriff \u{fc}ber \u{5d0}\u{5d1}, \u{6f22}, e\u{301}"),
            "Zugriff \u{fc}ber \u{5d0}\u{5d1}, \u{6f22}, e\u{301}"
        );
    }

    #[test]
    fn what_is_left_out_is_counted_in_bytes() {
        assert_eq!(printable(b"abcdef", 6, 6), "abcdef");
        assert_eq!(printable(b"abcdef", 6, 4), "abcd ... (2 more bytes)");
        assert_eq!(printable(b"abcdef", 2_000_000, 4), "abcd ... (1999996 more bytes)");
        assert_eq!(printable("\u{20ac}\u{20ac}\u{20ac}".as_bytes(), 9, 2), "\u{20ac}\u{20ac} ... (3 more bytes)");
        assert_eq!(printable(b"a\xff\xfeb", 4, 9), "a\u{fffd}\u{fffd}b");
        assert_eq!(printable(b"a\xe2\x82", 3, 1), "a ... (2 more bytes)");
    }

    proptest! {
        #[test]
        fn nothing_harmful_is_left(text in text()) {
            prop_assert!(!shown(&text).chars().any(is_harmful));
            prop_assert!(!lines(&text).chars().any(|c| is_harmful(c) && c != '\n' && c != '\t'));
            prop_assert_eq!(lines(&text).chars().count(), text.chars().count());
        }

        #[test]
        fn any_bytes_become_a_short_line(head: Vec<u8>, more in 0_usize..1 << 40, chars_max in 0_usize..80) {
            let line = printable(&head, head.len() + more, chars_max);
            prop_assert!(!line.chars().any(is_harmful));
            prop_assert!(line.chars().count() <= chars_max + " ... (1099511627776 more bytes)".len());
            prop_assert!(more == 0 || line.ends_with(" more bytes)"));
        }

        #[test]
        fn ordinary_text_stays(text in "[a-z'`(),.:éßЖ漢]{1,20}( [a-z'`(),.:éßЖ漢]{1,20}){0,9}") {
            prop_assert_eq!(shown(&text), text);
        }
    }
}
