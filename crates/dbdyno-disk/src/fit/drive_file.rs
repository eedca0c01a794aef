//! A drive file, each of its figures with its source; a measured one is an estimate with its interval.

use std::fmt::Write;

use serde_json::{Value, json};

/// A figure, the interval that holds it with 95 %, and of how many samples it was made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
    pub n: usize,
}

impl Estimate {
    pub fn new(value: f64, low: f64, high: f64, n: usize) -> Self {
        Self { value, low, high, n }
    }

    /// The median, and the interval between order statistics: the number of samples below the median is binomial
    /// (David and Nagaraja, Order Statistics, 2003). Of fewer than six samples no two hold it with 95 %; the interval
    /// is then all of them. `None` of no samples.
    pub fn median(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let middle = sorted.get(n / 2)?;
        let value = if n % 2 == 1 { *middle } else { f64::midpoint(sorted[n / 2 - 1], *middle) };
        let below = (n as f64 / 2.0 - 0.98 * (n as f64).sqrt()).floor().max(0.0) as usize;
        Some(Self::new(value, sorted[below.min(n / 2)], sorted[n - 1 - below.min(n / 2)], n))
    }

    /// The mean, with the interval of the normal approximation.
    pub fn mean(samples: &[f64]) -> Option<Self> {
        let n = samples.len();
        if n == 0 {
            return None;
        }
        let mean = samples.iter().sum::<f64>() / n as f64;
        let variance = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>() / (n.max(2) - 1) as f64;
        let error = 1.96 * (variance / n as f64).sqrt();
        Some(Self::new(mean, mean - error, mean + error, n))
    }

    /// The mean without the lowest and highest twentieth: of latencies in groups, the median would be in any of them.
    pub fn trimmed_mean(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let cut = sorted.len() / 20;
        Self::mean(&sorted[cut..sorted.len() - cut])
    }

    /// The same after a monotonic change of unit or of reference.
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        let (from_low, from_high) = (change(self.low), change(self.high));
        Self::new(change(self.value), from_low.min(from_high), from_low.max(from_high), self.n)
    }

    pub fn json(&self) -> Value {
        json!({"value": self.value, "low": self.low, "high": self.high, "n": self.n})
    }
}

/// Where a figure comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// Requests were timed.
    Measured(Estimate),
    /// The fitted model was run with several values; this one comes nearest to what was measured.
    Fitted(String),
    /// The device says so.
    Reported,
    /// It could not be measured, for this reason.
    Default(String),
}

/// One field of a drive file.
#[derive(Debug, Clone)]
pub struct Figure {
    pub field: String,
    /// As it stands in the file.
    pub text: String,
    pub source: Source,
}

/// A title, and sections with their figures, in the order of the file.
#[derive(Debug, Clone, Default)]
pub struct DriveFile {
    pub title: String,
    pub notes: Vec<String>,
    pub sections: Vec<(String, Vec<Figure>)>,
}

impl Figure {
    pub fn measured(field: &str, estimate: Estimate) -> Self {
        Self { field: field.into(), text: number(estimate.value), source: Source::Measured(estimate) }
    }

    pub fn whole(field: &str, estimate: Estimate) -> Self {
        Self { text: format!("{}", estimate.value.round() as u64), ..Self::measured(field, estimate) }
    }

    pub fn default(field: &str, text: &str, why: &str) -> Self {
        Self { field: field.into(), text: text.into(), source: Source::Default(why.into()) }
    }

    /// As measured, or else a default.
    pub fn or(field: &str, estimate: Option<Estimate>, text: &str, why: &str) -> Self {
        estimate.map_or_else(|| Self::default(field, text, why), |estimate| Self::measured(field, estimate))
    }

    pub fn or_whole(field: &str, estimate: Option<Estimate>, text: &str, why: &str) -> Self {
        estimate.map_or_else(|| Self::default(field, text, why), |estimate| Self::whole(field, estimate))
    }

    fn comment(&self) -> String {
        match &self.source {
            Source::Measured(estimate) => {
                let whole = !self.text.contains('.');
                let end = |value: f64| if whole { format!("{value:.0}") } else { number(value) };
                format!("measured: {} to {}, n = {}", end(estimate.low), end(estimate.high), estimate.n)
            }
            Source::Fitted(how) => format!("fitted: {how}"),
            Source::Reported => "reported by the device".into(),
            Source::Default(why) => format!("default: {why}"),
        }
    }

