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

mod commands;
mod commits;
mod error;
mod ingest;
mod jobs;
mod kinds;
mod latencies;
mod load;
mod on_cache;
mod outcome;
mod run;
mod sample;
mod seeks;
mod series;
mod spec;
mod trace;

pub use self::error::PointError;
pub use self::kinds::KINDS;
pub use self::load::Load;
pub use self::outcome::Outcome;
pub use self::run::{Progress, simulate};
pub use self::spec::Point;
pub use self::trace::{TraceSpec, TraceSummary, summary};
