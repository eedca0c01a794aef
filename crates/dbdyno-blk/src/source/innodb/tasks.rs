//! Threads of the server with the I/O that each wants.

use std::collections::VecDeque;

use crate::queue::Bio;
use crate::source::contract::Step;

#[derive(Debug, Default)]
struct Task {
    queue: VecDeque<Bio>,
    outstanding: u32,
    /// It is in the list of those that take a step.
    listed: bool,
    asleep: bool,
    ends: bool,
}

#[derive(Debug)]
pub(super) struct Tasks {
    each: Vec<Task>,
    ready: VecDeque<u32>,
    /// Bios that the last task may have outstanding.
    depth_last: u32,
}

impl Tasks {
    /// So many threads, of which the last has `depth_last` bios outstanding at most.
    pub fn new(count: u32, depth_last: u32) -> Self {
        let each = (0..count).map(|_| Task::default()).collect();
        Self { each, ready: VecDeque::with_capacity(count as usize), depth_last }
    }

    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Has the thread that the bio names ask for it.
    pub fn send(&mut self, bio: Bio) {
        self.each[bio.process as usize].queue.push_back(bio);
        self.list(bio.process);
    }

    /// The thread ends.
    pub fn end(&mut self, at: u32) {
        self.each[at as usize].ends = true;
        self.list(at);
    }

    pub fn step(&mut self) -> Option<Step> {
        let at = *self.ready.front()?;
        let is_last = at as usize + 1 == self.each.len();
        let task = &mut self.each[at as usize];
        if !task.asleep
            && (!is_last || task.outstanding < self.depth_last)
            && let Some(bio) = task.queue.pop_front()
        {
            task.outstanding += 1;
            return Some(Step::Submit(bio));
        }
        self.ready.pop_front();
        task.listed = false;
        Some(if task.ends { Step::Exit(at) } else { Step::Unplug(at) })
    }

    pub fn asleep(&mut self, at: u32) {
        // Whoever took the last step is the first of the list.
        self.ready.pop_front();
        let task = &mut self.each[at as usize];
        (task.asleep, task.listed) = (true, false);
    }

    pub fn awake(&mut self, at: u32) {
        self.each[at as usize].asleep = false;
        self.list(at);
    }

    /// A bio is finished: whether it was the last that the thread wanted.
    pub fn finished(&mut self, at: u32) -> bool {
        let task = &mut self.each[at as usize];
        task.outstanding -= 1;
        let is_last = task.outstanding == 0 && task.queue.is_empty();
        if !task.queue.is_empty() {
            self.list(at);
        }
        is_last
    }

    fn list(&mut self, at: u32) {
        let task = &mut self.each[at as usize];
        if !task.listed {
            task.listed = true;
            self.ready.push_back(at);
        }
    }
}
