//! Whether a drive takes several commands at once, as cfq finds out from 2.6.32 on.

/// Commands at once that show it.
const QUEUEING: usize = 5;
/// Looks at a drive that could have had as many, after which it counts as known.
const LOOKS: u32 = 50;

/// What was seen of a drive. It counts as one that queues until it is known better: only so can it show it.
#[derive(Debug, Default)]
pub(super) struct DriveDepth {
    most: usize,
    looks: u32,
}

impl DriveDepth {
    pub fn queues(&self) -> bool {
        self.looks < LOOKS || self.most >= QUEUEING
    }

    pub fn started(&mut self, in_driver: usize) {
        self.most = self.most.max(in_driver);
    }

    /// A request is finished while so many wait; `own` are the waiting ones and those at the drive of a queue that has the
    /// drive for itself.
    pub fn completed(&mut self, in_driver: usize, waiting: usize, own: Option<usize>) {
        let holds_back = own.is_some_and(|own| own < QUEUEING) && in_driver < QUEUEING;
        self.looks += u32::from(waiting > QUEUEING && !holds_back);
    }
}
