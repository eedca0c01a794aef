//! Division of many numbers by the same one, without a division.

/// What to divide by: `n / d` is the upper half of `(n + 1) m`, with m = (2^64 - 1) / d rounded down. That is exact for 32
/// bits, as the product falls short of `(n + 1) / d` by more than nothing and less than any `1 / d`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Divisor {
    by: u32,
    multiplier: u64,
}

impl Divisor {
    /// `by` is not 0.
    pub(super) fn new(by: u32) -> Self {
        Self { by, multiplier: u64::MAX / u64::from(by) }
    }

    pub(super) fn quotient(self, number: u32) -> u32 {
        ((u128::from(self.multiplier) * (u128::from(number) + 1)) >> 64) as u32
    }

    /// Quotient and remainder.
    pub(super) fn divide(self, number: u32) -> (u32, u32) {
        let quotient = self.quotient(number);
        (quotient, number - quotient * self.by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_divides_as_a_division_does() {
        let edges = |at: u32| [at.saturating_sub(1), at, at.saturating_add(1)];
        let numbers = (0..32).flat_map(|bit| edges(1 << bit)).chain([10, 48, 96, 1000, 3_000_000_019, u32::MAX]);
        let numbers: Vec<u32> = numbers.collect();
        for &by in numbers.iter().filter(|by| **by > 0) {
            let multiples = numbers.iter().filter_map(|times| by.checked_mul(*times)).flat_map(edges);
            for number in numbers.iter().copied().chain(multiples) {
                assert_eq!(Divisor::new(by).divide(number), (number / by, number % by), "{number} by {by}");
            }
        }
    }
}
