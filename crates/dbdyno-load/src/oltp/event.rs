//! The loads of `oltp`, how often each statement is in an event of theirs, and the events: sysbench's statements in
//! sysbench's order.

use strum::{EnumString, IntoStaticStr, VariantNames};

use super::tables::switch;
use crate::error::Error;
use crate::statements::Part;
use crate::values::Values;

/// Statements of one kind in an event, at most.
const COUNT_MAX: u32 = 100_000;

/// Values or ranges of one statement, at most: a server takes 65,535 parameters, and a range has two.
const LISTED_MAX: u32 = 32_000;

/// sysbench's name of a load is one of ours after this.
const PREFIX: &str = "oltp_";

/// Which of sysbench's scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs, reason = "their names say it")]
pub enum Load {
    ReadOnly,
    ReadWrite,
    WriteOnly,
    PointSelect,
    UpdateIndex,
    UpdateNonIndex,
    Insert,
    Delete,
    SelectRandomPoints,
    SelectRandomRanges,
}

impl Load {
    /// The load of that name, with or without sysbench's prefix.
    pub fn named(name: &str) -> Option<Self> {
        name.strip_prefix(PREFIX).unwrap_or(name).parse().ok()
    }

    /// Whether its events are transactions.
    pub fn has_transactions(self) -> bool {
        matches!(self, Self::ReadOnly | Self::ReadWrite | Self::WriteOnly)
    }
}

/// How often each statement is in an event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as the flags")]
pub struct Counts {
    pub point_selects: u32,
    pub simple_ranges: u32,
    pub sum_ranges: u32,
    pub order_ranges: u32,
    pub distinct_ranges: u32,
    pub range_selects: bool,
    pub index_updates: u32,
    pub non_index_updates: u32,
    pub delete_inserts: u32,
    pub skip_trx: bool,
    pub lists: Lists,
}

/// What a statement of `select_random_points` or `select_random_ranges` lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lists {
    /// Values of the indexed column.
    pub points: u32,
    /// Ranges of them.
    pub ranges: u32,
    /// How far a range goes from its first value.
    pub delta: u32,
}

impl Lists {
    /// Reads them.
    ///
    /// # Errors
    /// A value that is none or too great.
    fn read(values: &Values<'_>) -> Result<Self, Error> {
        Ok(Self {
            points: values.within("random-points", 10, 1..=LISTED_MAX)?,
            ranges: values.within("number-of-ranges", 10, 1..=LISTED_MAX)?,
            delta: values.within("delta", 5, 0..=COUNT_MAX)?,
        })
    }
}

impl Counts {
    /// Reads them.
    ///
    /// # Errors
    /// A value that is none or too great.
    pub fn read(values: &Values<'_>) -> Result<Self, Error> {
        let count = |name: &str, default| values.within(name, default, 0..=COUNT_MAX);
        Ok(Self {
            point_selects: count("point-selects", 10)?,
            simple_ranges: count("simple-ranges", 1)?,
            sum_ranges: count("sum-ranges", 1)?,
            order_ranges: count("order-ranges", 1)?,
            distinct_ranges: count("distinct-ranges", 1)?,
            range_selects: switch(values, "range-selects", true)?,
            index_updates: count("index-updates", 1)?,
            non_index_updates: count("non-index-updates", 1)?,
            delete_inserts: count("delete-inserts", 1)?,
            skip_trx: switch(values, "skip-trx", false)?,
            lists: Lists::read(values)?,
        })
    }
}

/// One statement of an event. Its name is that of its kind in every output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Action {
    /// BEGIN.
    Begin,
    /// A row by its id.
    PointSelect,
    /// Rows of a range of ids.
    SimpleRange,
    /// Their sum.
    SumRange,
    /// The same, sorted.
    OrderRange,
    /// The same, without repetitions.
    DistinctRange,
    /// Changes the column with the index.
    UpdateIndex,
    /// Changes a column without.
    UpdateNonIndex,
    /// Deletes a row by its id.
    Delete,
    /// Puts a row with the id of the last [`Self::Delete`].
    #[strum(serialize = "insert")]
    Reinsert,
    /// Adds a row.
    Insert,
    /// Rows by a list of values of the indexed column.
    RandomPoints,
    /// How many rows are in a list of ranges of the indexed column.
    RandomRanges,
    /// COMMIT.
    Commit,
}

