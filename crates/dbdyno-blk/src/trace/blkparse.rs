//! Text of block events: of `blkparse` in its default form and in such as its `-f` makes, and of the kernel's events as
//! tracefs, `trace-cmd` and `perf script` print them: a line an event.

use super::columns::{passed_over, short};
use super::record::{Action, BlockEvent, Findings, Record, with_letters};
use super::units::{is_number, scaled};
use crate::queue::Direction;

const SECOND: u64 = 1_000_000_000;

/// Letters of blkparse's actions that are not of one request's way: unplugs, remaps, messages and so on.
const ACTIONS: [&str; 17] = ["Q", "D", "C", "R", "I", "G", "M", "F", "S", "P", "U", "UT", "T", "A", "X", "B", "m"];

/// Bytes of an event's name at the most, so that no line takes longer than its length.
const NAME_BYTES_MOST: usize = 48;

/// Whether it is a device's numbers, such as `8,0`.
fn is_device(word: &str) -> bool {
    word.split_once(',').is_some_and(|(major, minor)| is_number(major) && is_number(minor))
}

/// Whether a line is of `blkparse` in its default form.
pub fn begins_blkparse(line: &str) -> bool {
    let words: Vec<&str> = line.split_ascii_whitespace().take(6).collect();
    words.len() == 6
        && is_device(words[0])
        && is_number(words[1])
        && scaled(words[3], SECOND).is_some()
        && ACTIONS.contains(&words[5])
}

/// The event of a line of `blkparse` in its default format: device, CPU, sequence, seconds, process, action, RWBS,
/// sector + length.
pub fn blkparse(line: &str, findings: &mut Findings) -> Option<BlockEvent> {
    if line.starts_with('#') {
        comment(line, findings);
        return None;
    }
    let mut words = line.split_ascii_whitespace();
    let device = words.next()?;
    if !is_device(device) {
        findings.pass_over("text"); // the summary at the end
        return None;
    }
    let (_cpu, _sequence, at, process, action, letters) =
        (words.next()?, words.next(), words.next(), words.next(), words.next(), words.next());
    let (Some(at_ns), Some(process)) =
        (at.and_then(|at| scaled(at, SECOND)), process.and_then(|process| process.parse().ok()))
    else {
        findings.damage("has no time and process");
        return None;
    };
    let action = by_letter(action?, findings)?;
    if action != Action::Completed {
        findings.name_process(process, || in_brackets(line));
    }
    let letters = letters.unwrap_or_default();
    event(&Who { action, device, at_ns, process, letters }, place_of(&mut words), findings)
}

fn by_letter(action: &str, findings: &mut Findings) -> Option<Action> {
    Some(match action {
        "Q" => Action::Queued,
        "I" => Action::Inserted,
        "D" => Action::Issued,
        "R" => Action::Requeued,
        "C" => Action::Completed,
        other => {
            findings.pass_over(&short(other));
            return None;
        }
    })
}

/// A process's name, which stands in brackets at a line's end.
fn in_brackets(line: &str) -> Option<&str> {
    line.trim_end().strip_suffix(']').and_then(|line| line.rsplit_once('[')).map(|(_, name)| name)
}

/// What `dbdyno-probe` says before the first event: how many were lost, or that it never came to its end.
pub fn comment(line: &str, findings: &mut Findings) {
    if let Some(count) = line.strip_prefix("# lost_events: ") {
        match count.trim().parse::<u64>() {
            Ok(lost) => findings.lost_events = findings.lost_events.saturating_add(lost),
            Err(_) => findings.cut_off = true,
        }
    }
}

/// What stands before an event's name, the name without `block_`, and what is behind it. A process may be called so,
/// too.
fn split_event(line: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(offset) = line[from..].find("block_") {
        let at = from + offset;
        from = at + "block_".len();
        let before = &line[..at];
        let before = before.strip_suffix("block:").unwrap_or(before).trim_end();
        let behind = line.as_bytes()[from..].iter().take(NAME_BYTES_MOST).position(|&byte| byte == b':');
        let Some(end) = behind.map(|behind| from + behind) else { continue };
        let (name, rest) = (&line[from..end], &line[end + 1..]);
        let is_name = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if let Some(before) = before.strip_suffix(':').filter(|_| is_name) {
            return Some((before, name, rest));
        }
        if before.is_empty() && is_name && rest.split_ascii_whitespace().next().is_some_and(is_device) {
            return Some((before, name, rest));
        }
    }
    None
}

