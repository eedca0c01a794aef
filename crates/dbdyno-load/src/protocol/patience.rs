//! How long a session waits for a server, whatever the server does meanwhile.
//!
//! Silence alone would be no bound: a server that sends a byte now and then is never silent for long. So a login is
//! bounded as a whole, and so is each reply from its first byte on. Before that byte a statement may rightly take long;
//! how long is bounded too.

use std::time::Duration;

/// The bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimits {
    /// From the call to the end of the login.
    pub login: Duration,
    /// In which nothing at all comes or goes.
    pub silence: Duration,
    /// From the first byte of a reply to its last.
    pub reply: Duration,
    /// From the first byte of a request to the last of its reply.
    pub statement: Duration,
}

/// Which bound a server passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Exceeded {
    /// That of the login.
    #[error("did not complete a login within")]
    Login,
    /// That of silence.
    #[error("did not answer for")]
    Silence,
    /// That of a reply which has begun.
    #[error("began a reply and did not end it within")]
    Reply,
    /// That of a statement.
    #[error("did not complete a statement within")]
    Statement,
}

impl Exceeded {
    /// What to do about it.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Login => "see the server's error log, or raise --connect-timeout",
            Self::Silence => "see the server's error log and processlist, or raise --stall-timeout",
            Self::Reply => "see its error log and the network, or raise --reply-timeout",
            Self::Statement => "see its processlist, or raise --statement-timeout",
        }
    }
}

/// The bounds, and where a session stands. Times are `CLOCK_MONOTONIC`, ns.
#[derive(Debug)]
pub struct Patience {
    /// The bounds.
    pub limits: TimeLimits,
    logging_in: bool,
    /// When the login or the statement began.
    start_ns: u64,
    /// When anything last came or went.
    moved_ns: u64,
    /// When the first byte of the reply came.
    reply_ns: Option<u64>,
}

impl Patience {
    /// For a login that begins now.
    pub fn new(limits: TimeLimits, now: u64) -> Self {
        Self { limits, logging_in: true, start_ns: now, moved_ns: now, reply_ns: None }
    }

    /// Whether the login is not complete yet.
    pub fn is_logging_in(&self) -> bool {
        self.logging_in
    }

    /// The server has let us in.
    pub fn logged_in(&mut self) {
        self.logging_in = false;
    }

    /// Notes that a request goes out.
    pub fn begin_request(&mut self, now: u64) {
        (self.start_ns, self.moved_ns, self.reply_ns) = (now, now, None);
    }

    /// A part of the request has gone out.
    pub fn sent(&mut self, now: u64) {
        self.moved_ns = now;
    }

    /// A part of the reply has come.
    pub fn received(&mut self, now: u64) {
        self.moved_ns = now;
        self.reply_ns.get_or_insert(now);
    }

    /// The bound that is passed, if one is, and how long it is.
    pub fn passed(&self, now: u64) -> Option<(Exceeded, Duration)> {
        let TimeLimits { login, silence, reply, statement } = self.limits;
        let over = |since: u64, limit: Duration| u128::from(now.saturating_sub(since)) >= limit.as_nanos();
        if self.logging_in {
            return over(self.start_ns, login).then_some((Exceeded::Login, login));
        }
        let begun = self.reply_ns.is_some_and(|since| over(since, reply));
        [
            (over(self.moved_ns, silence), Exceeded::Silence, silence),
            (begun, Exceeded::Reply, reply),
            (over(self.start_ns, statement), Exceeded::Statement, statement),
        ]
        .into_iter()
        .find_map(|(is_over, passed, limit)| is_over.then_some((passed, limit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    const LIMITS: TimeLimits =
        TimeLimits { login: seconds(10), silence: seconds(20), reply: seconds(40), statement: seconds(90) };

    fn at(second: u64) -> u64 {
        seconds(second).as_nanos() as u64
    }

    #[test]
    fn each_bound_ends_what_it_is_of() {
        let mut patience = Patience::new(LIMITS, 0);
        patience.received(at(9));
        assert_eq!(patience.passed(at(9)), None);
        assert_eq!(patience.passed(at(10)), Some((Exceeded::Login, seconds(10))));
        patience.logged_in();
        patience.begin_request(at(100));
        assert_eq!(patience.passed(at(119)), None);
        assert_eq!(patience.passed(at(120)), Some((Exceeded::Silence, seconds(20))));
        for second in 119..159 {
            patience.received(at(second));
            assert_eq!(patience.passed(at(second)), None);
        }
        assert_eq!(patience.passed(at(159)), Some((Exceeded::Reply, seconds(40))));
        patience.begin_request(at(200));
        patience.sent(at(289));
        assert_eq!(patience.passed(at(290)), Some((Exceeded::Statement, seconds(90))));
    }

    proptest! {
        #[test]
        fn no_way_of_sending_bytes_makes_it_wait_for_ever(pauses in prop::collection::vec(0_u64..19, 0..200)) {
            let mut patience = Patience::new(LIMITS, 0);
            patience.logged_in();
            let mut now = 0;
            for (number, pause) in pauses.iter().enumerate() {
                now += pause;
                if patience.passed(at(now)).is_some() {
                    break;
                }
                if number % 2 == 0 { patience.received(at(now)) } else { patience.sent(at(now)) }
            }
            prop_assert!(now <= 40 + 2 * 19);
            prop_assert!(patience.passed(at(91)).is_some());
        }
    }
}
