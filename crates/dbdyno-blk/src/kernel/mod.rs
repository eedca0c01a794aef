//! Kernels: which parts of the block layer hold in which version.

mod profile;

pub use self::profile::{Kernel, KernelError, Settings};
