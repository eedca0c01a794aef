//! How long a seek takes: a curve of two pieces, or a table by distance.
//!
//! The curve: t = a + b sqrt(d) for d < D cylinders, else c + e d (Ruemmler and Wilkes, "An introduction to disk drive
//! modeling", IEEE Computer 27(3), 1994), the settle of a read included.

/// The short form; milliseconds, and cylinders.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_field_names, reason = "they are fields of the drive file")]
pub(super) struct SeekCurve {
    pub seek_short_cylinders: u64,
    pub seek_a_ms: f64,
    pub seek_b_ms: f64,
    pub seek_c_ms: f64,
    pub seek_e_ms: f64,
}

#[derive(Debug)]
pub(super) enum Seek {
    Curve {
        short_cylinders: f64,
        short_ns: (f64, f64),
        long_ns: (f64, f64),
        /// What the shortest of the long seeks takes: a curve's two pieces need not meet, so a seek of the first piece
        /// may take longer than a farther one.
        bend_ns: f64,
    },
    /// In order of distance; between two points the time is linear.
    Table(Vec<Point>),
}

#[derive(Debug)]
pub(super) struct Point {
    cylinders: f64,
    ns: f64,
    /// The least time of this distance and of all beyond.
    least_ns: f64,
}

impl Seek {
    /// By the curve, or else by the table.
    pub(super) fn new(curve: Option<SeekCurve>, table: &[(u64, f64)]) -> Self {
        match curve {
            Some(curve) => Self::Curve {
                short_cylinders: curve.seek_short_cylinders as f64,
                short_ns: (curve.seek_a_ms * 1e6, curve.seek_b_ms * 1e6),
                long_ns: (curve.seek_c_ms * 1e6, curve.seek_e_ms * 1e6),
                bend_ns: (curve.seek_c_ms + curve.seek_e_ms * curve.seek_short_cylinders as f64) * 1e6,
            },
            None => Self::Table(points(table)),
        }
    }

    /// What a seek over this many of the drive's cylinders takes, more than 0.
    pub(super) fn ns(&self, cylinders: f64) -> f64 {
        match self {
            Self::Curve { short_cylinders, short_ns, long_ns, .. } => {
                if cylinders < *short_cylinders {
                    short_ns.0 + short_ns.1 * cylinders.sqrt()
                } else {
                    long_ns.0 + long_ns.1 * cylinders
                }
            }
            Self::Table(points) => {
                let next = points.partition_point(|point| point.cylinders < cylinders);
                match (next.checked_sub(1).and_then(|before| points.get(before)), points.get(next)) {
                    (Some(before), Some(after)) => {
                        let share = (cylinders - before.cylinders) / (after.cylinders - before.cylinders);
                        before.ns + (after.ns - before.ns) * share
                    }
                    (Some(only), None) | (None, Some(only)) => only.ns,
                    (None, None) => 0.0,
                }
            }
        }
    }

    /// What no seek over this distance, which takes `seek_ns`, or over a longer one goes below.
    pub(super) fn least_beyond_ns(&self, cylinders: f64, seek_ns: f64) -> f64 {
        match self {
            Self::Curve { short_cylinders, bend_ns, .. } if cylinders < *short_cylinders => seek_ns.min(*bend_ns),
            Self::Curve { .. } => seek_ns,
            Self::Table(points) => {
                let next = points.partition_point(|point| point.cylinders < cylinders);
                points.get(next).map_or(seek_ns, |point| seek_ns.min(point.least_ns))
            }
        }
    }
}

fn points(table: &[(u64, f64)]) -> Vec<Point> {
    let mut least_ns = f64::INFINITY;
    let mut made: Vec<Point> = Vec::with_capacity(table.len());
    for (cylinders, ms) in table.iter().rev() {
        let ns = ms * 1e6;
        least_ns = ns.min(least_ns);
        made.push(Point { cylinders: *cylinders as f64, ns, least_ns });
    }
    made.reverse();
    made
}

/// Refuses a table that is not in order of its distances.
pub(super) fn check_table(table: &[(u64, f64)]) -> Result<(), String> {
    if table.len() > 100_000 {
        return Err(format!("seek_table has {} rows; at most 100000 are possible", table.len()));
    }
    let mut before = 0;
    for (cylinders, ms) in table {
        if *cylinders <= before {
            return Err(format!("seek_table has a distance of {cylinders} after one of {before}; they must rise"));
        }
        if !(0.0..=1e6).contains(ms) {
            return Err(format!("seek_table has {ms} ms for {cylinders} cylinders; give 0 to 1000000"));
        }
        before = *cylinders;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_linear_between_its_points_and_constant_beyond() {
        let seek = Seek::Table(points(&[(1, 1.0), (2, 3.0), (6, 2.0), (10, 4.0)]));
        for (cylinders, ms) in [(0.5, 1.0), (1.0, 1.0), (1.5, 2.0), (2.0, 3.0), (4.0, 2.5), (8.0, 3.0), (20.0, 4.0)] {
            assert_eq!(seek.ns(cylinders) as u64, (ms * 1e6) as u64, "{cylinders} cylinders");
        }
        // The dip at 6 cylinders bounds what lies before it.
        assert_eq!(seek.least_beyond_ns(2.0, 3e6) as u64, 2_000_000);
        assert_eq!(seek.least_beyond_ns(8.0, 3e6) as u64, 3_000_000);
    }

    #[test]
    fn distances_must_rise() {
        assert!(check_table(&[(1, 1.0), (1, 2.0)]).unwrap_err().starts_with("seek_table"));
        assert!(check_table(&[(0, 1.0)]).is_err() && check_table(&[(1, -1.0)]).is_err());
        assert!(check_table(&[(1, 1.0), (7, 0.5)]).is_ok());
    }
}
