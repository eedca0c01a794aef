//! Text that others wrote (messages, versions, names and values from a server), made fit to show: nothing that a terminal
//! obeys, nothing that turns the direction of writing or cannot be seen, and no more of it than a reader wants.

use std::borrow::Cow;

/// Most characters shown of a text from a server; the servers themselves end a message at 512 bytes.
pub const CHARS_MAX: usize = 512;

/// Whether a character is seen where it stands, and does nothing else. Control characters do not, nor separators of lines
/// and paragraphs, marks of annotations, and what Unicode calls `Default_Ignorable_Code_Point`, with all marks of direction.
fn is_plain(c: char) -> bool {
    !c.is_control()
        && !matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// At most `chars_max` characters of a text of `length` bytes that starts with `head`, on one line, and how much is left out.
/// What is not UTF-8 becomes U+FFFD.
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
#[path = "text_tests.rs"]
mod tests;
