//! The one summary of a histogram, and histograms as text.
//!
//! Every program that reports times summarises them here, so a percentile of a histogram has one definition.
//! [`PERCENTILES`] lists them. A key is `p99`; hosts' times and simulated ones, whose files are older, have `p99_ns`
//! ([`SummaryNs`]).

use std::collections::BTreeMap;
use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
use hdrhistogram::{Counter, Histogram};
use serde::de::DeserializeOwned;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer as SerdeDeserializer, Serialize, Serializer};
use thiserror::Error;

/// The percentiles that every summary has: the end of their keys, and the share of values that does not exceed them.
///
/// A key is "p" and the digits of the percentage; three digits or more are tenths, so `p995` is the percentile 99.5.
pub const PERCENTILES: [(&str, f64); 5] = [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

/// What a histogram comes to. The key that holds it ends in its unit, as in `latency_ns` or `queue_ms`.
///
/// All but `count` are `None` where there is no value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary<T = u64> {
    /// How many values there are.
    pub count: u64,
    /// The least.
    pub min: Option<T>,
    /// Their mean.
    pub mean: Option<f64>,
    /// The largest.
    pub max: Option<T>,
    /// In the order of [`PERCENTILES`].
    pub percentiles: [Option<T>; PERCENTILES.len()],
}

impl<T> Default for Summary<T> {
    fn default() -> Self {
        Self { count: 0, min: None, mean: None, max: None, percentiles: std::array::from_fn(|_| None) }
    }
}

/// What is known exactly of the values of a histogram, which has each to within its bucket alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Exact {
    /// The least value.
    pub min: Option<u64>,
    /// The largest.
    pub max: Option<u64>,
    /// Their sum.
    pub sum: Option<f64>,
}

impl Summary {
    /// What a histogram comes to.
    ///
    /// A percentile is the upper end of its bucket, or the least or largest value where that end lies beyond them.
    pub fn from_histogram<C: Counter>(histogram: &Histogram<C>, exact: Exact) -> Self {
        if histogram.is_empty() {
            return Self::default();
        }
        let count = histogram.len();
        // A part of what was measured has a largest value of its own, which that of the whole must not raise.
        let max = exact.max.map_or_else(|| histogram.max(), |max| max.min(histogram.max()));
        let min = exact.min.unwrap_or_else(|| histogram.min()).min(max);
        let mean = exact.sum.map_or_else(|| histogram.mean().clamp(min as f64, max as f64), |sum| sum / count as f64);
        let percentiles = PERCENTILES.map(|(_, share)| Some(histogram.value_at_quantile(share).clamp(min, max)));
        Self { count, min: Some(min), mean: Some(mean), max: Some(max), percentiles }
    }

    /// The same of nanoseconds, in milliseconds.
    pub fn in_ms(&self) -> Summary<f64> {
        let ms = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e6);
        Summary {
            count: self.count,
            min: ms(self.min),
            mean: self.mean.map(|ns| ns / 1e6),
            max: ms(self.max),
            percentiles: self.percentiles.map(ms),
        }
    }
}

impl<T: Copy> Summary<T> {
    fn at(&self, name: &str) -> Option<T> {
        PERCENTILES.iter().zip(self.percentiles).find(|((known, _), _)| *known == name).and_then(|(_, value)| value)
    }

    /// The median.
    pub fn p50(&self) -> Option<T> {
        self.at("p50")
    }

    /// The 95th percentile.
    pub fn p95(&self) -> Option<T> {
        self.at("p95")
    }

    /// The 99th percentile.
    pub fn p99(&self) -> Option<T> {
        self.at("p99")
    }

    /// The percentile 99.9.
    pub fn p999(&self) -> Option<T> {
        self.at("p999")
    }
}

impl<T: Serialize> Serialize for Summary<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4 + PERCENTILES.len()))?;
        map.serialize_entry("count", &self.count)?;
        map.serialize_entry("min", &self.min)?;
        map.serialize_entry("mean", &self.mean)?;
        for ((name, _), value) in PERCENTILES.iter().zip(&self.percentiles) {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry("max", &self.max)?;
        map.end()
    }
}

impl<'de, T: Copy + DeserializeOwned> Deserialize<'de> for Summary<T> {
    fn deserialize<D: SerdeDeserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(bound = "T: DeserializeOwned")]
        struct Written<T> {
            count: u64,
            min: Option<T>,
            mean: Option<f64>,
            max: Option<T>,
            #[serde(flatten)]
            percentiles: BTreeMap<String, Option<T>>,
        }
        let Written { count, min, mean, max, percentiles } = Written::deserialize(deserializer)?;
        let percentiles = PERCENTILES.map(|(name, _)| percentiles.get(name).copied().flatten());
        Ok(Self { count, min, mean, max, percentiles })
    }
}

