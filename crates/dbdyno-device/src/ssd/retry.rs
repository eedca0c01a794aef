//! Reads of worn blocks, which come back with more errors than can be corrected and are tried again with other thresholds.

use dbdyno_common::random::Random;

use super::spec::{ReadRetrySpec, us};

#[derive(Debug)]
pub(super) struct Retries {
    spec: Option<ReadRetrySpec>,
    seed: u64,
    random: Random,
    /// Flash pages whose read was tried again.
    pub pages: u64,
}

impl Retries {
    pub(super) fn new(spec: Option<ReadRetrySpec>, seed: u64) -> Self {
        Self { spec, seed, random: Random::new(seed), pages: 0 }
    }

    pub(super) fn is_modelled(&self) -> bool {
        self.spec.is_some()
    }

    /// What a read of a flash page of this block takes beyond the `read_ns` of the first try, nanoseconds.
    pub(super) fn more_ns(&mut self, block: u32, read_ns: u64) -> u64 {
        let Some(spec) = &self.spec else { return 0 };
        // Always the same blocks, for a seed.
        let is_worn = Random::new(self.seed ^ u64::from(block)).chance(spec.worn_blocks);
        if !is_worn || !self.random.chance(spec.probability) {
            return 0;
        }
        self.pages += 1;
        u64::from(spec.retries) * spec.retry_us.map_or(read_ns, us)
    }
}
