//! Device models: how a hard disk or a solid-state drive spends its time, as pure code.
//!
//! A model reads no clock, does no I/O and starts no thread. Time is an argument, so the same model serves the
//! emulated disk (real time) and the simulator (virtual time), and the same calls with the same seed give the same
//! completions.
//!
//! A drive is a data file in `drives/`, each number with its source; a *kind* of drive is one module here.
//! [`catalogue`] lists the drives, [`model`] makes one:
//!
//! ```
//! use dbdyno_device::{Command, Kind, model};
//!
//! let mut disk = model("hdd-7200", 4 << 30, 1)?;
//! disk.submit(0, Command { id: 7, kind: Kind::Read, offset_bytes: 1 << 30, length_bytes: 4096, fua: false });
//! let mut finished = Vec::new();
//! while let Some(due_ns) = disk.next_due() {
//!     disk.poll(due_ns, &mut finished);
//! }
//! assert_eq!(finished[0].id, 7);
//! # Ok::<(), dbdyno_device::ModelError>(())
//! ```
//!
//! # Cannot
//! Wear, and arrays that lack a member. A disk smaller than the drive is the beginning of the drive, as a first partition
//! would be: on a hard disk that is its fast outer edge, and seeks inside it are short. Both are how a real drive
//! behaves; a figure for the whole drive needs a disk of the whole drive's size, or one stretched over it:
//! `hdd-15k(span=whole)`.

mod cloud;
mod contract;
mod drive;
mod hdd;
mod ideal;
mod info;
mod raid;
mod ssd;
mod write_cache;

pub use self::drive::{catalogue, drive, model, model_of_text, model_with};
pub use contract::{Command, Completion, DeviceModel, FastCache, Kind, WriteCache};
pub use info::{DriveInfo, DriveState, FastCacheSize, ModelError, ModelOptions, Published};
