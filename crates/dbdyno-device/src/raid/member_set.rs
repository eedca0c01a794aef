//! Which members a task waits for, and when the first task may end.

/// Above so many different sets the first member to answer counts, not the last of a set.
const SETS_MAX: usize = 64;

/// A set of members of an array, which has 64 at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MemberSet(u64);

impl MemberSet {
    pub(super) const NONE: Self = Self(0);

    pub(super) fn of(members: std::ops::Range<usize>) -> Self {
        Self(members.fold(0, |bits, member| bits | 1 << member))
    }

    pub(super) fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(super) fn remove(&mut self, member: usize) {
        self.0 &= !(1 << member);
    }

    fn members(self) -> impl Iterator<Item = usize> {
        let rest = std::iter::successors(Some(self.0), |bits| Some(bits & bits.wrapping_sub(1)));
        rest.take_while(|bits| *bits != 0).map(|bits| bits.trailing_zeros() as usize)
    }
}

/// How many tasks wait for each set of members. A task of two mirrors that one of them has answered waits for the other:
/// the array need not be polled before that may answer.
#[derive(Debug)]
pub(super) struct WaitingFor {
    /// In order of the sets; no count is 0.
    counts: Vec<(MemberSet, usize)>,
}

impl WaitingFor {
    pub(super) fn new() -> Self {
        Self { counts: Vec::new() }
    }

    pub(super) fn add(&mut self, members: MemberSet) {
        if members == MemberSet::NONE {
            return;
        }
        match self.counts.binary_search_by_key(&members, |(set, _)| *set) {
            Ok(index) => self.counts[index].1 += 1,
            Err(index) => self.counts.insert(index, (members, 1)),
        }
    }

    /// A task that waited for some now waits for others, or for none.
    pub(super) fn change(&mut self, from: MemberSet, to: MemberSet) {
        if let Ok(index) = self.counts.binary_search_by_key(&from, |(set, _)| *set) {
            self.counts[index].1 -= 1;
            if self.counts[index].1 == 0 {
                self.counts.remove(index);
            }
        }
        self.add(to);
    }

    /// The earliest time at which a task may end, by the time at which a member may answer next.
    pub(super) fn earliest(&self, due_ns: impl Fn(usize) -> Option<u64>) -> Option<u64> {
        let sets = self.counts.iter().map(|(set, _)| set.members().map(&due_ns));
        if self.counts.len() > SETS_MAX {
            return sets.flatten().flatten().min();
        }
        sets.filter_map(|dues| dues.flatten().max()).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_ends_with_its_last_member_and_the_first_such_counts() {
        let due_ns = |member: usize| [Some(50), Some(20), None, Some(70)][member];
        let mut waiting = WaitingFor::new();
        assert_eq!(waiting.earliest(due_ns), None);
        waiting.add(MemberSet::of(0..2));
        waiting.add(MemberSet::of(3..4));
        assert_eq!(waiting.earliest(due_ns), Some(50));
        let mut rest = MemberSet::of(0..2);
        rest.remove(0);
        waiting.change(MemberSet::of(0..2), rest);
        assert_eq!(waiting.earliest(due_ns), Some(20));
        waiting.change(rest, MemberSet::NONE);
        assert_eq!(waiting.earliest(due_ns), Some(70));
        waiting.change(MemberSet::of(3..4), MemberSet::NONE);
        assert_eq!((waiting.earliest(due_ns), waiting.counts.len()), (None, 0));
    }

    #[test]
    fn many_sets_are_bounded_from_below() {
        let mut waiting = WaitingFor::new();
        let sets = (0..12_usize).flat_map(|first| (first + 1..12).map(move |end| MemberSet::of(first..end)));
        sets.for_each(|set| waiting.add(set));
        assert!(waiting.counts.len() > SETS_MAX);
        assert_eq!(waiting.earliest(|member| Some(100 - member as u64)), Some(90));
    }
}
