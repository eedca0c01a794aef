//! The Linux block layer in virtual time, over a drive model: what a kernel would have done that can't be run here.
//!
//! A [`source`] offers bios; a [`Layer`](layer::Layer) of some [`Kernel`](kernel::Kernel) merges, holds back, schedules
//! and gives them to a drive of `dbdyno-device`; [`run`] goes from event to event. A [`point`] is all of it from one
//! description. One thread, no clock, no I/O but that of traces: the same calls with the same seed give the same run.
//!
//! ```
//! use dbdyno_blk::kernel::{Kernel, Settings};
//! use dbdyno_blk::queue::Direction;
//! use dbdyno_blk::run;
//! use dbdyno_blk::source::{Job, Jobs};
//!
//! let drive = dbdyno_device::model("hdd-15k", 4 << 30, 1)?;
//! let settings = Settings { scheduler: Some("deadline"), nr_requests: Some(100_000), ..Settings::default() };
//! let mut layer = Kernel::named("2.6.18")?.layer(&settings, drive)?;
//! let mut load = Jobs::new(vec![Job { depth: 64, ..Job::default() }], 1)?;
//! let end_ns = run(&mut layer, &mut load, 0, 1_000_000_000);
//! assert!(layer.statistics().of(Direction::Read).requests > 100 && end_ns <= 1_000_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cannot
//! Several CPUs with queues of their own, multipath, zoned devices, discards, I/O errors, cgroups. Rules by version,
//! and what of each scheduler and of writeback throttling is left out, stand in its file.

pub mod kernel;
pub mod layer;
pub mod point;
pub mod queue;
pub mod scheduler;
mod simulation;
pub mod source;
pub mod statistics;
pub mod trace;

pub use self::simulation::run;
