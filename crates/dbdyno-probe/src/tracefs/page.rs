//! A page of the kernel's ring buffer, as `trace_pipe_raw` gives it.
//!
//! Source: `Documentation/trace/ring-buffer-design.rst` and `events/header_event` of tracefs. A page begins with the time
//! of its first event and the length of what follows. Each event begins with 32 bits: 5 of type or length, 27 of
//! nanoseconds since the event before.

use super::format::{Field, Fields};

const MISSED: u64 = 1 << 31;
const LENGTH: u64 = (1 << 27) - 1;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// An absolute time has this many bits; those above are the page's.
const STAMP_BITS: u32 = 59;

/// Where the parts of a page lie.
#[derive(Debug, Clone, Copy)]
pub struct PageLayout {
    timestamp: Field,
    commit: Field,
    data: Field,
}

impl PageLayout {
    /// From `events/header_page`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let fields = Fields::parse(text);
        Ok(Self {
            timestamp: fields.field("timestamp", 8)?,
            commit: fields.field("commit", 8)?,
            data: fields.field("data", 1 << 24)?,
        })
    }

    /// Length of a whole page in bytes.
    pub fn page_bytes(&self) -> usize {
        self.data.offset.saturating_add(self.data.size)
    }
}

/// When a page begins, if events between the one before and that moment were lost.
pub fn lost_before(page: &[u8], layout: &PageLayout) -> Option<u64> {
    let commit = layout.commit.number(page)?;
    layout.timestamp.number(page).filter(|_| commit & MISSED != 0)
}

/// Gives every record of a page with its time in nanoseconds.
///
/// What can't be understood ends the page: nothing behind it can be found.
pub fn records(page: &[u8], layout: &PageLayout, mut each: impl FnMut(u64, &[u8])) {
    let (Some(mut now), Some(commit)) = (layout.timestamp.number(page), layout.commit.number(page)) else { return };
    let all = page.get(layout.data.offset..).unwrap_or_default();
    let mut rest = &all[..all.len().min((commit & LENGTH) as usize)];
    while let Some((header, after)) = word(rest) {
        let (kind, delta) = (header & 31, u64::from(header >> 5));
        let Some(event) = next(kind, delta, after, &mut now) else { break };
        if let Some(record) = event.record {
            each(now, record);
        }
        rest = event.rest;
    }
}

struct Next<'a> {
    record: Option<&'a [u8]>,
    rest: &'a [u8],
}

/// Takes one event apart; `after` is what follows its first 32 bits.
fn next<'a>(kind: u32, delta: u64, after: &'a [u8], now: &mut u64) -> Option<Next<'a>> {
    match kind {
        // A page that is not full ends in padding without a length.
        PADDING if delta == 0 => None,
        PADDING => {
            *now = now.wrapping_add(delta);
            let (length, _) = word(after)?;
            Some(Next { record: None, rest: after.get(length as usize..)? }).filter(|_| length >= 4)
        }
        TIME_EXTEND | TIME_STAMP => {
            let (high, rest) = word(after)?;
            let value = (u64::from(high) << 27) | delta;
            *now = if kind == TIME_EXTEND {
                now.wrapping_add(value)
            } else {
                (*now >> STAMP_BITS << STAMP_BITS) | (value & ((1 << STAMP_BITS) - 1))
            };
            Some(Next { record: None, rest })
        }
        _ => {
            *now = now.wrapping_add(delta);
            // A long record's length stands before it, and counts itself.
            let (skipped, length) = if kind == 0 { (4, word(after)?.0 as usize) } else { (0, kind as usize * 4) };
            let end = length.next_multiple_of(4);
            Some(Next { record: Some(after.get(skipped..length)?), rest: after.get(end..)? })
        }
    }
}

