//! Rotating parity, RAID 5 and 6: where data and parity lie, what a write reads before it writes, and which writes wait
//! for others.
//!
//! A *row* is one stripe of each member, a member's part of it a *unit*. Parity rotates left-symmetrically, as md does
//! by default (`ALGORITHM_LEFT_SYMMETRIC` in `raid5_compute_sector()` of Linux's `drivers/md/raid5.c`): with one parity
//! as many neighbouring units of data as there are members lie on as many members, so that reads use all of them.
//!
//! A write of whole rows goes to all members and reads nothing. Any other write reads first, either what it overwrites
//! and the old parity (*read-modify-write*), or what it leaves of the other units, of which parity is made anew
//! (*reconstruct-write*): whichever takes fewer reads. If they are equal it is read-modify-write, whose writes find the
//! heads where its reads left them; md would reconstruct then. A row is worked on by one write at a time, as parity
//! would be wrong otherwise. What comes for a row while a write waits for it is written together with that one.

use std::collections::HashMap;
use std::ops::Range;

use slab::Slab;

use crate::contract::{Command, Kind};
use crate::raid::members::Members;

/// Where data and parity lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    pub members: usize,
    /// Units of parity in each row: 1 or 2.
    pub parities: usize,
    pub stripe_bytes: u64,
}

/// A part of one member's unit, bytes from the unit's beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    member: usize,
    bytes: Range<u64>,
}

/// What is new in one unit of data.
#[derive(Debug)]
struct NewData {
    unit: usize,
    /// From the first new byte to the last: one command writes them.
    bytes: Range<u64>,
    /// Whether all bytes between are new, too.
    is_whole: bool,
}

/// What a write to a row does: nothing is written before all is read.
#[derive(Debug)]
struct RowPlan {
    reads: Vec<Span>,
    writes: Vec<Span>,
}

impl Rows {
    /// Units of data in each row.
    fn data_units(&self) -> usize {
        self.members - self.parities
    }

    /// Data in each row.
    pub(super) fn row_bytes(&self) -> u64 {
        self.data_units() as u64 * self.stripe_bytes
    }

    /// The member that has the first parity of a row; the second, if there is one, is on the next.
    fn parity_member(&self, row: u64) -> usize {
        self.members - 1 - (row % self.members as u64) as usize
    }

    fn data_member(&self, row: u64, unit: usize) -> usize {
        (self.parity_member(row) + self.parities + unit) % self.members
    }

    fn parity_members(&self, row: u64) -> impl Iterator<Item = usize> {
        let (first, members) = (self.parity_member(row), self.members);
        (0..self.parities).map(move |parity| (first + parity) % members)
    }

    /// The parts of a range of data that its members have, in the order of the data: member, and bytes on it.
    fn data_parts(self, data: Range<u64>) -> impl Iterator<Item = (usize, Range<u64>)> {
        let units = data.start / self.stripe_bytes..data.end.div_ceil(self.stripe_bytes);
        units.map(move |unit| {
            let (row, of_row) = (unit / self.data_units() as u64, unit % self.data_units() as u64);
            let first_bytes = unit * self.stripe_bytes;
            let from = data.start.saturating_sub(first_bytes);
            let to = (data.end - first_bytes).min(self.stripe_bytes);
            let on_member = row * self.stripe_bytes;
            (self.data_member(row, of_row as usize), on_member + from..on_member + to)
        })
    }

    /// The rows that a range of data fills.
    fn whole_rows(&self, data: &Range<u64>) -> Range<u64> {
        let first = data.start.div_ceil(self.row_bytes());
        first..(data.end / self.row_bytes()).max(first)
    }

