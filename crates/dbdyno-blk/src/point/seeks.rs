//! How far apart the commands are that a drive gets, and how long it goes on in one direction.

use serde::Serialize;

/// Distances from the end of one command to the start of the next.
#[derive(Debug, Clone, Serialize)]
pub struct Seeks {
    /// Commands that begin where the one before ended.
    pub contiguous: u64,
    /// Commands ahead: at place k those from 2^k sectors on, and fewer than 2^(k+1).
    pub forward: Vec<u64>,
    /// Commands behind.
    pub backward: Vec<u64>,
    /// Commands one after the other without going back.
    pub ascending_runs: u64,
    #[serde(skip)]
    end_sector: Option<u64>,
}

impl Default for Seeks {
    fn default() -> Self {
        Self { contiguous: 0, forward: vec![0; 64], backward: vec![0; 64], ascending_runs: 0, end_sector: None }
    }
}

impl Seeks {
    pub(super) fn add(&mut self, start_sector: u64, end_sector: u64) {
        match self.end_sector.replace(end_sector) {
            None => self.ascending_runs = 1,
            Some(last) if last == start_sector => self.contiguous += 1,
            Some(last) if start_sector > last => self.forward[(start_sector - last).ilog2() as usize] += 1,
            Some(last) => {
                self.backward[(last - start_sector).ilog2() as usize] += 1;
                self.ascending_runs += 1;
            }
        }
    }

    /// Without the empty places at the end.
    pub(super) fn trimmed(mut self) -> Self {
        for counts in [&mut self.forward, &mut self.backward] {
            let used = counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
            counts.truncate(used);
        }
        self
    }
}
