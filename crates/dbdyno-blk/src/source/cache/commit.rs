//! The journal's thread: what a commit writes.
//!
//! A commit takes what the running transaction has and leaves a new one running. It submits the pages of an ordered
//! transaction that are still changed, in the order in which they were first written to in it, waits for all of them, then
//! writes its blocks and waits, then the commit block.

use super::file::flag;
use super::journal::Phase;
use super::machine::{Machine, Next, Wait};
use super::pages::Purpose;
use crate::queue::{Bio, Direction};

/// Buffers that a commit takes at once, as many as a descriptor block of 4 KiB lists.
const BATCH: usize = 512;
/// Pages that one block of addresses has room for.
const PAGES_PER_INDIRECT: u64 = 1024;

/// What the journal's thread does next.
pub(super) fn step(now_ns: u64, machine: &mut Machine) -> Next {
    loop {
        match machine.journal.phase {
            Phase::Idle => match due_ns(machine) {
                Some(at_ns) if at_ns <= now_ns => begin(machine),
                Some(at_ns) => return Next::Wait(Wait::Until(at_ns)),
                None => return Next::Wait(Wait::Event),
            },
            Phase::Data(at) => {
                if let Some(next) = write_data(machine, at) {
                    return next;
                }
            }
            Phase::DataArrives | Phase::BlocksArrive | Phase::CommitBlockArrives if machine.journal.awaited > 0 => {
                return Next::Wait(Wait::Event);
            }
            Phase::DataArrives => machine.journal.phase = Phase::Blocks(machine.journal.blocks),
            Phase::Blocks(0) => machine.journal.phase = Phase::BlocksArrive,
            Phase::Blocks(left) => {
                machine.journal.phase = Phase::Blocks(left - 1);
                let bio = machine.journal.next_block(1);
                return Next::Submit(Bio { sync: machine.rules.marks_sync, ..bio });
            }
            Phase::BlocksArrive => {
                machine.journal.phase = Phase::CommitBlockArrives;
                let asks = machine.config.barrier;
                let bio = machine.journal.next_block(1);
                return Next::Submit(Bio { sync: true, flush: asks, fua: asks, ..bio });
            }
            Phase::CommitBlockArrives => {
                machine.journal.phase = Phase::Idle;
                machine.journal.committed += 1;
                machine.wakes.extend(0..machine.processes);
            }
        }
    }
}

/// When the running transaction is to be committed.
fn due_ns(machine: &Machine) -> Option<u64> {
    let started_ns = machine.journal.started_ns?;
    let is_requested = machine.journal.requested >= machine.journal.number;
    Some(if is_requested { 0 } else { started_ns + machine.config.commit_ms * 1_000_000 })
}

/// The running transaction becomes the one that is committed.
fn begin(machine: &mut Machine) {
    let journal = &mut machine.journal;
    journal.number += 1;
    journal.started_ns = None;
    // A descriptor, an inode for each file, and of new pages a bitmap, a group descriptor and their addresses.
    let new = std::mem::take(&mut journal.new_pages);
    let of_new = if new > 0 { 2 + new.div_ceil(PAGES_PER_INDIRECT) } else { 0 };
    journal.blocks = 1 + journal.files.len() as u32 + of_new as u32;
    for file in journal.files.drain(..) {
        machine.pages.files[file as usize].is_changed = false;
    }
    journal.phase = Phase::Data(0);
}

/// Submits the pages of the transaction in the order they came into it.
fn write_data(machine: &mut Machine, from: usize) -> Option<Next> {
    if let Some(page) = machine.journal.batch.pop() {
        let bio = machine.pages.bio(Direction::Write, Purpose::Buffer, page, 1);
        return Some(Next::Submit(Bio { sync: machine.rules.marks_sync, ..bio }));
    }
    let list = 1 - machine.journal.running();
    let own = machine.journal.committing_flag();
    let mut at = from;
    while at < machine.journal.pages[list].len() && machine.journal.batch.len() < BATCH {
        let page = machine.journal.pages[list][at];
        let flags = machine.pages.flags(page);
        at += 1;
        if flags & own == 0 {
            // It moved to the running transaction.
            continue;
        }
        if flags & flag::IN_FLIGHT != 0 {
            if flags & flag::CHANGED != 0 {
                // It changed while it was on its way: what was collected goes first.
                machine.journal.phase = Phase::Data(at - 1);
                let collected = !machine.journal.batch.is_empty();
                machine.journal.batch.reverse();
                return if collected { write_data(machine, at - 1) } else { Some(Next::Wait(Wait::Page(page))) };
            }
            machine.journal.awaited += 1;
            machine.pages.set(page, flag::AWAITED);
        } else if flags & flag::CHANGED != 0 {
            machine.pages.send(Purpose::Buffer, page, 1);
            machine.pages.set(page, flag::AWAITED);
            machine.journal.awaited += 1;
            machine.journal.batch.push(page);
        }
        machine.pages.clear(page, own);
    }
    machine.journal.batch.reverse();
    let is_end = machine.journal.batch.is_empty() && at == machine.journal.pages[list].len();
    machine.journal.phase = if is_end { Phase::DataArrives } else { Phase::Data(at) };
    if is_end {
        machine.journal.pages[list].clear();
    }
    None
}
