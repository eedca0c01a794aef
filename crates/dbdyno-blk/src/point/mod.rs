//! One simulated point: a load on a drive below a kernel's block layer, from its description to what came of it.
//!
//! ```
//! use dbdyno_blk::point::{Point, simulate};
//!
//! let point = Point::parse(
//!     r#"{"device": "hdd-15k", "size_bytes": 4294967296, "kernel": "2.6.18", "scheduler": "deadline", "duration_s": 1,
//!         "load": {"kind": "jobs", "jobs": [{"pattern": "random", "depth": 32}]}}"#,
//! )?;
//! let outcome = simulate(&point, &mut |_| true)?;
//! assert!(outcome.columns.reads_per_s > 100.0);
//! # Ok::<(), dbdyno_blk::point::PointError>(())
//! ```

mod load;
mod run;
mod spec;
mod trace;

pub use self::load::Load;
pub use self::run::{KINDS, Progress, simulate};
pub use self::spec::{Point, PointError};
pub use self::trace::{TraceSpec, TraceSummary, summary};
pub use dbdyno_common::results::Outcome;
