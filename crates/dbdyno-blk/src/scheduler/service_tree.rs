//! Who is next in cfq from 2.6.32: queues by key, in one tree, or from 2.6.33 in one for each class and way of being served.

use std::collections::BTreeSet;

use crate::queue::Class;

/// How a queue is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    /// Asynchronous writes.
    Async,
    /// Synchronous, not worth waiting for one by one; the drive idles behind the last of them only.
    NoIdle,
    /// Synchronous, with a drive that idles for its next request.
    Sync,
}

/// Queues that have requests, except for the one that is served.
#[derive(Debug, Default)]
pub(super) struct ServiceTrees {
    /// By class, then service: key in nanoseconds, and the queue.
    trees: [[BTreeSet<(i64, u32)>; 3]; 3],
    /// The class and service that are being served, and until when.
    serving: Option<(Class, Service, u64)>,
}

const SERVICES: [Service; 3] = [Service::Async, Service::NoIdle, Service::Sync];

impl ServiceTrees {
    pub fn add(&mut self, key_ns: i64, at: u32, class: Class, service: Service) {
        self.tree(class, service).insert((key_ns, at));
    }

    pub fn remove(&mut self, key_ns: i64, at: u32, class: Class, service: Service) {
        self.tree(class, service).remove(&(key_ns, at));
    }

    /// The key of the queue that would be first, less one.
    pub fn before_first(&self, class: Class, service: Service) -> i64 {
        let tree = &self.trees[class as usize][service as usize];
        tree.first().map_or(0, |(key_ns, _)| key_ns - 1)
    }

    /// Queues that wait in a tree.
    pub fn count(&self, class: Class, service: Service) -> usize {
        self.trees[class as usize][service as usize].len()
    }

    /// The queue that is next; it no longer waits. `share_ns` is how long a service may go on, by its queues and all of the
    /// class.
    pub fn next(&mut self, now_ns: u64, share_ns: impl Fn(Service, usize, usize) -> u64) -> Option<u32> {
        let class = [Class::RealTime, Class::BestEffort, Class::Idle]
            .into_iter()
            .find(|class| self.trees[*class as usize].iter().any(|tree| !tree.is_empty()))?;
        let goes_on = self.serving.filter(|(serving, service, end_ns)| {
            *serving == class && now_ns < *end_ns && self.count(class, *service) > 0
        });
        let service = if let Some((_, service, _)) = goes_on {
            service
        } else {
            let trees = &self.trees[class as usize];
            let service = SERVICES.into_iter().filter(|service| !trees[*service as usize].is_empty());
            let service = service.min_by_key(|service| trees[*service as usize].first().map(|(key_ns, _)| *key_ns))?;
            let all = trees.iter().map(BTreeSet::len).sum();
            let end_ns = now_ns + share_ns(service, self.count(class, service), all);
            self.serving = Some((class, service, end_ns));
            service
        };
        self.tree(class, service).pop_first().map(|(_, at)| at)
    }

    fn tree(&mut self, class: Class, service: Service) -> &mut BTreeSet<(i64, u32)> {
        &mut self.trees[class as usize][service as usize]
    }
}