    /// What new data in a row, in ranges apart from each other, has the members read and write.
    fn plan(&self, row: u64, new: &[Range<u64>]) -> RowPlan {
        let units: Vec<NewData> = (0..self.data_units()).filter_map(|unit| self.new_data(unit, new)).collect();
        let from = units.iter().map(|unit| unit.bytes.start).min().unwrap_or(0);
        let to = units.iter().map(|unit| unit.bytes.end).max().unwrap_or(0);
        let data = units.iter().map(|new| Span { member: self.data_member(row, new.unit), bytes: new.bytes.clone() });
        let parity = self.parity_members(row).map(|member| Span { member, bytes: from..to });
        let writes: Vec<Span> = data.chain(parity).collect();
        let left = (0..self.data_units()).filter_map(|unit| {
            let new = units.iter().find(|new| new.unit == unit);
            Some(Span { member: self.data_member(row, unit), bytes: left_of(&(from..to), new)? })
        });
        let left: Vec<Span> = left.collect();
        let reads = if left.len() < writes.len() { left } else { writes.clone() };
        RowPlan { reads, writes }
    }

    fn new_data(&self, unit: usize, new: &[Range<u64>]) -> Option<NewData> {
        let first_bytes = unit as u64 * self.stripe_bytes;
        let within = |at: u64| at.clamp(first_bytes, first_bytes + self.stripe_bytes) - first_bytes;
        let parts = || new.iter().map(|range| within(range.start)..within(range.end)).filter(|part| !part.is_empty());
        let bytes = parts().map(|part| part.start).min()?..parts().map(|part| part.end).max()?;
        let is_whole = parts().map(|part| part.end - part.start).sum::<u64>() == bytes.end - bytes.start;
        Some(NewData { unit, bytes, is_whole })
    }
}

/// What must be read of a unit to know all of `wanted` once the new data is there. It is one range, which may have new
/// data in it.
fn left_of(wanted: &Range<u64>, new: Option<&NewData>) -> Option<Range<u64>> {
    let Some(new) = new.filter(|new| new.is_whole) else { return Some(wanted.clone()) };
    match (new.bytes.start == wanted.start, new.bytes.end == wanted.end) {
        (true, true) => None,
        (true, false) => Some(new.bytes.end..wanted.end),
        (false, true) => Some(wanted.start..new.bytes.start),
        (false, false) => Some(wanted.clone()),
    }
}

/// What members have done for an array with parity.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// One part each of a read, by its job.
    Read(usize),
    /// The reads, or the writes, of a write to rows.
    Write(usize),
}

/// Something that ends with the last of its parts.
#[derive(Debug)]
struct Job<Task> {
    task: Task,
    parts: usize,
    at_ns: u64,
}

/// How far a write to rows is.
#[derive(Debug)]
enum Stage {
    /// For so many other writes to the same rows.
    Waiting(usize),
    /// What is written when all is read.
    Reading(Vec<Span>),
    Writing,
}

/// A write to rows.
#[derive(Debug)]
struct RowWrite {
    rows: Range<u64>,
    /// Of a write to part of one row the new data, bytes from the row's beginning; none where whole rows are written.
    new: Vec<Range<u64>>,
    fua: bool,
    jobs: Vec<usize>,
    stage: Stage,
    /// Writes that wait for this one.
    followers: Vec<usize>,
}

/// The commands that an array with parity works on.
#[derive(Debug)]
pub(super) struct Parity<Task> {
    pub rows: Rows,
    jobs: Slab<Job<Task>>,
    writes: Slab<RowWrite>,
    /// The last write to each row that has not ended: the next waits for it.
    last: HashMap<u64, usize>,
}

impl<Task: Copy + From<Step>> Parity<Task> {
    pub(super) fn new(rows: Rows) -> Self {
        Self { rows, jobs: Slab::new(), writes: Slab::new(), last: HashMap::new() }
    }

    /// Has the members do a command.
    pub(super) fn send(&mut self, now_ns: u64, members: &mut Members<Task>, command: &Command, task: Task) {
        match command.kind {
            Kind::Read if command.length_bytes > 0 => self.read(now_ns, members, command, task),
            Kind::Write if command.length_bytes > 0 => self.write(now_ns, members, command, task),
            Kind::Discard => self.discard(now_ns, members, command, task),
            Kind::Read | Kind::Write | Kind::Flush => members.send(now_ns, command, task),
        }
    }

