//! Files of others, read in bounded memory: a name may stand for a device without an end, or for a file without a
//! measure.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// All bytes of a file.
///
/// # Errors
/// It can't be read, or is longer than `bytes_max` ([`ErrorKind::FileTooLarge`]).
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_all(File::open(path)?, bytes_max)
}

/// The text of a file.
///
/// # Errors
/// As [`read`]; or it is not UTF-8 ([`ErrorKind::InvalidData`]).
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let bytes = read(path, bytes_max)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8"))
}

/// All bytes that come from an open file or a stream.
///
/// # Errors
/// As [`read`].
pub fn read_all(from: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let size =
            if bytes_max < 1 << 20 { format!("{} KiB", bytes_max >> 10) } else { format!("{} MiB", bytes_max >> 20) };
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("it is longer than {size}")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_may_be() {
        assert_eq!(read_all(&*vec![7_u8; 1 << 20], 1 << 20).unwrap().len(), 1 << 20);
        let error = read_all(io::repeat(0), 2 << 20).unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::FileTooLarge, "it is longer than 2 MiB"));
        let error = read(Path::new("/dev/zero"), 4096).unwrap_err();
        assert_eq!(error.to_string(), "it is longer than 4 KiB");
        assert_eq!(read_text(Path::new("/dev/null"), 0).unwrap(), "");
    }
}