/// The same of ftrace's tracer `blk`, whose events have blkparse's letters: `dd-12 [001] 40822.6: 8,0 Q WS 0 + 8 [dd]`.
fn split_letters(line: &str) -> Option<(&str, &str, &str, &str)> {
    let (before, rest) = line.split_once(": ")?;
    let (device, rest) = rest.trim_start().split_once(' ')?;
    let (action, rest) = rest.trim_start().split_once(' ')?;
    (is_device(device) && ACTIONS.contains(&action)).then_some((before, device, action, rest))
}

/// Whether a line is an event of the kernel's tracing.
pub fn begins_tracefs(line: &str) -> bool {
    split_event(line).is_some_and(|(_, _, rest)| rest.split_ascii_whitespace().next().is_some_and(is_device))
        || split_letters(line).is_some_and(|(before, ..)| time_of(before).is_some())
}

/// The time that ends what stands before an event, and what is left: `812.100001`, `12345us`, or whole nanoseconds.
fn time_of(before: &str) -> Option<(u64, &str)> {
    let before = before.trim_end();
    let (rest, time) = before.rsplit_once([' ', '\t']).unwrap_or(("", before));
    let bare = time.trim_end_matches(['+', '!', '#', '*', '@', '$']);
    if let Some(micros) = bare.strip_suffix("us") {
        return Some((scaled(micros, 1000)?, rest));
    }
    let scale = if time.contains('.') { SECOND } else { 1 };
    Some((scaled(time, scale)?, rest))
}

/// The process of what stands before a time, if it is there: `fio-41 [001] d..2.`, `fio 41 [001]`, `fio 41/43`, `fio-41
/// ( 41)`.
fn process_of(before: &str) -> Option<u32> {
    let who = before.rfind('[').map_or(before, |at| &before[..at]).trim_end();
    let who = who.strip_suffix(')').and_then(|who| who.rsplit_once('(')).map_or(who, |(who, _)| who.trim_end());
    let word = who.rsplit([' ', '\t']).next()?;
    let word = word.split_once('/').filter(|(process, _)| is_number(process)).map_or(word, |(process, _)| process);
    word.rsplit('-').next()?.parse().ok()
}

/// The event of a line of tracefs: `name-PID [cpu] flags seconds: block_rq_issue: 8,0 WS 4096 () 1000 + 8 [name]`.
pub fn tracefs(line: &str, findings: &mut Findings) -> Option<BlockEvent> {
    if line.starts_with('#') || line.trim().is_empty() {
        return None;
    }
    if let Some((before, name, rest)) = split_event(line) {
        let action = match name {
            "bio_queue" => Action::Queued,
            "rq_insert" | "io_start" => Action::Inserted,
            "rq_issue" => Action::Issued,
            "rq_requeue" => Action::Requeued,
            "rq_complete" | "bio_complete" | "io_done" => Action::Completed,
            other => {
                findings.pass_over(&short(other));
                return None;
            }
        };
        let Some((device, rest)) = rest.trim_start().split_once(' ') else {
            findings.damage("has no device");
            return None;
        };
        return kernel_event(line, action, before, device, rest, findings);
    }
    if let Some((before, device, action, rest)) = split_letters(line) {
        let action = by_letter(action, findings)?;
        return kernel_event(line, action, before, device, rest, findings);
    }
    match line.split_once("[LOST ").and_then(|(_, rest)| rest.split_once(" EVENTS")) {
        Some((number, _)) => {
            findings.lost_events = findings.lost_events.saturating_add(number.parse().unwrap_or(1));
        }
        None => findings.pass_over("text"),
    }
    None
}