    /// Where a member's part of a long read goes on behind parity, it is another command to that member.
    fn read(&mut self, now_ns: u64, members: &mut Members<Task>, command: &Command, task: Task) {
        let mut parts: Vec<Vec<Range<u64>>> = vec![Vec::new(); self.rows.members];
        for (member, bytes) in self.rows.data_parts(command.offset_bytes..command.end_bytes()) {
            match parts[member].last_mut() {
                Some(before) if before.end == bytes.start => before.end = bytes.end,
                _ => parts[member].push(bytes),
            }
        }
        let most = parts.iter().map(Vec::len).max().unwrap_or(0);
        let task = if most == 1 { task } else { Task::from(Step::Read(self.add_job(task, most))) };
        for index in 0..most {
            let each = parts.iter().enumerate().filter_map(|(member, parts)| Some((member, parts.get(index)?.clone())));
            members.send_each(now_ns, each.map(|(member, bytes)| (member, over(command, &bytes))), task);
        }
    }

    fn write(&mut self, now_ns: u64, members: &mut Members<Task>, command: &Command, task: Task) {
        let (data, row_bytes) = (command.offset_bytes..command.end_bytes(), self.rows.row_bytes());
        let job = self.add_job(task, 0);
        let whole = self.rows.whole_rows(&data);
        let (first, last) = (data.start / row_bytes, (data.end - 1) / row_bytes);
        let ends = std::iter::once(first).chain((last > first).then_some(last)).filter(|row| !whole.contains(row));
        let parts = ends.map(|row| {
            let row_start = row * row_bytes;
            let new = data.start.max(row_start) - row_start..(data.end - row_start).min(row_bytes);
            (row..row + 1, vec![new])
        });
        let parts = parts.chain((!whole.is_empty()).then(|| (whole.clone(), Vec::new())));
        for (rows, new) in parts {
            self.jobs[job].parts += 1;
            self.add_write(now_ns, members, rows, new, command.fua, job);
        }
    }

    /// As md does: rows that are not discarded as a whole keep their data and parity.
    fn discard(&mut self, now_ns: u64, members: &mut Members<Task>, command: &Command, task: Task) {
        let rows = self.rows.whole_rows(&(command.offset_bytes..command.end_bytes()));
        if rows.is_empty() {
            members.send(now_ns, &Command { length_bytes: 0, ..*command }, task);
            return;
        }
        let bytes = rows.start * self.rows.stripe_bytes..rows.end * self.rows.stripe_bytes;
        let each = (0..self.rows.members).map(|member| (member, over(command, &bytes)));
        members.send_each(now_ns, each, task);
    }

    /// Writes new data of one row, in ranges apart from each other.
    pub(super) fn write_row(
        &mut self,
        now_ns: u64,
        members: &mut Members<Task>,
        (row, new): (u64, Vec<Range<u64>>),
        fua: bool,
        task: Task,
    ) {
        let job = self.add_job(task, 1);
        self.add_write(now_ns, members, row..row + 1, new, fua, job);
    }

    fn add_job(&mut self, task: Task, parts: usize) -> usize {
        self.jobs.insert(Job { task, parts, at_ns: 0 })
    }

    fn add_write(
        &mut self,
        now_ns: u64,
        members: &mut Members<Task>,
        rows: Range<u64>,
        new: Vec<Range<u64>>,
        fua: bool,
        job: usize,
    ) {
        if self.joins_a_waiting_write(&rows, &new, fua, job) {
            return;
        }
        let write =
            RowWrite { rows: rows.clone(), new, fua, jobs: vec![job], stage: Stage::Waiting(0), followers: Vec::new() };
        let slot = self.writes.insert(write);
        let mut waits_for = 0;
        for row in rows {
            if let Some(before) = self.last.insert(row, slot) {
                let followers = &mut self.writes[before].followers;
                if followers.last() != Some(&slot) {
                    followers.push(slot);
                    waits_for += 1;
                }
            }
        }
        self.writes[slot].stage = Stage::Waiting(waits_for);
        if waits_for == 0 {
            self.start(now_ns, members, slot);
        }
    }

    /// Whether new data of a part of a row goes with what already waits for that row.
    fn joins_a_waiting_write(&mut self, rows: &Range<u64>, new: &[Range<u64>], fua: bool, job: usize) -> bool {
        let Some(write) = self.last.get(&rows.start).and_then(|slot| self.writes.get_mut(*slot)) else { return false };
        if new.is_empty() || write.new.is_empty() || !matches!(write.stage, Stage::Waiting(_)) {
            return false;
        }
        for range in new {
            add_range(&mut write.new, range.clone());
        }
        write.fua |= fua;
        write.jobs.push(job);
        true
    }

