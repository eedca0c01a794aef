//! Text of `blkparse` and of tracefs (`trace`, `trace_pipe`, `perf script`): a line an event.

use super::block_event::{Action, BlockEvent, with_letters};
use super::columns::short;
use super::findings::Findings;
use super::number::scaled;
use super::record::Record;
use crate::queue::Direction;

const SECOND: u64 = 1_000_000_000;

/// The event of a line of `blkparse` in its default format: device, CPU, sequence, seconds, process, action, RWBS, sector + length.
pub fn blkparse(line: &str, findings: &mut Findings) -> Option<BlockEvent> {
    if line.starts_with('#') {
        comment(line, findings);
        return None;
    }
    let mut words = line.split_ascii_whitespace();
    let device = words.next()?;
    if !device.split_once(',').is_some_and(|(major, minor)| is_number(major) && is_number(minor)) {
        findings.pass_over("text"); // the summary at the end
        return None;
    }
    let (_cpu, _sequence, at, process, action, letters) =
        (words.next()?, words.next(), words.next(), words.next(), words.next(), words.next());
    let (Some(at_ns), Some(process)) = (at.and_then(|at| scaled(at, SECOND)), process.and_then(|one| one.parse().ok()))
    else {
        findings.damage("holds no time and process");
        return None;
    };
    let action = match action? {
        "Q" => Action::Queued,
        "D" => Action::Issued,
        "R" => Action::Requeued,
        "C" => Action::Completed,
        other => {
            findings.pass_over(&short(other));
            return None;
        }
    };
    if action == Action::Queued {
        findings.name_process(process, line);
    }
    event(action, device, at_ns, process, letters.unwrap_or_default(), words, findings)
}

/// What `dbdyno-probe` says before the first event: how many were lost, or that it never came to its end.
fn comment(line: &str, findings: &mut Findings) {
    if let Some(said) = line.strip_prefix("# lost_events: ") {
        match said.trim().parse::<u64>() {
            Ok(lost) => findings.lost_events = findings.lost_events.saturating_add(lost),
            Err(_) => findings.cut_off = true,
        }
    }
}

/// The event of a line of tracefs: `name-PID [cpu] flags seconds: block_rq_issue: 8,0 WS 4096 () 1000 + 8 [name]`.
pub fn tracefs(line: &str, findings: &mut Findings) -> Option<BlockEvent> {
    if line.starts_with('#') || line.trim().is_empty() {
        return None;
    }
    let Some((before, (name, rest))) =
        line.split_once(": block_").and_then(|(before, after)| Some((before, after.split_once(": ")?)))
    else {
        match line.split_once("[LOST ").and_then(|(_, rest)| rest.split_once(" EVENTS")) {
            Some((number, _)) => {
                findings.lost_events = findings.lost_events.saturating_add(number.parse().unwrap_or(1));
            }
            None => findings.pass_over("text"),
        }
        return None;
    };
    let action = match name {
        "bio_queue" => Action::Queued,
        "rq_issue" => Action::Issued,
        "rq_requeue" => Action::Requeued,
        "rq_complete" => Action::Completed,
        other => {
            findings.pass_over(&short(other));
            return None;
        }
    };
    let at_ns = before.rsplit(' ').next().and_then(|at| scaled(at, SECOND));
    let who = before.split_once(" [").map_or(before, |(who, _)| who);
    let process = who.trim_end().rsplit('-').next().and_then(|process| process.parse().ok());
    let (Some(at_ns), Some(process)) = (at_ns, process) else {
        findings.damage("holds no time and process");
        return None;
    };
    if action == Action::Queued {
        findings.name_process(process, line);
    }
    let mut words = rest.split_ascii_whitespace();
    let (device, letters) = (words.next()?, words.next().unwrap_or_default());
    event(action, device, at_ns, process, letters, words, findings)
}

/// Sector and length stand around a plus; a flush may lack them.
fn event<'a>(
    action: Action,
    device: &str,
    at_ns: u64,
    process: u32,
    letters: &str,
    words: impl Iterator<Item = &'a str>,
    findings: &mut Findings,
) -> Option<BlockEvent> {
    let rest: Vec<&str> = words.take(8).collect();
    let plus = rest.iter().position(|&word| word == "+");
    let number = |place: usize| rest.get(place).and_then(|word| word.parse::<u64>().ok());
    let place = match plus {
        Some(plus) if plus > 0 => {
            number(plus - 1).zip(number(plus + 1).and_then(|sectors| u32::try_from(sectors).ok()))
        }
        _ if letters.starts_with('F') => Some((0, 0)),
        _ => None,
    };
    let Some((start_sector, sectors)) = place.filter(|(start, _)| *start < 1 << 54) else {
        // A bare flush of tracefs has no place but the highest number.
        if letters.starts_with('F') {
            return made(action, device, Record::new(at_ns, Direction::Write, 0, 0), process, letters, findings);
        }
        findings.damage("holds no sector and length");
        return None;
    };
    made(action, device, Record::new(at_ns, Direction::Write, start_sector, sectors), process, letters, findings)
}

fn made(
    action: Action,
    device: &str,
    found: Record,
    process: u32,
    letters: &str,
    findings: &mut Findings,
) -> Option<BlockEvent> {
    let Some(what) = with_letters(letters, found) else {
        findings.pass_over(&short(letters));
        return None;
    };
    if what.sectors == 0 && !what.flush {
        return None; // the end of a flush, which stood there before by its own name
    }
    let start_sector = if what.sectors == 0 { 0 } else { what.start_sector };
    Some(BlockEvent { action, what: Record { device: findings.device(device), process, start_sector, ..what } })
}

pub fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