/// A summary of nanoseconds whose keys end in that unit, as in `p99_ns`; 0 where there is no value.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SummaryNs(pub Summary);

impl Serialize for SummaryNs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Summary { count, min, mean, max, percentiles } = &self.0;
        let mut map = serializer.serialize_map(Some(4 + PERCENTILES.len()))?;
        map.serialize_entry("count", count)?;
        map.serialize_entry("min_ns", &min.unwrap_or(0))?;
        map.serialize_entry("mean_ns", &mean.unwrap_or(0.0))?;
        for ((name, _), value) in PERCENTILES.iter().zip(percentiles) {
            map.serialize_entry(&format!("{name}_ns"), &value.unwrap_or(0))?;
        }
        map.serialize_entry("max_ns", &max.unwrap_or(0))?;
        map.end()
    }
}

/// Significant digits of every histogram that is exchanged: a value is right within 0.1 %.
const DIGITS: u8 = 3;

/// How a histogram begins in its second format: compressed, and not.
const COMPRESSED: u32 = 0x1C84_9314;
const PLAIN: u32 = 0x1C84_9313;
/// Bytes before the counts: how it begins, their length, an offset, digits, least and largest value, a ratio.
const HEADER_BYTES: usize = 40;
/// Most bytes of an unpacked histogram: twice those of one whose every bucket holds the largest count.
const BYTES_MAX: u64 = 1 << 20;

/// Why a text is no histogram.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum HistogramError {
    /// It is not base64.
    #[error("it is not base64")]
    Base64,
    /// It is cut off, not compressed as it should be, or its counts are damaged.
    #[error("it is cut off or damaged")]
    Damaged,
    /// It has other digits or another format.
    #[error("it is of another kind than dbdyno writes")]
    Other,
}

/// A histogram as text: base64 of `HdrHistogram`'s second format, compressed.
///
/// # Errors
/// A count is larger than the format can say.
pub fn encode(histogram: &Histogram<u64>) -> Result<String, HistogramError> {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(histogram, &mut bytes).map_err(|_| HistogramError::Damaged)?;
    Ok(STANDARD.encode(bytes))
}

/// The histogram that such a text holds. The text may come from anyone: what it takes is bounded.
///
/// # Errors
/// It is no histogram of three digits.
pub fn decode(text: &str) -> Result<Histogram<u64>, HistogramError> {
    let packed = STANDARD.decode(text).map_err(|_| HistogramError::Base64)?;
    let begins = |bytes: &[u8], with: u32| bytes.get(..4).is_some_and(|head| head == with.to_be_bytes());
    let number = |bytes: &[u8], at: usize| bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    let number = |bytes: &[u8], at: usize| number(bytes, at).map(u32::from_be_bytes);
    if !begins(&packed, COMPRESSED) {
        return Err(if packed.len() < 8 { HistogramError::Damaged } else { HistogramError::Other });
    }
    let length = number(&packed, 4).ok_or(HistogramError::Damaged)? as usize;
    let body = packed.get(8..8_usize.saturating_add(length)).ok_or(HistogramError::Damaged)?;
    let mut plain = Vec::new();
    ZlibDecoder::new(body).take(BYTES_MAX).read_to_end(&mut plain).map_err(|_| HistogramError::Damaged)?;
    if plain.len() < HEADER_BYTES {
        return Err(HistogramError::Damaged);
    }
    // More digits or another least value would take other room than the largest value says below.
    let digits = number(&plain, 12).unwrap_or_default();
    let least = plain[16..24] == 1_u64.to_be_bytes();
    if !begins(&plain, PLAIN) || digits != u32::from(DIGITS) || !least || number(&plain, 8) != Some(0) {
        return Err(HistogramError::Other);
    }
    // What the counts are said to take is set aside before they are read.
    if number(&plain, 4).is_none_or(|length| length as usize > plain.len() - HEADER_BYTES) {
        return Err(HistogramError::Damaged);
    }
    let largest = u64::from_be_bytes(plain[24..32].try_into().map_err(|_| HistogramError::Damaged)?);
    if !(2..=1 << 62).contains(&largest) {
        return Err(HistogramError::Damaged);
    }
    let mut histogram: Histogram<u64> =
        Deserializer::new().deserialize(&mut plain.as_slice()).map_err(|_| HistogramError::Damaged)?;
    histogram.auto(true);
    Ok(histogram)
}