    fn start(&mut self, now_ns: u64, members: &mut Members<Task>, slot: usize) {
        let write = &mut self.writes[slot];
        if write.new.is_empty() {
            let bytes = write.rows.start * self.rows.stripe_bytes..write.rows.end * self.rows.stripe_bytes;
            let command = command(Kind::Write, &bytes, write.fua);
            write.stage = Stage::Writing;
            let each = (0..self.rows.members).map(|member| (member, command));
            members.send_each(now_ns, each, Task::from(Step::Write(slot)));
            return;
        }
        let RowPlan { reads, writes } = self.rows.plan(write.rows.start, &write.new);
        write.stage = Stage::Reading(writes);
        if reads.is_empty() {
            self.write_spans(now_ns, members, slot);
        } else {
            self.send_spans(now_ns, members, slot, Kind::Read, &reads);
        }
    }

    /// Writes what has been waiting for the reads; false if that was done before.
    fn write_spans(&mut self, now_ns: u64, members: &mut Members<Task>, slot: usize) -> bool {
        match std::mem::replace(&mut self.writes[slot].stage, Stage::Writing) {
            Stage::Reading(writes) => {
                self.send_spans(now_ns, members, slot, Kind::Write, &writes);
                true
            }
            Stage::Waiting(_) | Stage::Writing => false,
        }
    }

    fn send_spans(&self, now_ns: u64, members: &mut Members<Task>, slot: usize, kind: Kind, spans: &[Span]) {
        let RowWrite { rows, fua, .. } = &self.writes[slot];
        let on_member = rows.start * self.rows.stripe_bytes;
        let each = spans.iter().map(|span| {
            let bytes = on_member + span.bytes.start..on_member + span.bytes.end;
            (span.member, command(kind, &bytes, *fua))
        });
        members.send_each(now_ns, each, Task::from(Step::Write(slot)));
    }

    /// Goes on after a step that the members have done at `at_ns`; appends the tasks that end with it.
    pub(super) fn go_on(
        &mut self,
        now_ns: u64,
        members: &mut Members<Task>,
        (step, at_ns): (Step, u64),
        ended: &mut Vec<(Task, u64)>,
    ) {
        match step {
            Step::Read(job) => self.end_part(job, at_ns, ended),
            Step::Write(slot) => {
                if self.write_spans(now_ns, members, slot) {
                    return;
                }
                let RowWrite { rows, jobs, followers, .. } = self.writes.remove(slot);
                for row in rows {
                    if self.last.get(&row) == Some(&slot) {
                        self.last.remove(&row);
                    }
                }
                for job in jobs {
                    self.end_part(job, at_ns, ended);
                }
                for follower in followers {
                    if let Stage::Waiting(count) = &mut self.writes[follower].stage {
                        *count -= 1;
                        if *count == 0 {
                            self.start(now_ns, members, follower);
                        }
                    }
                }
            }
        }
    }

    fn end_part(&mut self, job: usize, at_ns: u64, ended: &mut Vec<(Task, u64)>) {
        let Job { task, parts, at_ns: last_ns } = &mut self.jobs[job];
        *parts -= 1;
        *last_ns = at_ns.max(*last_ns);
        if *parts == 0 {
            ended.push((*task, *last_ns));
            self.jobs.remove(job);
        }
    }
}

/// A command for a member, which gets its id later.
fn command(kind: Kind, bytes: &Range<u64>, fua: bool) -> Command {
    Command { id: 0, kind, offset_bytes: bytes.start, length_bytes: bytes.end - bytes.start, fua }
}

/// The same command for a range of a member.
fn over(given: &Command, bytes: &Range<u64>) -> Command {
    command(given.kind, bytes, given.fua)
}