impl Action {
    /// Its text: before the number of the table, and around its values. Two pieces for a statement without values;
    /// without a table, none.
    pub fn pieces(self) -> &'static [&'static str] {
        match self {
            Self::Begin | Self::Commit => &[],
            Self::PointSelect => &["SELECT c FROM sbtest", " WHERE id=", ""],
            // What follows is as long as its list: `list`.
            Self::RandomPoints => &["SELECT id, k, c, pad FROM sbtest", " WHERE k IN ("],
            Self::RandomRanges => &["SELECT count(k) FROM sbtest", " WHERE k BETWEEN "],
            Self::SimpleRange => &["SELECT c FROM sbtest", " WHERE id BETWEEN ", " AND ", ""],
            Self::SumRange => &["SELECT SUM(k) FROM sbtest", " WHERE id BETWEEN ", " AND ", ""],
            Self::OrderRange => &["SELECT c FROM sbtest", " WHERE id BETWEEN ", " AND ", " ORDER BY c"],
            Self::DistinctRange => &["SELECT DISTINCT c FROM sbtest", " WHERE id BETWEEN ", " AND ", " ORDER BY c"],
            Self::UpdateIndex => &["UPDATE sbtest", " SET k=k+1 WHERE id=", ""],
            Self::UpdateNonIndex => &["UPDATE sbtest", " SET c='", "' WHERE id=", ""],
            Self::Delete => &["DELETE FROM sbtest", " WHERE id=", ""],
            Self::Reinsert | Self::Insert => {
                &["INSERT INTO sbtest", " (id, k, c, pad) VALUES (", ", ", ", '", "', '", "')"]
            }
        }
    }

    /// Its text on table `number` with a `?` for each value.
    pub fn to_prepare(self, number: u32, lists: Lists) -> String {
        let mut text = String::new();
        if self.is_list() {
            let values = vec!["?"; self.values(lists)];
            self.list(&number.to_string(), values.into_iter(), &mut text);
            return text;
        }
        for (place, piece) in self.pieces().iter().enumerate() {
            match place {
                0 => {}
                1 => text.push_str(&number.to_string()),
                _ => text.push('?'),
            }
            text.push_str(piece.trim_matches('\''));
        }
        text
    }

    /// Whether it is as long as a list.
    pub fn is_list(self) -> bool {
        matches!(self, Self::RandomPoints | Self::RandomRanges)
    }

    /// Values that its list takes.
    pub fn values(self, lists: Lists) -> usize {
        (if self == Self::RandomPoints { lists.points } else { 2 * lists.ranges }) as usize
    }

    /// Appends the text of a statement with a list of these values, on the table of that number.
    pub fn list(self, table: &str, values: impl Iterator<Item = impl AsRef<str>>, text: &mut String) {
        let (between, end) =
            if self == Self::RandomPoints { ([", "; 2], ")") } else { ([" AND ", " OR k BETWEEN "], "") };
        let [head, where_] = [self.pieces()[0], self.pieces()[1]];
        text.extend([head, table, where_]);
        for (at, value) in values.enumerate() {
            if at > 0 {
                text.push_str(between[(at + 1) % 2]);
            }
            text.push_str(value.as_ref());
        }
        text.push_str(end);
    }

    /// Whether the server is sent its text even where statements are prepared, as sysbench does.
    pub fn is_always_text(self) -> bool {
        self == Self::Insert
    }
}

/// A statement in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// What is sent.
    pub action: Action,
    /// The first of a group, which draws the table for all of it.
    pub draws_table: bool,
    /// Index of its kind among those of the load.
    pub kind: u16,
    /// Whether the event ends with it.
    pub part: Part,
}

/// The statements of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// In their order; at least one.
    pub steps: Vec<Step>,
    /// Their kinds, in the order in which they come first.
    pub kinds: Vec<&'static str>,
}

