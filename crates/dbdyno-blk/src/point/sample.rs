//! A sample of the commands that a drive gets, for a picture.

use dbdyno_common::random::Random;
use serde::Serialize;

/// Commands drawn with one probability, halved whenever there are too many.
#[derive(Debug, Clone)]
pub struct Sampling {
    random: Random,
    most: usize,
    /// One of 2^`halvings` is kept.
    halvings: u32,
    /// When, where, whether it is a write, and what was drawn for it.
    kept: Vec<(u64, u64, bool, u64)>,
}

/// The sample, a column each.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Sample {
    /// The share of all commands that it was drawn with.
    pub share: f64,
    /// When each went to the drive, seconds.
    pub at_s: Vec<f64>,
    /// Its first sector.
    pub sector: Vec<u64>,
    /// 1 for a write, 0 for a read.
    pub write: Vec<u8>,
}

impl Sampling {
    pub(super) fn new(seed: u64, most: usize) -> Self {
        Self { random: Random::new(!seed), most, halvings: 0, kept: Vec::new() }
    }

    pub(super) fn add(&mut self, now_ns: u64, sector: u64, is_write: bool) {
        if self.most == 0 {
            return;
        }
        let drawn = self.random.bits();
        if drawn.trailing_zeros() < self.halvings {
            return;
        }
        self.kept.push((now_ns, sector, is_write, drawn));
        if self.kept.len() > self.most {
            self.halvings += 1;
            let least = self.halvings;
            self.kept.retain(|(.., drawn)| drawn.trailing_zeros() >= least);
        }
    }

    pub(super) fn sample(&self) -> Sample {
        // Microseconds are finer than any picture.
        let at_s = self.kept.iter().map(|(at_ns, ..)| (at_ns / 1000) as f64 / 1e6).collect();
        Sample {
            share: 0.5_f64.powi(self.halvings.cast_signed()),
            at_s,
            sector: self.kept.iter().map(|(_, sector, ..)| *sector).collect(),
            write: self.kept.iter().map(|(.., is_write, _)| u8::from(*is_write)).collect(),
        }
    }
}