fn kernel_event(
    line: &str,
    action: Action,
    before: &str,
    device: &str,
    rest: &str,
    findings: &mut Findings,
) -> Option<BlockEvent> {
    let Some((at_ns, who)) = time_of(before) else {
        findings.damage("has no time");
        return None;
    };
    let process = process_of(who);
    if process.is_none() && who.contains('[') && !who.trim_start().starts_with('[') {
        findings.damage("has no time and process");
        return None;
    }
    let process = process.unwrap_or(0);
    if action != Action::Completed {
        findings.name_process(process, || in_brackets(line));
    }
    let rest = rest.trim_start();
    let (letters, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    // A command of SCSI stands in parentheses before the place.
    let rest =
        rest.find('(').and_then(|open| rest[open..].find(')').map(|close| &rest[open + close + 1..])).unwrap_or(rest);
    event(&Who { action, device, at_ns, process, letters }, place_of(&mut rest.split_ascii_whitespace()), findings)
}

/// Who does what to which device, and when.
struct Who<'a> {
    action: Action,
    device: &'a str,
    at_ns: u64,
    process: u32,
    letters: &'a str,
}

/// Where a request is, as its line has it.
#[derive(Clone, Copy)]
enum Place {
    /// First sector and length in sectors.
    Sectors(u64, u32),
    /// A sector alone: what ended moved no data.
    Without,
    /// Neither.
    Nowhere,
}

/// Sector and length stand around a plus. What ends without data has a sector, and perhaps an error in brackets.
fn place_of<'a>(words: &mut impl Iterator<Item = &'a str>) -> Place {
    let mut before: Option<&str> = None;
    let mut first: Option<&str> = None;
    for word in words.by_ref().take(24) {
        if word == "+" {
            let start = before.and_then(|word| word.parse::<u64>().ok());
            let sectors = words.next().and_then(|word| word.parse::<u32>().ok());
            return start.zip(sectors).map_or(Place::Nowhere, |(start, sectors)| Place::Sectors(start, sectors));
        }
        first = first.or(Some(word));
        before = Some(word);
    }
    if first.is_some_and(is_number) { Place::Without } else { Place::Nowhere }
}

fn event(who: &Who<'_>, place: Place, findings: &mut Findings) -> Option<BlockEvent> {
    let Some(what) = with_letters(who.letters, Record::new(who.at_ns, Direction::Write, 0, 0)) else {
        findings.pass_over(&short(passed_over(who.letters)));
        return None;
    };
    let (start_sector, sectors) = match place {
        Place::Sectors(start, sectors) if start < 1 << 54 => (start, sectors),
        // A bare flush has no place but, in tracefs, the highest number.
        _ if what.flush => (0, 0),
        Place::Without | Place::Sectors(_, 0) => (0, 0),
        Place::Sectors(..) | Place::Nowhere => {
            findings.damage("has no sector and length");
            return None;
        }
    };
    if sectors == 0 && !what.flush {
        findings.pass_over("without data"); // the end of a flush, which stood there before by its own name
        return None;
    }
    let start_sector = if sectors == 0 { 0 } else { start_sector };
    let what = Record { device: findings.device(who.device), process: who.process, start_sector, sectors, ..what };
    Some(BlockEvent { action: who.action, what })
}

/// What a line of a form of one's own (`blkparse -f`) holds, in whichever order.
struct FormLine<'a> {
    at_ns: u64,
    action: Action,
    letters: &'a str,
    device: &'a str,
    process: u32,
    name: Option<&'a str>,
    place: Place,
}

/// Whether a line is of such a form: a time with a point, letters of a request, and its place.
pub fn begins_own(line: &str) -> bool {
    parse_form_line(line).is_some_and(|own| own.is_ok_and(|own| matches!(own.place, Place::Sectors(..))))
}

