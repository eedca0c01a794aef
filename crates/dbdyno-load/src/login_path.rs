//! Login paths: the file that `mysql_config_editor` writes, `.mylogin.cnf`.
//!
//! It is an option file whose lines are hidden from a glance, not from who can read it: after four unused bytes stands the key
//! (20 bytes, folded to 16 by XOR), then each line, behind its length, by AES-128 in ECB with PKCS #7 padding.

use std::env;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use aes::Aes128;
use aes::cipher::{BlockCipherDecrypt as _, KeyInit as _};

use crate::error::Error;
use crate::option_file::{Options, in_text};
use crate::output::note;

/// Groups that programs read without being told to.
const GROUPS: [&str; 3] = ["client", "mysqlslap", "dbdyno"];

const UNUSED_SIZE: usize = 4;
const KEY_SIZE: usize = 20;
const BLOCK_SIZE: usize = 16;
/// Of the file, as of option files.
const FILE_SIZE_MAX: u64 = 1 << 20;
const OTHERS_MAY: u32 = 0o077;

/// The options of the login path, which must be there if it is `named`; with `suffix` also those of its group.
///
/// # Errors
/// Names the file, what is wrong with it, and the remedy.
pub fn read(named: Option<&str>, suffix: &str) -> Result<Options, Error> {
    let path = place();
    let text = match contents(&path) {
        Ok(text) => text,
        Err(why) if named.is_some() => return Err(Error::Usage(format!("--login-path: {}: {why}", path.display()))),
        Err(_) if !path.exists() => return Ok(Options::new()),
        Err(why) => {
            note(&format!("{} is ignored: {why}", path.display()));
            return Ok(Options::new());
        }
    };
    let groups: Vec<&str> = GROUPS.into_iter().chain(named).collect();
    if let Some(name) = named
        && !has_group(&text, name, suffix)
    {
        let text = format!("--login-path={name}: {} has no such group: see mysql_config_editor print", path.display());
        return Err(Error::Usage(text));
    }
    Ok(in_text(&text, &groups, suffix))
}

fn has_group(text: &str, name: &str, suffix: &str) -> bool {
    let names = [name.to_lowercase(), format!("{name}{suffix}").to_lowercase()];
    dbdyno_common::option_file::lines(text).iter().any(|line| names.contains(&line.group))
}

fn place() -> PathBuf {
    env::var_os("MYSQL_TEST_LOGIN_FILE")
        .map_or_else(|| Path::new(&env::var_os("HOME").unwrap_or_default()).join(".mylogin.cnf"), PathBuf::from)
}

/// What the file says, or why it cannot be used.
fn contents(path: &Path) -> Result<String, String> {
    let said = |error: std::io::Error| error.to_string();
    let metadata = std::fs::metadata(path).map_err(said)?;
    if !metadata.is_file() {
        return Err("it is no regular file".into());
    }
    let file = File::open(path).map_err(said)?;
    let metadata = file.metadata().map_err(said)?;
    if metadata.mode() & OTHERS_MAY != 0 {
        return Err("others may read or write it: chmod 600 it".into());
    }
    let mut bytes = Vec::new();
    file.take(FILE_SIZE_MAX + 1).read_to_end(&mut bytes).map_err(said)?;
    if bytes.len() as u64 > FILE_SIZE_MAX {
        return Err("it is longer than 1 MiB".into());
    }
    revealed(&bytes).ok_or_else(|| "it is no file of mysql_config_editor's, or cut short: make it anew".into())
}

/// The lines in `bytes`; `None` if these are not such a file.
fn revealed(bytes: &[u8]) -> Option<String> {
    let (key, mut rest) = bytes.get(UNUSED_SIZE..)?.split_at_checked(KEY_SIZE)?;
    let mut folded = [0; BLOCK_SIZE];
    for (at, byte) in key.iter().enumerate() {
        folded[at % BLOCK_SIZE] ^= byte;
    }
    let cipher = Aes128::new(&folded.into());
    let mut text = String::new();
    while !rest.is_empty() {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let (line, behind) = behind.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
        if line.is_empty() || line.len() % BLOCK_SIZE != 0 {
            return None;
        }
        let mut clear = Vec::with_capacity(line.len());
        for block in line.as_chunks::<BLOCK_SIZE>().0 {
            let mut block = aes::Block::from(*block);
            cipher.decrypt_block(&mut block);
            clear.extend_from_slice(&block);
        }
        let padding = usize::from(*clear.last()?);
        if !(1..=BLOCK_SIZE).contains(&padding) || !clear.ends_with(&vec![padding as u8; padding]) {
            return None;
        }
        clear.truncate(clear.len() - padding);
        text.push_str(&String::from_utf8(clear).ok()?);
        rest = behind;
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aes::cipher::BlockCipherEncrypt as _;
    use proptest::prelude::*;

    /// A file as `mysql_config_editor` writes it.
    fn hidden(lines: &[&str]) -> Vec<u8> {
        let key: Vec<u8> = (1..=20).collect();
        let mut folded = [0; BLOCK_SIZE];
        key.iter().enumerate().for_each(|(at, byte)| folded[at % BLOCK_SIZE] ^= byte);
        let cipher = Aes128::new(&folded.into());
        let mut bytes = [&[0; UNUSED_SIZE], key.as_slice()].concat();
        for line in lines {
            let padding = BLOCK_SIZE - line.len() % BLOCK_SIZE;
            let padded = [line.as_bytes(), &vec![padding as u8; padding]].concat();
            bytes.extend((padded.len() as u32).to_le_bytes());
            for block in padded.as_chunks::<BLOCK_SIZE>().0 {
                let mut block = aes::Block::from(*block);
                cipher.encrypt_block(&mut block);
                bytes.extend_from_slice(&block);
            }
        }
        bytes
    }

    #[test]
    fn lines_are_revealed_and_read_as_those_of_an_option_file() {
        let bytes =
            hidden(&["[shop]\n", "user = \"me\"\n", "password = \"p#q and more than a block\"\n", "[client]\n"]);
        let text = revealed(&bytes).unwrap();
        assert_eq!(text, "[shop]\nuser = \"me\"\npassword = \"p#q and more than a block\"\n[client]\n");
        let options = in_text(&text, &["shop"], "");
        assert_eq!(options.get("password").map(String::as_str), Some("p#q and more than a block"));
        assert!(has_group(&text, "Shop", "") && !has_group(&text, "other", ""));
    }

    #[test]
    fn a_file_cut_short_or_with_another_key_is_refused() {
        let bytes = hidden(&["[client]\n", "user = me\n"]);
        for end in [0, 10, 26, bytes.len() - 1] {
            assert_eq!(revealed(&bytes[..end]), None, "{end}");
        }
        let mut other = bytes.clone();
        other[5] ^= 0xff;
        assert_eq!(revealed(&other), None);
    }

    proptest! {
        #[test]
        fn garbage_is_refused_or_text(bytes: Vec<u8>) {
            let _ = revealed(&bytes);
        }
    }
}