fn word(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (first, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*first), rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEADER: &str = "field: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        field: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        field: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        field: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    fn layout() -> PageLayout {
        PageLayout::parse(HEADER).unwrap()
    }

    fn page(start: u64, flags: u64, words: &[u32]) -> Vec<u8> {
        let mut bytes = start.to_le_bytes().to_vec();
        bytes.extend((flags | (words.len() as u64 * 4)).to_le_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes.resize(4096, 0xAA);
        bytes
    }

    fn found(page: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut found = Vec::new();
        records(page, &layout(), |at, record| found.push((at, record.to_vec())));
        found
    }

    #[test]
    fn a_page_is_as_long_as_the_kernel_says() {
        assert_eq!(layout().page_bytes(), 4096);
        assert_eq!(PageLayout::parse("").unwrap_err(), "no field timestamp");
    }

    #[test]
    fn times_add_up() {
        let event = |delta: u32| (delta << 5) | 1;
        let all = found(&page(1000, 0, &[event(5), 7, event(0), 8, (3 << 5) | TIME_EXTEND, 1, event(2), 9]));
        let expected = [(1005, 7u32), (1005, 8), (1005 + 3 + (1 << 27) + 2, 9)];
        assert_eq!(all, expected.map(|(at, word)| (at, word.to_le_bytes().to_vec())));
    }

    #[test]
    fn an_absolute_time_keeps_what_is_above_its_bits() {
        let start = (3 << STAMP_BITS) | 0x4d2;
        let all = found(&page(start, 0, &[(9 << 5) | TIME_STAMP, 2, 1, 7]));
        assert_eq!(all[0].0, (3 << STAMP_BITS) | (2 << 27) | 9);
    }

    #[test]
    fn a_long_record_tells_its_length_before_it() {
        let all = found(&page(0, 0, &[1 << 5, 12, 0x0101_0101, 0x0202_0202, (1 << 5) | 1, 3]));
        assert_eq!(all, [(1, vec![1, 1, 1, 1, 2, 2, 2, 2]), (2, vec![3, 0, 0, 0])]);
    }

    #[test]
    fn what_was_discarded_is_passed_over_with_its_time() {
        let all = found(&page(0, 0, &[(4 << 5) | PADDING, 8, 99, (1 << 5) | 1, 3]));
        assert_eq!(all, [(5, vec![3, 0, 0, 0])]);
    }

    #[test]
    fn a_page_behind_lost_events_says_so() {
        assert_eq!(lost_before(&page(77, MISSED, &[1, 3]), &layout()), Some(77));
        assert_eq!(lost_before(&page(77, 0, &[1, 3]), &layout()), None);
        assert_eq!(lost_before(&[1, 2], &layout()), None);
    }

    #[test]
    fn padding_without_a_length_ends_the_page() {
        let all = found(&page(0, 0, &[1, 3, PADDING, 0, 1, 3]));
        assert_eq!(all.len(), 1);
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            records(&bytes, &layout(), |_, record| assert!(record.len() < 600));
            let _ = lost_before(&bytes, &layout());
        }

        #[test]
        fn garbage_behind_a_good_header_never_panics(
            words in proptest::collection::vec(prop_oneof![any::<u32>(), 0u32..2048], 0..600), flags in any::<u64>()
        ) {
            let mut bytes = page(7, 0, &words);
            bytes[8..16].copy_from_slice(&(flags | 0xff0).to_le_bytes());
            records(&bytes, &layout(), |_, record| assert!(record.len() <= 4080));
        }

        #[test]
        fn every_record_written_is_found(lengths in proptest::collection::vec((1u32..29, 0u32..1 << 27), 0..30)) {
            let mut words = Vec::new();
            for (length, delta) in &lengths {
                words.push((delta << 5) | length);
                words.extend(std::iter::repeat_n(*length, *length as usize));
            }
            let all = found(&page(0, 0, &words));
            let mut now = 0;
            prop_assert_eq!(all.len(), lengths.len());
            for ((at, record), (length, delta)) in all.iter().zip(&lengths) {
                now += u64::from(*delta);
                prop_assert_eq!((*at, record.len()), (now, *length as usize * 4));
            }
        }
    }
}