/// How often each value was met: the upper ends of their buckets, ascending, but at most `max`, and the counts.
pub fn recorded_values(histogram: &Histogram<u64>, max: Option<u64>) -> (Vec<f64>, Vec<f64>) {
    histogram
        .iter_recorded()
        .map(|bucket| {
            let end = bucket.value_iterated_to();
            (max.map_or(end, |max| end.min(max)) as f64, bucket.count_at_value() as f64)
        })
        .unzip()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(values: &[u64]) -> Histogram<u64> {
        let mut histogram = Histogram::new(DIGITS).unwrap();
        for value in values {
            histogram.record(*value).unwrap();
        }
        histogram
    }

    #[test]
    fn a_summary_has_one_key_for_each_percentile() {
        let values: Vec<u64> = (1..=100_000).map(|value| value * 1000).collect();
        let summary = Summary::from_histogram(&histogram(&values), Exact::default());
        let json = serde_json::to_value(summary).unwrap();
        for (name, share) in PERCENTILES {
            let value = json[name].as_f64().unwrap();
            assert!((value / (share * 1e8) - 1.0).abs() < 2e-3, "{name}: {value}");
            let digits: f64 = name[1..].parse().unwrap();
            assert!((digits / 10_f64.powf((name.len() - 1) as f64) - share).abs() < 1e-12, "{name}");
        }
        assert_eq!(serde_json::from_value::<Summary>(json).unwrap(), summary);
        assert_eq!(serde_json::to_value(SummaryNs(summary)).unwrap()["p99_ns"].as_u64(), summary.p99());
    }

    #[test]
    fn of_nothing_all_but_the_count_is_unknown() {
        let json = serde_json::to_value(Summary::from_histogram(&histogram(&[]), Exact::default())).unwrap();
        assert!(json.as_object().unwrap().iter().all(|(key, value)| (key == "count") != value.is_null()), "{json}");
    }

    #[test]
    fn no_percentile_lies_beyond_what_is_known_exactly() {
        let exact = Exact { min: Some(1_000_001), max: Some(1_000_001), sum: Some(2_000_002.0) };
        let summary = Summary::from_histogram(&histogram(&[1_000_001, 1_000_001]), exact);
        assert_eq!(
            (summary.p50(), summary.p999(), summary.mean),
            (Some(1_000_001), Some(1_000_001), Some(1_000_001.0))
        );
        assert_eq!(summary.in_ms().p99(), Some(1.000_001));
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(values in prop::collection::vec(0..1_u64 << 50, 0..60)) {
            let written = histogram(&values);
            let text = encode(&written).unwrap();
            prop_assert_eq!(recorded_values(&decode(&text).unwrap(), None), recorded_values(&written, None));
            let cut = &text[..text.len() / 2 / 4 * 4];
            prop_assert!(decode(cut).is_err());
        }

        #[test]
        fn whatever_comes_is_refused_in_bounded_room(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0..60_usize) {
            let _ = decode(&STANDARD.encode(&bytes));
            let mut plain = Vec::new();
            hdrhistogram::serialization::V2Serializer::new().serialize(&histogram(&[5, 1 << 40]), &mut plain).unwrap();
            for (place, byte) in plain.iter_mut().skip(at).zip(&bytes) {
                *place = *byte;
            }
            let _ = decode(&packed(&plain));
        }
    }

    /// A text whose compressed part is these bytes.
    fn packed(plain: &[u8]) -> String {
        use std::io::Write as _;
        let mut body = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        body.write_all(plain).unwrap();
        let body = body.finish().unwrap();
        STANDARD.encode([&COMPRESSED.to_be_bytes()[..], &(body.len() as u32).to_be_bytes(), &body].concat())
    }

    #[test]
    fn what_is_no_such_histogram_is_said() {
        let mut of_two_digits = Vec::new();
        let two: Histogram<u64> = Histogram::new(2).unwrap();
        hdrhistogram::serialization::V2Serializer::new().serialize(&two, &mut of_two_digits).unwrap();
        for (text, error) in [
            ("", HistogramError::Damaged),
            ("no base64!", HistogramError::Base64),
            ("AAAAAAAAAAAAAAAAAAAA", HistogramError::Other),
            (&packed(&of_two_digits), HistogramError::Other),
            (&packed(&[0; 30]), HistogramError::Damaged),
        ] {
            assert_eq!(decode(text).unwrap_err(), error, "{text}");
        }
    }
}