/// Adds a range to ranges that are apart from each other, and stay so.
fn add_range(ranges: &mut Vec<Range<u64>>, new: Range<u64>) {
    let mut joined = new;
    ranges.retain(|range| {
        let is_apart = range.end < joined.start || joined.end < range.start;
        if !is_apart {
            joined = joined.start.min(range.start)..joined.end.max(range.end);
        }
        is_apart
    });
    ranges.push(joined);
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "new data may be one range")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STRIPE_BYTES: u64 = 16;

    fn rows(members: usize, parities: usize) -> Rows {
        Rows { members, parities, stripe_bytes: STRIPE_BYTES }
    }

    /// RAID 5 and 6 of few and more members.
    fn all_rows() -> impl Iterator<Item = Rows> {
        (3..8).map(|members| rows(members, 1)).chain((4..9).map(|members| rows(members, 2)))
    }

    #[test]
    fn parity_rotates_as_md_s_does() {
        // Of four members: unit of data, or P and Q, on each member in the first rows.
        let drawn = |rows: Rows, row: u64| {
            let mut members = vec![String::new(); rows.members];
            for unit in 0..rows.data_units() {
                members[rows.data_member(row, unit)] = (row as usize * rows.data_units() + unit).to_string();
            }
            rows.parity_members(row).zip(["P", "Q"]).for_each(|(member, name)| members[member] = name.to_owned());
            members.join(" ")
        };
        let five: Vec<String> = (0..5).map(|row| drawn(rows(4, 1), row)).collect();
        assert_eq!(five, ["0 1 2 P", "4 5 P 3", "8 P 6 7", "P 9 10 11", "12 13 14 P"]);
        let six: Vec<String> = (0..5).map(|row| drawn(rows(4, 2), row)).collect();
        assert_eq!(six, ["Q 0 1 P", "2 3 P Q", "5 P Q 4", "P Q 6 7", "Q 8 9 P"]);
    }

    #[test]
    fn every_byte_is_in_one_place_and_neighbours_use_all_members() {
        for rows in all_rows() {
            let data = 20 * rows.row_bytes();
            let parts: Vec<(usize, Range<u64>)> = rows.data_parts(0..data).collect();
            let places: std::collections::BTreeSet<_> =
                parts.iter().map(|(member, part)| (*member, part.start)).collect();
            assert_eq!((places.len() as u64, parts.len() as u64), (data / STRIPE_BYTES, data / STRIPE_BYTES));
            for neighbours in parts.windows(rows.members).filter(|_| rows.parities == 1) {
                let members: std::collections::BTreeSet<usize> = neighbours.iter().map(|(member, _)| *member).collect();
                assert_eq!(members.len(), rows.members, "{rows:?}");
            }
            let byte = |at: u64| rows.data_parts(at..at + 1).next().unwrap();
            for (at, part) in (3..data - 5).zip((3..data - 5).map(byte)) {
                let inside = rows
                    .data_parts(3..data - 5)
                    .any(|(member, bytes)| member == part.0 && bytes.start <= part.1.start && part.1.end <= bytes.end);
                assert!(inside, "{rows:?}, byte {at}");
            }
        }
    }

    #[test]
    fn a_write_reads_as_little_as_it_can() {
        let commands = |rows: Rows, new: &[Range<u64>]| {
            let RowPlan { reads, writes } = rows.plan(0, new);
            (reads.len(), writes.len())
        };
        // Old data and parity; one or two other units of data where that is less.
        assert_eq!(commands(rows(4, 1), &[2..6]), (2, 2));
        assert_eq!(commands(rows(8, 1), &[2..6]), (2, 2));
        assert_eq!(commands(rows(3, 1), &[2..6]), (1, 2));
        assert_eq!(commands(rows(8, 2), &[2..6]), (3, 3));
        assert_eq!(commands(rows(5, 2), &[2..6]), (2, 3));
        // Two of three units, whole; all three; from the middle of one to the middle of the next.
        assert_eq!(commands(rows(4, 1), &[0..2 * STRIPE_BYTES]), (1, 3));
        assert_eq!(commands(rows(4, 1), &[0..3 * STRIPE_BYTES]), (0, 4));
        assert_eq!(commands(rows(4, 1), &[8..24]), (3, 3));
        // The same bytes of all units need no reading either.
        assert_eq!(commands(rows(4, 1), &[4..8, 20..24, 36..40]), (0, 4));
        // What lies between two new ranges of a unit is read with them.
        let plan = rows(4, 1).plan(0, &[0..4, 12..16]);
        assert_eq!(plan.reads, plan.writes);
        assert_eq!(plan.writes, [Span { member: 0, bytes: 0..16 }, Span { member: 3, bytes: 0..16 }]);
    }

    #[test]
    fn ranges_stay_apart() {
        let mut ranges = Vec::new();
        for new in [4..8, 12..16, 20..24, 8..12] {
            add_range(&mut ranges, new);
        }
        ranges.sort_by_key(|range| range.start);
        assert_eq!(ranges, [4..16, 20..24]);
        add_range(&mut ranges, 0..30);
        assert_eq!(ranges, [0..30]);
    }

    /// What a controller knows of the members after the reads of a plan, unit by unit; `None` is not known.
    fn read(plan: &RowPlan, medium: &[Vec<u8>]) -> Vec<Vec<Option<u8>>> {
        let mut known: Vec<Vec<Option<u8>>> = medium.iter().map(|unit| vec![None; unit.len()]).collect();
        for Span { member, bytes } in &plan.reads {
            for at in bytes.clone() {
                known[*member][at as usize] = Some(medium[*member][at as usize]);
            }
        }
        known
    }

    proptest! {
        /// The test is a controller of one parity that knows nothing but the new data and what it has read.
        #[test]
        fn parity_fits_its_data_after_every_write(
            members in 3..8_usize, row in 0..9_u64,
            writes in prop::collection::vec(prop::collection::vec((0..112_u64, 1..40_u64), 1..4), 1..8),
        ) {
            let rows = rows(members, 1);
            let mut medium = vec![vec![0_u8; STRIPE_BYTES as usize]; members];
            for (value, ranges) in (1_u8..).zip(writes) {
                let mut new = Vec::new();
                for (start, length) in ranges {
                    let start = start.min(rows.row_bytes() - 1);
                    add_range(&mut new, start..(start + length).min(rows.row_bytes()));
                }
                let plan = rows.plan(row, &new);
                let known = read(&plan, &medium);
                let parity = rows.parity_member(row);
                let is_new = |unit: usize, at: u64| new.iter().any(|range| range.contains(&(unit as u64 * STRIPE_BYTES + at)));
                let before = medium.clone();
                for Span { member, bytes } in plan.writes.iter().filter(|span| span.member != parity) {
                    let unit = (0..rows.data_units()).find(|unit| rows.data_member(row, *unit) == *member).unwrap();
                    for at in bytes.clone() {
                        medium[*member][at as usize] =
                            if is_new(unit, at) { value } else { known[*member][at as usize].unwrap() };
                    }
                }
                for at in plan.writes.iter().find(|span| span.member == parity).unwrap().bytes.clone() {
                    let units = || (0..rows.data_units()).map(|unit| (unit, rows.data_member(row, unit)));
                    let reconstructed = units().map(|(unit, member)| {
                        if is_new(unit, at) { Some(value) } else { known[member][at as usize] }
                    });
                    let modified = units().filter(|(unit, _)| is_new(*unit, at)).map(|(_, member)| {
                        known[member][at as usize].map(|old| old ^ value)
                    });
                    let xor = |sum: u8, byte: Option<u8>| Some(sum ^ byte?);
                    let old = known[parity][at as usize];
                    let made = { reconstructed }.try_fold(0, xor).or_else(|| modified.chain([old]).try_fold(0, xor));
                    medium[parity][at as usize] = made.unwrap();
                }
                for at in 0..STRIPE_BYTES as usize {
                    prop_assert_eq!(medium.iter().fold(0, |sum, unit| sum ^ unit[at]), 0, "parity at {}", at);
                }
                for (unit, at) in (0..rows.data_units()).flat_map(|unit| (0..STRIPE_BYTES).map(move |at| (unit, at))) {
                    let member = rows.data_member(row, unit);
                    let wanted = if is_new(unit, at) { value } else { before[member][at as usize] };
                    prop_assert_eq!(medium[member][at as usize], wanted, "unit {}, byte {}", unit, at);
                }
            }
        }
    }
}