/// Takes a line apart; `None` where it is no event, the name of an action that is none of a request's way.
fn parse_form_line(line: &str) -> Option<Result<FormLine<'_>, &str>> {
    let words: Vec<&str> = line
        .split_ascii_whitespace()
        .flat_map(|word| {
            if is_device(word.trim_end_matches(',')) {
                vec![word.trim_end_matches(',')]
            } else {
                word.split([',', ';', '|']).collect()
            }
        })
        .filter(|word| !word.is_empty())
        .take(32)
        .collect();
    let at = words.iter().position(|word| word.contains('.') && word.len() > 4 && scaled(word, SECOND).is_some())?;
    let is_rwbs = |word: &&str| word.len() <= 6 && word.bytes().all(|byte| b"RWFSMAEBDN".contains(&byte));
    // A word that may be either is an action if another one holds the letters of the request.
    let action = words.iter().position(|word| ACTIONS.contains(word));
    let letters = (0..words.len()).rev().find(|&place| is_rwbs(&words[place]) && Some(place) != action);
    let (action, letters) = match (action, letters) {
        (Some(action), Some(letters)) => (Some(action), letters),
        // Only what was issued, or only one of both: letters are what says whether it reads.
        (Some(only), None) if is_rwbs(&words[only]) => (None, only),
        (None, Some(letters)) => (None, letters),
        _ => return None,
    };
    let device = words.iter().copied().find(|word| is_device(word)).unwrap_or_default();
    let number =
        |place: usize| words.get(place).filter(|word| is_number(word)).and_then(|word| word.parse::<u64>().ok());
    let pair = |place: usize| number(place).zip(number(place + 1).and_then(|sectors| u32::try_from(sectors).ok()));
    let place = match words.iter().position(|word| *word == "+") {
        Some(plus) => {
            number(plus.wrapping_sub(1)).zip(number(plus + 1).and_then(|sectors| u32::try_from(sectors).ok()))
        }
        // Behind the letters, else the last two numbers that stand together.
        None => pair(letters + 1).or_else(|| (at + 1..words.len()).rev().find_map(pair)),
    };
    let place = place.map_or_else(
        || if number(letters + 1).is_some() { Place::Without } else { Place::Nowhere },
        |(start, sectors)| Place::Sectors(start, sectors),
    );
    let action = match action.map(|place| words[place]) {
        None | Some("D") => Action::Issued,
        Some("Q") => Action::Queued,
        Some("I") => Action::Inserted,
        Some("R") => Action::Requeued,
        Some("C") => Action::Completed,
        Some(other) => return Some(Err(other)),
    };
    let process = number(at + 1).filter(|_| number(at + 2).is_none()).unwrap_or(0);
    let process = u32::try_from(process).unwrap_or(0);
    Some(Ok(FormLine {
        at_ns: scaled(words[at], SECOND)?,
        action,
        letters: words[letters],
        device,
        process,
        name: in_brackets(line),
        place,
    }))
}

/// The event of a line of a form of one's own; lengths are in units of so many bytes.
pub fn own_form(line: &str, length_scale: u64, findings: &mut Findings) -> Option<BlockEvent> {
    match parse_form_line(line) {
        None => {
            let is_text = !line.bytes().any(|byte| byte.is_ascii_digit()) || !line.contains('.');
            if is_text {
                findings.pass_over("text");
            } else {
                findings.damage("lacks a time, letters, a sector or a length");
            }
            None
        }
        Some(Err(action)) => {
            findings.pass_over(&short(action));
            None
        }
        Some(Ok(own)) => {
            if own.action != Action::Completed {
                findings.name_process(own.process, || own.name);
            }
            let place = match own.place {
                Place::Sectors(start, length) if length_scale == 1 => Place::Sectors(start, length.div_ceil(512)),
                other => other,
            };
            let FormLine { at_ns, action, letters, device, process, .. } = own;
            event(&Who { action, device, at_ns, process, letters }, place, findings)
        }
    }
}

/// The lengths of lines at a trace's beginning, for what they count.
pub fn own_lengths(sample: &[&str]) -> super::units::Lengths {
    let mut lengths = super::units::Lengths::default();
    for line in sample {
        if let Some(Ok(FormLine { place: Place::Sectors(_, length), .. })) = parse_form_line(line) {
            lengths.take("0", &length.to_string());
        }
    }
    lengths
}
