//! The part of a load that one process offers, where several do together.

use crate::error::Error;
use crate::values::Values;

/// One of several equal parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Which, from 0.
    pub index: usize,
    /// How many there are.
    pub of: usize,
}

impl Share {
    /// All of it.
    pub const ALL: Self = Self { index: 0, of: 1 };

    /// From the flag `--share`: `2/3`.
    ///
    /// # Errors
    /// It is no such part.
    pub fn read(values: &Values<'_>) -> Result<Self, Error> {
        let Some(text) = values.text("share") else { return Ok(Self::ALL) };
        let parts = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match parts {
            Some((index, of)) if (1..=of).contains(&index) && of <= 1000 => Ok(Self { index: index - 1, of }),
            _ => Err(Error::Usage(format!("--share={text}: a part and how many there are, such as 2/3"))),
        }
    }

    /// Of `all` that are dealt out evenly, the number of the first here, and how many; the first parts have one more.
    pub fn part(self, all: usize) -> (usize, usize) {
        let (each, more) = (all / self.of, all % self.of);
        (self.index * each + self.index.min(more), each + usize::from(self.index < more))
    }

    /// As people write it.
    pub fn text(self) -> String {
        format!("{}/{}", self.index + 1, self.of)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_share_is_read() {
        let read = |text| Share::read(&Values::of(&[("share", text)])).map_err(|error| error.to_string());
        assert_eq!(read("2/3"), Ok(Share { index: 1, of: 3 }));
        assert_eq!(Share::read(&Values::of(&[])).unwrap(), Share::ALL);
        for wrong in ["0/3", "4/3", "1", "a/b", "1/0", "/"] {
            assert!(read(wrong).unwrap_err().contains("--share"), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn parts_are_the_whole(all in 0_usize..10_000, of in 1_usize..100) {
            let mut next = 0;
            for index in 0..of {
                let (first, count) = Share { index, of }.part(all);
                prop_assert_eq!(first, next);
                prop_assert!(count == all / of || count == all / of + 1);
                next += count;
            }
            prop_assert_eq!(next, all);
        }
    }
}
