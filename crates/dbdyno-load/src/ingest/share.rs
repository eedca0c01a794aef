//! How the rows of a run are split into events, and the events among the clients.

/// The events of one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// How many; `None` for as many as time allows.
    pub events: Option<u64>,
    /// Rows of each.
    pub rows: u32,
    /// Rows of the last, which may be fewer.
    pub rows_last: u32,
}

impl Share {
    /// The share of client number `client` of `clients`, of a run of `rows` in all with `rows_per_event` in each event
    /// but the last. Event number n is of client n modulo `clients`.
    pub fn of(client: u64, clients: u64, rows: Option<u64>, rows_per_event: u32) -> Self {
        let Some(rows) = rows else {
            return Self { events: None, rows: rows_per_event, rows_last: rows_per_event };
        };
        let events = rows.div_ceil(u64::from(rows_per_event));
        let mine = events / clients + u64::from(client < events % clients);
        let has_last = events > 0 && client == (events - 1) % clients;
        let rows_last = if has_last { rows_of_last(rows, rows_per_event) } else { rows_per_event };
        Self { events: Some(mine), rows: rows_per_event, rows_last }
    }

    /// Rows of event number `event` of this client, from 0; `None` after its last.
    #[inline]
    pub fn event(&self, event: u64) -> Option<u32> {
        match self.events {
            Some(events) if event >= events => None,
            Some(events) if event + 1 == events => Some(self.rows_last),
            None | Some(_) => Some(self.rows),
        }
    }
}

/// Rows of the last event of a run of `rows` rows.
pub fn rows_of_last(rows: u64, rows_per_event: u32) -> u32 {
    match rows % u64::from(rows_per_event) {
        0 => rows_per_event,
        rest => rest as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_last_event_is_smaller() {
        let shares = [0, 1, 2].map(|client| Share::of(client, 3, Some(41), 10));
        let rows = shares.map(|share| (0..3).map_while(|event| share.event(event)).collect::<Vec<_>>());
        assert_eq!(rows, [vec![10, 10], vec![10, 1], vec![10]]);
        assert_eq!(Share::of(7, 8, None, 10).event(u64::MAX), Some(10));
    }

    proptest! {
        #[test]
        fn shares_add_up(rows in 1_u64..5000, rows_per_event in 1_u32..300, clients in 1_u64..70) {
            let shares: Vec<Share> = (0..clients).map(|n| Share::of(n, clients, Some(rows), rows_per_event)).collect();
            let events: u64 = shares.iter().map(|share| share.events.unwrap()).sum();
            prop_assert_eq!(events, rows.div_ceil(rows_per_event.into()));
            let sum = |share: &Share| (0..).map_while(|event| share.event(event).map(u64::from)).sum::<u64>();
            prop_assert_eq!(shares.iter().map(sum).sum::<u64>(), rows);
            let counts = shares.iter().map(|share| share.events.unwrap());
            prop_assert!(counts.clone().max().unwrap() - counts.min().unwrap() <= 1);
        }
    }
}