    fn json(&self, section: &str) -> Value {
        let mut json = json!({"section": section, "field": self.field, "text": self.text});
        let more = match &self.source {
            Source::Measured(estimate) => json!({"source": "measured", "estimate": estimate.json()}),
            Source::Fitted(how) => json!({"source": "fitted", "why": how}),
            Source::Reported => json!({"source": "reported"}),
            Source::Default(why) => json!({"source": "default", "why": why}),
        };
        if let (Some(json), Value::Object(more)) = (json.as_object_mut(), more) {
            json.extend(more);
        }
        json
    }
}

/// Six digits, with a point, as TOML wants of what is not a whole number.
pub fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0.0".into();
    }
    let decimals = (5 - value.abs().log10().floor() as i64).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        let short = text.trim_end_matches('0');
        return if short.ends_with('.') { format!("{short}0") } else { short.into() };
    }
    text + ".0"
}

impl DriveFile {
    /// The text of the file.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for note in &self.notes {
            let _ = writeln!(text, "# {note}");
        }
        let _ = writeln!(text, "title = {}", Value::from(self.title.as_str()));
        for (section, figures) in &self.sections {
            let _ = writeln!(text, "\n{section}");
            let lines: Vec<_> = figures.iter().map(|figure| format!("{} = {}", figure.field, figure.text)).collect();
            let wide = lines.iter().map(String::len).filter(|length| *length < 60).max().unwrap_or(0);
            for (line, figure) in lines.iter().zip(figures) {
                if line.contains('\n') && matches!(figure.source, Source::Measured(_)) {
                    let _ =
                        writeln!(text, "# measured: cylinders and ms, each row with the interval of its ms\n{line}");
                } else if line.contains('\n') {
                    let _ = writeln!(text, "# {}\n{line}", figure.comment());
                } else {
                    let _ = writeln!(text, "{line:wide$}  # {}", figure.comment());
                }
            }
        }
        text
    }

    pub fn figures(&self) -> Vec<Value> {
        self.sections.iter().flat_map(|(section, figures)| figures.iter().map(|figure| figure.json(section))).collect()
    }

    /// Replaces a figure that is there.
    pub fn set(&mut self, field: &str, text: &str, source: &Source) {
        let figures = self.sections.iter_mut().flat_map(|(_, figures)| figures);
        for figure in figures.filter(|figure| figure.field == field) {
            (figure.text, figure.source) = (text.to_owned(), source.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_common::random::Random;

    use super::*;

    #[test]
    fn the_interval_of_a_median_holds_it_as_often_as_it_says() {
        let mut random = Random::new(1);
        for n in [6, 20, 101] {
            let hits = (0..2000).filter(|_| {
                let samples: Vec<f64> = (0..n).map(|_| random.exponential()).collect();
                Estimate::median(&samples).is_some_and(|made| (made.low..=made.high).contains(&2.0_f64.ln()))
            });
            let share = hits.count() as f64 / 2000.0;
            assert!((0.93..=0.995).contains(&share), "{n} samples: {share}");
        }
    }

    #[test]
    fn no_samples_give_no_estimate() {
        assert_eq!(Estimate::median(&[]), None);
        assert_eq!(Estimate::mean(&[]), None);
        assert_eq!(Estimate::median(&[3.0]), Some(Estimate::new(3.0, 3.0, 3.0, 1)));
    }

    #[test]
    fn numbers_are_floats_of_six_digits() {
        for (value, text) in [
            (7200.0, "7200.0"),
            (0.1, "0.1"),
            (1.0 / 3.0, "0.333333"),
            (2e9, "2000000000.0"),
            (0.0, "0.0"),
            (-0.25, "-0.25"),
            (0.000_038_12, "0.00003812"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn each_line_says_where_it_comes_from() {
        let estimate = Estimate::new(7200.0, 7199.5, 7200.5, 90);
        let mut file = DriveFile {
            title: "a \"disk\"".into(),
            notes: vec!["note".into()],
            sections: vec![(
                "[hdd]".into(),
                vec![Figure::measured("rpm", estimate), Figure::default("heads", "4", "skews are alike")],
            )],
        };
        file.set("heads", "2", &Source::Fitted("by depth".into()));
        assert_eq!(
            file.text(),
            "# note\ntitle = \"a \\\"disk\\\"\"\n\n[hdd]\nrpm = 7200.0  # measured: 7199.5 to 7200.5, n = 90\n\
         heads = 2     # fitted: by depth\n"
        );
        assert_eq!(file.figures()[0]["estimate"]["n"], 90);
    }
}
