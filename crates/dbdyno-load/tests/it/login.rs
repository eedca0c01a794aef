//! Logins from option files and login paths on a real MariaDB.
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt as _, KeyInit as _};

use crate::common::{Server, dbdyno_load, expect, text};

const LINE: &str = "oltp point_select --tables=1 --table-size=10 --events=5";

/// Runs a small load by `flags` and `variables` alone and gives its output and messages.
fn run_load(flags: &[String], variables: &[(&str, &str)], code: i32) -> String {
    let mut command = dbdyno_load();
    command.args(LINE.split_whitespace()).args(flags).env_remove("USER").envs(variables.iter().copied());
    let output = expect(&mut command, code);
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn option_files_are_read_as_the_servers_own_clients_read_them() {
    let Some(server) = Server::start() else { return };
    server.sql(
        r"DROP USER IF EXISTS ''@localhost; CREATE USER bs@localhost IDENTIFIED BY 'a\\b'; CREATE USER sp@localhost IDENTIFIED BY 'x y';
          CREATE USER hash@localhost IDENTIFIED BY 'p#q'; CREATE USER app@localhost;
          GRANT ALL ON *.* TO bs@localhost; GRANT ALL ON *.* TO sp@localhost; GRANT ALL ON *.* TO hash@localhost;
          GRANT ALL ON *.* TO app@localhost",
    );
    let file = server.file("my.cnf");
    let socket = server.socket();
    for (group, lines, suffix) in [
        ("client", r"user=bs^password=a\\b", ""),
        ("client", r#"user=sp^password="x\sy""#, ""),
        ("CLIENT", "user=app#the application", ""),
        ("client_staging", "user=hash^pass='p#q' # as in the vault", "_staging"),
    ] {
        let lines = lines.replace('^', "\n");
        fs::write(&file, format!("[{group}]\n{lines}\nsocket={}\n", socket.display())).unwrap();
        let flag = format!("--defaults-file={}", file.display());
        run_load(&[flag.clone(), format!("--defaults-group-suffix={suffix}")], &[], 0);
        run_load(&[flag], &[("MYSQL_GROUP_SUFFIX", suffix)], 0);
    }
}

#[test]
fn login_paths_are_read_and_a_wrong_one_is_named() {
    let Some(server) = Server::start() else { return };
    server.sql("CREATE USER lp@localhost IDENTIFIED BY 's3 #cret'; GRANT ALL ON *.* TO lp@localhost");
    let file = server.file("mylogin.cnf");
    let lines =
        format!("[shop]\n|user = \"lp\"\n|password = \"s3 #cret\"\n|socket = \"{}\"\n", server.socket().display());
    fs::write(&file, hidden(&lines)).unwrap();
    let variables = [("MYSQL_TEST_LOGIN_FILE", file.to_str().unwrap())];
    let flags = |name: &str| ["--no-defaults".to_owned(), format!("--login-path={name}")];
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(run_load(&flags("shop"), &variables, 2).contains("chmod 600"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let text = run_load(&flags("shop"), &variables, 0);
    assert!(!text.contains("s3 #cret"), "{text}");
    assert!(run_load(&flags("other"), &variables, 2).contains("has no such group"));
    fs::write(&file, b"not such a file at all, but long enough").unwrap();
    assert!(run_load(&flags("shop"), &variables, 2).contains("mysql_config_editor did not write it"));
}

/// A file of lines, which `|` parts, as `mysql_config_editor` writes it.
fn hidden(lines: &str) -> Vec<u8> {
    let key: Vec<u8> = (1..=20).map(|number| number * 7).collect();
    let mut folded = [0; 16];
    key.iter().enumerate().for_each(|(at, byte)| folded[at % 16] ^= byte);
    let cipher = Aes128::new(&folded.into());
    let mut bytes = [&[0; 4], key.as_slice()].concat();
    for line in lines.split('|') {
        let padding = 16 - line.len() % 16;
        let padded = [line.as_bytes(), &vec![padding as u8; padding]].concat();
        bytes.extend((padded.len() as u32).to_le_bytes());
        for block in padded.as_chunks::<16>().0 {
            let mut block = aes::Block::from(*block);
            cipher.encrypt_block(&mut block);
            bytes.extend_from_slice(&block);
        }
    }
    bytes
}
