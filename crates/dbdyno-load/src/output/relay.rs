//! The way of intervals from the threads that measure to the one that writes.
//!
//! A file or a terminal may make its writer wait: no client may be kept waiting with it.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::measure::{Interval, IntervalSink};

/// Messages on their way, at most: some seconds of a slow disk, some ten MB.
const WAITING_MAX: usize = 256;

/// What a thread sends of its run as it goes on.
enum Message {
    Interval(Box<Interval>),
    Rows {
        rows: u64,
        start_ns: u64,
        now_ns: u64,
    },
    /// It has sent so many intervals and is done.
    Over(u64),
}

/// A sender for each of `threads` threads that measure, and the receiver of all.
pub fn relay(threads: usize) -> (Vec<IntervalSender>, IntervalReceiver) {
    let (messages, received) = sync_channel(WAITING_MAX);
    let senders = (0..threads).map(|_| IntervalSender { messages: messages.clone(), sent: 0 }).collect();
    (senders, IntervalReceiver { messages: received, threads })
}

/// One thread's end; it is over when this is dropped.
pub struct IntervalSender {
    messages: SyncSender<Message>,
    sent: u64,
}

impl IntervalSender {
    fn send(&self, message: Message) -> io::Result<()> {
        self.messages.send(message).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl IntervalSink for IntervalSender {
    fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        self.sent += 1;
        self.send(Message::Interval(Box::new(interval.clone())))
    }

    fn rows(&mut self, rows: u64, start_ns: u64, now_ns: u64) -> io::Result<()> {
        self.send(Message::Rows { rows, start_ns, now_ns })
    }
}

impl Drop for IntervalSender {
    fn drop(&mut self) {
        // Without a receiver the run is over.
        let _ = self.send(Message::Over(self.sent));
    }
}

/// Receives from all threads.
pub struct IntervalReceiver {
    messages: Receiver<Message>,
    threads: usize,
}

impl IntervalReceiver {
    /// Puts the intervals of all threads together until all are over. An interval goes to `sink` when every thread has
    /// sent its part of it that was not over before.
    ///
    /// # Errors
    /// The first of the sink's; what comes after it is passed over.
    pub fn write_to(self, sink: &mut dyn IntervalSink) -> io::Result<()> {
        let mut open = BTreeMap::<u64, (Interval, usize)>::new();
        let mut over = Vec::with_capacity(self.threads);
        let mut outcome = Ok(());
        for message in self.messages {
            match message {
                Message::Rows { rows, start_ns, now_ns } => {
                    outcome = outcome.and_then(|()| sink.rows(rows, start_ns, now_ns));
                }
                Message::Interval(interval) => add(&mut open, &interval),
                Message::Over(sent) => over.push(sent),
            }
            let missing = |number: u64| self.threads - over.iter().filter(|sent| **sent <= number).count();
            while let Some(first) = open.first_entry().filter(|first| first.get().1 >= missing(*first.key())) {
                let (whole, _) = first.remove();
                outcome = outcome.and_then(|()| sink.interval(&whole));
            }
        }
        outcome
    }
}

/// Adds one thread's interval to the others' of its number.
fn add(open: &mut BTreeMap<u64, (Interval, usize)>, interval: &Interval) {
    let (sum, sent) = open.entry(interval.number).or_default();
    (sum.run, sum.number, sum.start_ns) = (interval.run, interval.number, interval.start_ns);
    sum.end_ns = sum.end_ns.max(interval.end_ns);
    sum.tally.add(&interval.tally);
    sum.gauges.add(interval.gauges);
    *sent += 1;
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Tells the test of each interval: its number, its end, and the rows counted in it.
    struct Passed(Sender<(u64, u64, u64)>);

    impl IntervalSink for Passed {
        fn interval(&mut self, interval: &Interval) -> io::Result<()> {
            self.0.send((interval.number, interval.end_ns, interval.tally.rows)).map_err(io::Error::other)
        }
    }

    fn interval(number: u64, end_ns: u64) -> Interval {
        let mut interval = Interval { number, end_ns, ..Interval::default() };
        interval.tally.rows = 1;
        interval
    }

    #[test]
    fn an_interval_waits_for_all_threads_but_for_none_that_is_over() {
        let (senders, receiver) = relay(2);
        let [mut first, mut second] = <[IntervalSender; 2]>::try_from(senders).ok().unwrap();
        let (passed, seen) = channel();
        let writer = thread::spawn(move || receiver.write_to(&mut Passed(passed)));
        let soon = || seen.recv_timeout(Duration::from_secs(5));
        first.interval(&interval(0, 10)).unwrap();
        second.interval(&interval(0, 10)).unwrap();
        assert_eq!(soon(), Ok((0, 10, 2)));
        second.interval(&interval(1, 20)).unwrap();
        second.interval(&interval(2, 30)).unwrap();
        first.interval(&interval(1, 15)).unwrap();
        assert_eq!(soon(), Ok((1, 20, 2)));
        drop(first);
        assert_eq!(soon(), Ok((2, 30, 1)));
        drop(second);
        writer.join().unwrap().unwrap();
    }
}
