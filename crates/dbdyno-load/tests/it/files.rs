//! Files that a user names and that can't be read or written: the user's mistake, told by the file's name before any
//! server is asked.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{dbdyno_load, expect, text};

struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("dbdyno-files-{test}-{}", std::process::id()));
        fs::create_dir_all(path.join("a folder")).unwrap();
        fs::write(path.join("binary"), [0xff, 0xfe, 0, 1]).unwrap();
        fs::write(path.join("file"), "").unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_file_that_cannot_be_read_or_written_is_the_users_mistake() {
    let folder = Folder::new("named");
    let bad = ["none", "a folder", "file/below"];
    let reads = |file: &Path| {
        let file = file.display();
        [
            format!("script|{file}"),
            format!("script|--file={file}"),
            format!("replay-log|{file}"),
            format!("oltp|read_only|--defaults-file={file}"),
            format!("oltp|read_only|--defaults-extra-file={file}"),
            format!("oltp|read_only|--host=127.0.0.1|--ssl-mode=verify_ca|--ssl-ca={file}"),
            format!("oltp|read_only|--json={file}/below"),
            format!("oltp|read_only|--series={file}/below"),
            format!("oltp|read_only|--hlog={file}/below"),
        ]
    };
    for name in bad {
        let file = folder.0.join(name);
        for line in reads(&file) {
            let mut command = dbdyno_load();
            let line = if name == "a folder" { line.replace("/below", "") } else { line };
            command.args(line.split('|')).current_dir(&folder.0);
            let said = text(&expect(&mut command, 2).stderr);
            assert!(said.contains(&file.display().to_string()) && !said.contains("os error"), "{line}: {said}");
            assert_eq!(said.lines().count(), 1, "{line}: {said}");
        }
    }
}

#[test]
fn a_file_of_statements_that_is_no_text_is_the_users_mistake() {
    let folder = Folder::new("binary");
    let binary = folder.0.join("binary");
    for verb in ["slap --query=", "slap --query=SELECT --create=", "script ", "replay-log "] {
        let mut command = dbdyno_load();
        command.args(format!("{verb}{}", binary.display()).split(' '));
        let said = text(&expect(&mut command, 2).stderr);
        assert!(said.contains(&binary.display().to_string()), "{verb}: {said}");
    }
}
