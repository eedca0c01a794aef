//! From event to event: timers, and what the drive finished.

use std::cmp::Reverse;

use super::server::{Doing, Innodb, SECOND_NS, Timer};
use crate::queue::Bio;
use crate::source::contract::{Source, Step};

impl Innodb {
    fn expire(&mut self, timer: Timer) {
        match timer {
            Timer::Second => {
                if self.running > 0 {
                    self.set_timer(SECOND_NS, Timer::Second);
                    self.flush_by_master();
                    self.plan_flushing();
                }
            }
            Timer::Computed(client) => {
                if let Some((next, cpu_ns)) = self.processors.end() {
                    self.set_timer(cpu_ns, Timer::Computed(next));
                }
                self.access(client);
            }
            Timer::Thought(client) => self.begin(client),
        }
    }

    /// All that a thread waited for is finished.
    fn go_on(&mut self, thread: u32) {
        match std::mem::replace(&mut self.doing[thread as usize], Doing::Nothing) {
            Doing::Nothing => {}
            Doing::Read(frame) => self.page_is_read(thread, frame),
            Doing::LogWrite => self.sync(thread, Doing::LogSync),
            Doing::LogSync => self.log_is_flushed(),
            Doing::LogFlushed => self.log_is_safe(thread),
            Doing::BinlogWrite => self.sync(thread, Doing::BinlogSync),
            Doing::BinlogSync => self.binlog_is_safe(thread),
            Doing::JournalWrite => self.commit_journal(),
            Doing::JournalCommit => self.journal_is_safe(),
            Doing::Doublewrite => self.sync(thread, Doing::DoublewriteSync),
            Doing::DoublewriteSync => self.write_pages(),
            Doing::PageWrite => self.sync(thread, Doing::PageSync),
            Doing::PageSync => self.pages_are_safe(),
            Doing::CheckpointWrite => self.sync(thread, Doing::CheckpointSync),
            Doing::CheckpointSync => self.checkpoint_is_safe(),
        }
    }

    fn settle(&mut self) {
        while let Some(thread) = self.over.pop_front() {
            self.go_on(thread);
        }
    }
}

impl Source for Innodb {
    fn next_due(&self) -> Option<u64> {
        if self.tasks.has_ready() {
            return Some(self.now_ns);
        }
        self.timers.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    fn step(&mut self, now_ns: u64) -> Option<Step> {
        self.now_ns = now_ns;
        while let Some(&Reverse((_, timer))) = self.timers.peek().filter(|Reverse((at_ns, _))| *at_ns <= now_ns) {
            self.timers.pop();
            self.expire(timer);
            self.settle();
        }
        self.tasks.step()
    }

    fn asleep(&mut self, process: u32) {
        self.tasks.asleep(process);
    }

    fn awake(&mut self, process: u32) {
        self.tasks.awake(process);
    }

    fn finished(&mut self, now_ns: u64, bio: &Bio) {
        self.now_ns = now_ns;
        if self.tasks.finished(bio.process) {
            self.go_on(bio.process);
            self.settle();
        }
    }
}