impl Event {
    /// The event of `load`; `None` if `counts` leave nothing to send.
    pub fn new(load: Load, counts: &Counts) -> Option<Self> {
        let groups = groups(load, counts);
        let (mut steps, mut kinds): (Vec<Step>, Vec<&'static str>) = (Vec::new(), Vec::new());
        let mut index = |action: Action| {
            let kind = action.into();
            let known = kinds.iter().position(|other| *other == kind);
            known.unwrap_or_else(|| {
                kinds.push(kind);
                kinds.len() - 1
            }) as u16
        };
        for (group, count) in &groups {
            let actions = (0..*count).flat_map(|_| group.iter().copied());
            steps.extend(actions.enumerate().map(|(place, action)| Step {
                action,
                draws_table: place == 0 && !action.pieces().is_empty(),
                kind: index(action),
                part: Part::Inner,
            }));
        }
        steps.last_mut()?.part = Part::Last;
        Some(Self { steps, kinds })
    }

    /// The different statements that take a table, in their order.
    pub fn actions(&self) -> Vec<Action> {
        let mut actions: Vec<Action> = Vec::new();
        for step in &self.steps {
            if !step.action.pieces().is_empty() && !actions.contains(&step.action) {
                actions.push(step.action);
            }
        }
        actions
    }
}

/// Statements that are sent together, on one table, and how often.
type Group = (&'static [Action], u32);

fn groups(load: Load, counts: &Counts) -> Vec<Group> {
    let ranges = u32::from(counts.range_selects);
    let reads = [
        (&[Action::PointSelect][..], counts.point_selects),
        (&[Action::SimpleRange], counts.simple_ranges * ranges),
        (&[Action::SumRange], counts.sum_ranges * ranges),
        (&[Action::OrderRange], counts.order_ranges * ranges),
        (&[Action::DistinctRange], counts.distinct_ranges * ranges),
    ];
    let update_index = (&[Action::UpdateIndex][..], counts.index_updates);
    let update_non_index = (&[Action::UpdateNonIndex][..], counts.non_index_updates);
    let writes = [update_index, update_non_index, (&[Action::Delete, Action::Reinsert], counts.delete_inserts)];
    let mut groups: Vec<Group> = match load {
        Load::ReadOnly => reads.to_vec(),
        Load::ReadWrite => [&reads[..], &writes].concat(),
        Load::WriteOnly => writes.to_vec(),
        // One each, whatever the counts of the loads above; sysbench too.
        Load::PointSelect => vec![(&[Action::PointSelect], 1)],
        Load::SelectRandomPoints => vec![(&[Action::RandomPoints], 1)],
        Load::SelectRandomRanges => vec![(&[Action::RandomRanges], 1)],
        Load::Delete => vec![(&[Action::Delete], 1)],
        Load::Insert => vec![(&[Action::Insert], 1)],
        Load::UpdateIndex => vec![update_index],
        Load::UpdateNonIndex => vec![update_non_index],
    };
    if load.has_transactions() && !counts.skip_trx {
        groups.insert(0, (&[Action::Begin], 1));
        groups.push((&[Action::Commit], 1));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Values;

    fn counts(flags: &[(&'static str, &'static str)]) -> Counts {
        Counts::read(&Values::of(flags)).unwrap()
    }

    fn list_kinds(load: Load, flags: &[(&'static str, &'static str)]) -> String {
        let event = Event::new(load, &counts(flags)).unwrap();
        assert!(event.steps.iter().rev().skip(1).all(|step| step.part == Part::Inner));
        assert_eq!(event.steps.last().unwrap().part, Part::Last);
        let kinds: Vec<&str> = event.steps.iter().map(|step| event.kinds[usize::from(step.kind)]).collect();
        kinds.join(" ")
    }

    #[test]
    fn events_are_sysbenchs() {
        let points = ["point_select"; 10].join(" ");
        let ranges = "simple_range sum_range order_range distinct_range";
        let writes = "update_index update_non_index delete insert";
        assert_eq!(list_kinds(Load::ReadOnly, &[]), format!("begin {points} {ranges} commit"));
        assert_eq!(list_kinds(Load::ReadWrite, &[]), format!("begin {points} {ranges} {writes} commit"));
        assert_eq!(list_kinds(Load::WriteOnly, &[]), format!("begin {writes} commit"));
        let single = [
            (Load::PointSelect, "point_select"),
            (Load::UpdateIndex, "update_index"),
            (Load::UpdateNonIndex, "update_non_index"),
            (Load::Insert, "insert"),
            (Load::Delete, "delete"),
            (Load::SelectRandomPoints, "random_points"),
            (Load::SelectRandomRanges, "random_ranges"),
        ];
        for (load, kind) in single {
            assert_eq!(list_kinds(load, &[]), kind);
        }
    }

    #[test]
    fn counts_and_switches_shape_the_event() {
        let flags = [("range-selects", "off"), ("point-selects", "2"), ("delete-inserts", "2"), ("skip-trx", "on")];
        let expected = "point_select point_select update_index update_non_index delete insert delete insert";
        assert_eq!(list_kinds(Load::ReadWrite, &flags), expected);
        assert_eq!(list_kinds(Load::PointSelect, &[("point-selects", "7")]), "point_select");
        assert_eq!(list_kinds(Load::UpdateIndex, &[("index-updates", "2")]), "update_index update_index");
        let nothing = [("range-selects", "off"), ("point-selects", "0"), ("skip-trx", "on")];
        assert_eq!(Event::new(Load::ReadOnly, &counts(&nothing)), None);
    }

    #[test]
    fn a_group_draws_its_table_once() {
        let event = Event::new(Load::WriteOnly, &counts(&[("delete-inserts", "2"), ("index-updates", "3")])).unwrap();
        let draws: Vec<bool> = event.steps.iter().map(|step| step.draws_table).collect();
        assert_eq!(draws, [false, true, false, false, true, true, false, false, false, false]);
    }

    #[test]
    fn statements_are_prepared_without_quotes() {
        let cases = [
            (Action::PointSelect, "SELECT c FROM sbtest7 WHERE id=?"),
            (Action::SumRange, "SELECT SUM(k) FROM sbtest7 WHERE id BETWEEN ? AND ?"),
            (Action::DistinctRange, "SELECT DISTINCT c FROM sbtest7 WHERE id BETWEEN ? AND ? ORDER BY c"),
            (Action::UpdateNonIndex, "UPDATE sbtest7 SET c=? WHERE id=?"),
            (Action::Reinsert, "INSERT INTO sbtest7 (id, k, c, pad) VALUES (?, ?, ?, ?)"),
            (Action::RandomPoints, "SELECT id, k, c, pad FROM sbtest7 WHERE k IN (?, ?, ?)"),
            (Action::RandomRanges, "SELECT count(k) FROM sbtest7 WHERE k BETWEEN ? AND ? OR k BETWEEN ? AND ?"),
        ];
        for (action, text) in cases {
            assert_eq!(action.to_prepare(7, Lists { points: 3, ranges: 2, delta: 5 }), text);
        }
    }
}
