//! The order in which cfq's queues get their turns, to 2.6.18.

use std::collections::VecDeque;

use crate::queue::Class;

/// Levels of priority.
const LEVELS: usize = 8;

/// Queues that have requests, except for the one that is served.
#[derive(Debug, Default)]
pub(super) struct Rotation {
    waiting: [VecDeque<u32>; LEVELS],
    /// Those of the level whose turn it is.
    current: VecDeque<u32>,
    /// Those that have requests at the drive: last of all.
    busy: VecDeque<u32>,
    /// The idle class: after the last.
    idle: VecDeque<u32>,
    /// The next level, and the last of this sequence.
    level: usize,
    last_level: usize,
    /// When each queue was served last.
    served_ns: Vec<u64>,
}

impl Rotation {
    /// Adds a queue to those that wait for their turn.
    pub fn add(&mut self, at: u32, class: Class, priority: u8, is_busy: bool) {
        if self.served_ns.len() <= at as usize {
            self.served_ns.resize(at as usize + 1, 0);
        }
        match class {
            Class::RealTime => self.current.push_front(at),
            Class::Idle => self.idle.push_back(at),
            Class::BestEffort => {
                let list = if is_busy { &mut self.busy } else { &mut self.waiting[usize::from(priority) % LEVELS] };
                let own_ns = self.served_ns[at as usize];
                let later = list.iter().rev().take_while(|other| self.served_ns[**other as usize] > own_ns).count();
                list.insert(list.len() - later, at);
            }
        }
    }

    /// Takes a queue out, wherever it waits.
    pub fn remove(&mut self, at: u32) {
        let lists = self.waiting.iter_mut().chain([&mut self.current, &mut self.busy, &mut self.idle]);
        lists.for_each(|list| list.retain(|other| *other != at));
    }

    /// A queue was served until now.
    pub fn served(&mut self, at: u32, now_ns: u64) {
        if self.served_ns.len() <= at as usize {
            self.served_ns.resize(at as usize + 1, 0);
        }
        self.served_ns[at as usize] = now_ns;
    }

    /// Has a queue that waits go before all others.
    pub fn go_first(&mut self, at: u32) {
        self.remove(at);
        self.current.push_front(at);
    }

    /// The queue whose turn it is; it no longer waits.
    pub fn next(&mut self) -> Option<u32> {
        if self.current.is_empty() {
            self.next_level();
        }
        self.current.pop_front().or_else(|| self.busy.pop_front()).or_else(|| self.idle.pop_front())
    }

    fn next_level(&mut self) {
        // The sequences that begin at 0 and end at each level pass every level at least once.
        for _ in 0..LEVELS * (LEVELS + 1) / 2 + LEVELS {
            let level = self.level;
            self.level += 1;
            if self.level > self.last_level {
                self.level = 0;
                self.last_level = (self.last_level + 1) % LEVELS;
            }
            if !self.waiting[level].is_empty() {
                std::mem::swap(&mut self.current, &mut self.waiting[level]);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_come_in_growing_sequences() {
        let mut rotation = Rotation::default();
        let mut order = Vec::new();
        for priority in 0..4 {
            rotation.add(priority, Class::BestEffort, priority as u8, false);
        }
        for _ in 0..9 {
            let at = rotation.next().unwrap();
            order.push(at);
            rotation.add(at, Class::BestEffort, at as u8, false);
        }
        assert_eq!(order, [0, 0, 1, 0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn queues_with_requests_at_the_drive_and_idle_ones_come_last() {
        let mut rotation = Rotation::default();
        rotation.add(1, Class::Idle, 4, false);
        rotation.add(2, Class::BestEffort, 4, true);
        rotation.add(3, Class::BestEffort, 4, false);
        rotation.add(4, Class::RealTime, 4, false);
        let order: Vec<_> = std::iter::from_fn(|| rotation.next()).collect();
        assert_eq!(order, [4, 3, 2, 1]);
    }
}
