//! The contract of what keeps the content.

use super::chunk::Slot;
use super::image::Image;

/// Why content could not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentError {
    /// The room allowed is used up, or that of the filesystem under the content file.
    Full,
    /// The range reaches past the end of the disk.
    PastEnd,
    /// The power is off.
    Off,
    /// The content file could not be read or written.
    Host,
}

impl From<std::io::Error> for ContentError {
    fn from(error: std::io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => Self::Full,
            _ => Self::Host,
        }
    }
}

/// A place for the live content and its snapshots, in chunks.
pub trait Store: Send {
    /// A chunk as it is now.
    fn chunk(&self, index: usize) -> Result<Slot, ContentError>;
    /// Writes a part of a chunk.
    fn write(&mut self, index: usize, within: usize, bytes: &[u8]) -> Result<(), ContentError>;
    /// Replaces a chunk.
    fn put(&mut self, index: usize, content: Slot) -> Result<(), ContentError>;
    /// How many chunks are no holes.
    fn live_chunks(&self) -> u64;
    /// The content of now, which does not change any more; `None` where that is not to be had without copying it.
    fn image(&self) -> Option<Image>;
    /// Makes the content that of an image, where [`Store::image`] gives one.
    fn set_image(&mut self, image: Image) -> Result<(), ContentError>;
    /// Keeps the content of now under a name.
    fn snapshot(&mut self, name: &str);
    /// Makes the content that of a snapshot; false if there is none of that name.
    fn restore(&mut self, name: &str) -> Result<bool, ContentError>;
    /// Drops a snapshot; false if there is none of that name.
    fn forget(&mut self, name: &str) -> bool;
    /// The names of the snapshots.
    fn snapshots(&self) -> Vec<String>;
    /// Makes it all zeros.
    fn clear(&mut self) -> Result<(), ContentError>;
}
