//! What people and programs read of a replay beside what is read of every load.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::names::put_digits;
use crate::output::report::summary;
use crate::output::result::RunResult;

use super::log::Form;
use super::not_sent::Met;
use super::plan::Replay;

impl Replay {
    /// Which log it is, in words.
    fn form(&self) -> &'static str {
        match self.log.form {
            Form::Slow => "slow query log",
            Form::General => "general query log",
        }
    }

    /// How long the statements that are sent took to come, seconds.
    fn seconds(&self) -> f64 {
        let starts = self.lanes.iter().flat_map(|lane| &lane.sent);
        let last = starts.map(|sent| self.log.statements[sent.number as usize].start_us).max();
        last.map_or(0.0, |last| (last - self.first_us) as f64 / 1e6)
    }

    /// What is replayed, and what is not.
    pub fn json(&self) -> Value {
        let mut sha256 = String::new();
        put_digits(&Sha256::digest(self.log.bytes()), &mut sha256);
        let odd = self.odd();
        let mut lines: Map<String, Value> =
            self.not_sent.lines().map(|(key, lines)| (key.to_owned(), json!(lines))).collect();
        lines.extend(
            odd.iter().filter(|odd| odd.2.count > 0).map(|(key, _, met)| ((*key).to_owned(), json!(met.lines))),
        );
        let mut all = json!({
            "form": self.form(),
            "sha256": sha256,
            "size_bytes": self.log.bytes().len(),
            "seconds": self.seconds(),
            "has_whole_seconds": self.log.has_whole_seconds,
            "entries": self.statements() + self.not_sent.total(),
            "statements": self.statements(),
            "sessions": self.sessions,
            "not_sent": self.not_sent.json(),
            "out_of_order": self.log.out_of_order,
            "lines": lines,
        });
        for (key, _, met) in odd {
            all[key] = json!(met.count);
        }
        all
    }

    /// What was not taken as it stands: its key in JSON, its words, and how often and where it was met.
    fn odd(&self) -> [(&'static str, &'static str, &Met); 5] {
        let odd = &self.log.odd;
        [
            ("stray_lines", "lines of no entry", &odd.stray),
            ("unknown_times", "times not known", &odd.times),
            ("without_time", "before the first time", &odd.untimed),
            ("impossible_durations", "durations taken as 0", &odd.durations),
            ("clock_set_back", "clock set back", &self.log.set_back),
        ]
    }

    /// Statements that are sent.
    pub fn statements(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.sent.len() as u64).sum()
    }

    /// The report on runs.
    pub fn text(&self, runs: &[RunResult]) -> String {
        let mut text: String = runs.iter().map(|run| summary(run).trim_end().to_owned() + "\n").collect();
        // Writing to a string cannot fail.
        let mut line = |label: &str, value: String| {
            let _ = writeln!(text, "    {label:<22} {value}");
        };
        let times = if self.log.has_whole_seconds { ", times of whole seconds" } else { "" };
        let (statements, sessions, seconds) = (self.statements(), self.sessions, self.seconds());
        line(
            "log",
            format!("{}{times}: {statements} statements of {sessions} sessions in {seconds:.1} s", self.form()),
        );
        line("not sent", self.not_sent.in_words());
        if self.log.out_of_order > 0 {
            line("times out of order", format!("{}: taken from the entry before", self.log.out_of_order));
        }
        for (_, words, met) in self.odd() {
            if met.count > 0 {
                line(words, format!("{}, in {}", met.count, met.in_words()));
            }
        }
        text.push('\n');
        text
    }
}
