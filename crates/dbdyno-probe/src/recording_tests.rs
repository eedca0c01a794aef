use super::*;
use crate::tracefs::event::Kind;

fn event(at_ns: u64, step: Step) -> Event {
    let mut found = Event { kind: Kind::Write, sector: 4096, sectors: 8, process: 77, ..Event::gap(at_ns, step) };
    found.letters[..2].copy_from_slice(b"WS");
    found.name[..4].copy_from_slice(b"a b\n");
    found
}

/// A recording of some events, and the file's text.
fn recorded(bytes_max: u64, events: &[Event], lost: u64) -> (Value, String) {
    let name = format!("dbdyno-recording-{}-{bytes_max}-{lost}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut to = Recording::create(&path, bytes_max, &Device::for_tests("7,0", 64), 1_000_000_000, 5).unwrap();
    for event in events {
        to.take(event);
    }
    to.finish(lost);
    let found = (to.json(), std::fs::read_to_string(&path).unwrap());
    std::fs::remove_file(path).unwrap();
    found
}

#[test]
fn a_line_is_blkparses() {
    let before = event(999_999_999, Step::Queue);
    let flush = Event { sector: u64::MAX, sectors: 0, processor: 3, ..event(3_000_000_000, Step::Complete) };
    let (said, text) = recorded(1 << 20, &[before, event(1_000_000_042, Step::Queue), flush], 17);
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines, ["7,0 0 1 0.000000042 77 Q WS 4032 + 8 [a?b?]", "7,0 3 2 2.000000000 77 C WS 0 + 0 [0]"]);
    assert!(text.contains("\n# lost_events: 17 ") && !text.contains("unknown"), "{text}");
    assert!(text.ends_with("# the recording ended: 2 events in 2.000 s, 17 more were lost\n"), "{text}");
    assert_eq!((&said["events"], &said["full"], &said["failed"]), (&json!(2), &json!(false), &json!(null)));
}

#[test]
fn a_file_grows_no_larger_than_it_may() {
    let events: Vec<_> = (0..1000).map(|number| event(1_000_000_000 + number, Step::Queue)).collect();
    let (said, text) = recorded(4096, &events, 0);
    assert!(text.len() <= 4096 && text.len() > 3000, "{}", text.len());
    assert_eq!(said["full"], json!(true));
    assert!(text.contains("# the file is full: "), "{text}");
}

#[test]
fn a_file_that_is_there_is_left_alone() {
    let path = std::env::current_exe().unwrap();
    let said = Recording::create(&path, 1, &Device::for_tests("7,0", 0), 0, 0).unwrap_err().to_string();
    assert!(said.contains("exists"), "{said}");
}

#[test]
fn digits_are_all_there() {
    for (number, width, expected) in [(0, 1, "0"), (7, 9, "000000007"), (u64::MAX, 9, "18446744073709551615")] {
        let mut text = Vec::new();
        put(&mut text, number, width);
        assert_eq!(text, expected.as_bytes());
    }
}
