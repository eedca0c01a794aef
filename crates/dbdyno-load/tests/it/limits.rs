//! Servers that say too much, too slowly or nothing at all, that mean no good, or are none: each ends in one clean
//! sentence, in time, and nothing is given away.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use dbdyno_load::endpoint::Endpoint;
use dbdyno_load::protocol::packet;

use crate::common::client::{connect, over_tcp, refusal, secured, user};
use crate::common::fake_server::{GREETING, OK, Peer, server, server_of_all};
use crate::common::{ended, json, slap};

/// The start of a packet of 16 MB that is a row, and of one that is a definition.
const ENDLESS: &[u8] = b"\xf0\xff\xff\x01\x05def";

/// What may not reach a terminal: a red colour, a title, an override, an isolate, what has no width, a separator.
const NASTY: &str = "\x1b[31mred\x07\u{9b}2J \u{202e}desrever\u{2066}\u{200b}\u{feff}\u{2028}\r\nend";

/// A server that lets everybody in, answers what is said around the load, and leaves the load to `answer`.
fn serving(answer: impl Fn(&mut Peer) + Send + Sync + 'static) -> u16 {
    server_of_all(move |peer| {
        peer.let_in();
        while let Some(request) = peer.hear() {
            if request.windows(4).any(|word| word == b"LOAD") { answer(peer) } else { peer.say(1, OK) }
        }
    })
}

/// The same, but `answer` is for every statement.
fn answering(answer: impl Fn(&mut Peer) + Send + Sync + 'static) -> u16 {
    server_of_all(move |peer| {
        peer.let_in();
        while peer.hear().is_some() {
            answer(peer);
        }
    })
}

fn load(port: u16, flags: &str) -> Command {
    let mut command = slap();
    command.args(["--no-defaults", "-uroot", "--host=127.0.0.1", "--query=SELECT 'LOAD'", "--create-schema=x"]);
    command.arg(format!("--port={port}")).args(flags.split_whitespace());
    command
}

/// The message of a load that fails, which must be one clean line of a bearable length.
fn error_line(port: u16, flags: &str) -> String {
    let (code, stderr, _) = ended(&mut load(port, flags));
    assert_eq!(code, Some(1), "{flags}: {stderr}");
    let line = stderr.strip_suffix('\n').unwrap();
    assert!(is_clean(line) && line.len() < 2_000, "{line:?}");
    line.to_owned()
}

fn is_clean(line: &str) -> bool {
    let hidden =
        |c| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    !line.chars().any(|c| c.is_control() || hidden(c))
}

fn long_error() -> Vec<u8> {
    [b"\xff\x28\x04#42000", "boom ".repeat(400_000).as_bytes()].concat()
}

#[test]
fn an_error_of_2_mb_is_cut() {
    for port in [answering(|peer| peer.say(1, &long_error())), serving(|peer| peer.say(1, &long_error()))] {
        let message = error_line(port, "--duration=600");
        assert!(message.contains("error 1064 (42000): boom boom"), "{message}");
        // 512 characters of 2,000,000.
        assert!(message.contains("... (1999488 more bytes)"), "{message}");
    }
    let port = answering(|peer| peer.say(1, &long_error()));
    let message = connect(&over_tcp(port)).unwrap().prepare_all(&["SELECT 1".into()]).unwrap_err().to_string();
    assert!(message.contains("... (1999488 more bytes)") && message.len() < 1_000, "{message}");
}

#[test]
fn nothing_a_server_says_moves_a_terminal() {
    let error = || [b"\xff\x28\x04#42000", NASTY.as_bytes()].concat();
    for port in [answering(move |peer| peer.say(1, &error())), serving(move |peer| peer.say(1, &error()))] {
        let message = error_line(port, "--duration=600");
        assert!(message.contains("[31mred 2J desrever end"), "{message}");
    }
    let plugin = server_of_all(|peer| {
        peer.say(0, GREETING);
        drop(peer.hear());
        peer.say(2, &[b"\xfe", NASTY.replace('\0', "").as_bytes(), b"\0abcdefghijklmnopqrst\0"].concat());
        drop(peer.hear());
    });
    let message = error_line(plugin, "--duration=600");
    assert!(message.contains("the authentication plugin [31mred 2J desrever end,"), "{message}");
}

#[test]
fn results_hold_clean_text_only() {
    let port = server_of_all(|peer| {
        let version = [b"\x0a", NASTY.as_bytes(), &GREETING[6..]].concat();
        peer.say(0, &version);
        drop(peer.hear());
        peer.say(2, OK);
        while let Some(request) = peer.hear() {
            let is_load = request.windows(4).any(|word| word == b"LOAD");
            let refusal = [b"\xff\x28\x04#42000", NASTY.as_bytes()].concat();
            peer.say(1, if is_load { &refusal } else { OK });
        }
    });
    let path = PathBuf::from(format!("/tmp/dbdyno-limits-{}.json", std::process::id()));
    let (code, stderr, _) = ended(load(port, "--duration=600").arg("--json").arg(&path));
    assert_eq!(code, Some(1), "{stderr}");
    let run = json(&path)["runs"][0].clone();
    fs::remove_file(&path).unwrap();
    assert_eq!(run["server_version"], "[31mred 2J desrever end");
    assert_eq!(run["errors"][0]["message"], "[31mred 2J desrever end");
    assert!(is_clean(run["aborted"].as_str().unwrap()), "{}", run["aborted"]);
}

#[test]
fn a_login_that_drips_ends() {
    let greeting = [&[200, 0, 0, 0], GREETING].concat();
    let in_greeting = server_of_all(move |peer| peer.drip(&greeting));
    let in_answer = server_of_all(|peer| {
        peer.say(0, GREETING);
        drop(peer.hear());
        peer.drip(b"\xc8\0\0\x02\x01");
    });
    for port in [in_greeting, in_answer] {
        let message = error_line(port, "--duration=600 --connect-timeout=1");
        let expected =
            format!("127.0.0.1:{port} did not complete a login within 1 s: see the server's error log, or raise");
        assert!(message.contains(&expected), "{message}");
    }
}

#[test]
fn a_reply_that_drips_ends_with_its_statement() {
    let expected = "began a reply and did not end it within 1 s";
    let flags = "--duration=600 --reply-timeout=1";
    let statement = "; statement: SET SESSION wait_timeout = 31536000";
    let in_a_packet = answering(|peer| peer.drip(ENDLESS));
    let message = error_line(in_a_packet, flags);
    assert!(message.contains(expected) && message.ends_with(statement), "{message}");
    // Each packet is soon whole, but the rows do not end.
    let rows = answering(|peer| {
        peer.say(1, &[1]);
        peer.say(2, b"\x03def\0\0\0\x01c\0\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0");
        let mut rows = Vec::new();
        for sequence in (3..=255).chain(0..3) {
            packet::encode(sequence, b"\x01x", &mut rows);
        }
        peer.drip(&rows);
    });
    let message = error_line(rows, flags);
    assert!(message.contains(expected) && message.ends_with(statement), "{message}");
    let endpoint = Endpoint { reply_timeout: Duration::from_secs(1), ..over_tcp(answering(|peer| peer.drip(ENDLESS))) };
    let message = connect(&endpoint).unwrap().prepare_all(&["SELECT 2".into()]).unwrap_err().to_string();
    assert!(message.contains(expected) && message.ends_with("; statement: SELECT 2"), "{message}");
}

#[test]
fn a_result_that_drips_counts_as_lost() {
    for io in ["--io=epoll -c 1", "--io=io_uring -c 4"] {
        let port = serving(|peer| {
            peer.say(1, &[1]);
            peer.drip(b"\xf0\xff\xff\x02\x03def");
        });
        let message = error_line(port, &format!("--duration=600 --reply-timeout=1 {io}"));
        assert!(
            message.contains(": 127.0.0.1:") && message.contains("began a reply and did not end it within 1 s"),
            "{message}"
        );
    }
}

#[test]
fn after_a_result_that_dripped_a_new_connection_goes_on() {
    for io in ["--io=epoll", "--io=io_uring"] {
        let first = AtomicBool::new(true);
        let port = serving(
            move |peer| if first.swap(false, Ordering::Relaxed) { peer.drip(ENDLESS) } else { peer.say(1, OK) },
        );
        let path = PathBuf::from(format!("/tmp/dbdyno-limits-{}{io}.json", std::process::id()).replace("--", "-"));
        let flags = format!("--number-of-queries=20 --reply-timeout=1 --reconnect=600 {io}");
        let (code, stderr, _) = ended(load(port, &flags).arg("--json").arg(&path));
        assert_eq!(code, Some(0), "{io}: {stderr}");
        let run = json(&path)["runs"][0].clone();
        fs::remove_file(&path).unwrap();
        assert_eq!(
            (run["errors"][0]["code"].as_u64(), run["errors"][0]["count"].as_u64()),
            (Some(1159), Some(1)),
            "{run}"
        );
        let message = run["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains("began a reply and did not end it within 1 s"), "{message}");
        assert_eq!((run["reconnects"].as_u64(), run["queries"].as_u64()), (Some(1), Some(19)), "{run}");
    }
}

#[test]
fn silence_after_the_handshake_ends() {
    let silent = || {
        server_of_all(|peer| {
            peer.let_in();
            while peer.hear().is_some() {}
        })
    };
    let statement = "; statement: SET SESSION wait_timeout = 31536000";
    let message = error_line(silent(), "--duration=600 --stall-timeout=1");
    assert!(message.contains("did not answer for 1 s: see") && message.ends_with(statement), "{message}");
    let message = error_line(silent(), "--duration=600 --statement-timeout=1");
    assert!(
        message.contains("did not complete a statement within 1 s: see") && message.ends_with(statement),
        "{message}"
    );
    let (port, _) = server(|mut peer| drop(peer.hear()));
    let message = refusal(&Endpoint { connect_timeout: Duration::from_secs(1), ..over_tcp(port) });
    assert!(message.contains("did not complete a login within 1 s"), "{message}");
}

#[test]
fn bytes_that_nobody_waits_for_do_not_hide_a_silence() {
    for io in ["--io=epoll", "--io=io_uring"] {
        let first = AtomicBool::new(true);
        let port = serving(move |peer| {
            if first.swap(false, Ordering::Relaxed) {
                peer.say(1, OK);
                peer.drip(OK);
            }
        });
        let message = error_line(port, &format!("-c 2 --number-of-queries=2 --stall-timeout=1 {io}"));
        assert!(message.contains("answered no client for 1 s"), "{message}");
    }
}

#[test]
fn what_breaks_the_protocol_is_told_with_place_and_statement() {
    let port = answering(|peer| peer.say(1, b"\xfb/etc/passwd"));
    let message = error_line(port, "--duration=600");
    let expected =
        format!("127.0.0.1:{port}: the server broke the protocol: it asks for a local file; statement: SET SESSION");
    assert!(message.contains(&expected), "{message}");
}

#[test]
fn an_answer_to_a_statement_to_prepare_is_not_read_for_ever() {
    let port = answering(|peer| {
        peer.say(1, b"\0\x01\0\0\0\xff\xff\0\0\0\0\0");
        let definition = vec![b'x'; 1 << 20];
        // The client leaves after 64 of them.
        for sequence in 0..200_u8 {
            peer.say(sequence.wrapping_add(2), &definition);
        }
    });
    let message = connect(&over_tcp(port)).unwrap().prepare_all(&["SELECT 3".into()]).unwrap_err().to_string();
    assert!(message.contains("a reply that is too long; statement: SELECT 3"), "{message}");
}

/// A user with a password who waits for a second.
fn endpoint(port: u16) -> Endpoint {
    user(Endpoint { connect_timeout: Duration::from_secs(1), ..over_tcp(port) }, "u", "secret")
}

#[test]
fn no_file_is_sent_to_a_server_that_asks() {
    let (port, thread) = server(|mut peer| {
        peer.let_in();
        peer.hear().unwrap();
        peer.say(1, b"\xfb/etc/passwd");
        assert_eq!(peer.hear(), None);
    });
    let message = connect(&endpoint(port)).unwrap().execute("SELECT 1").unwrap_err().to_string();
    assert!(message.contains("local file"), "{message}");
    thread.join().unwrap();
}

#[test]
fn a_login_ends_in_time() {
    let (silent, _) = server(|mut peer| drop(peer.hear()));
    let (dripping, _) = server(|mut peer| {
        while peer.0.write_all(b"\x01\0\0\0").is_ok() {
            sleep(Duration::from_millis(20));
        }
    });
    let (slow, _) = server(|mut peer| {
        let greeting = [&[200, 0, 0, 0], GREETING].concat();
        for byte in greeting {
            let _ = peer.0.write_all(&[byte]);
            sleep(Duration::from_millis(100));
        }
    });
    let (long, _) = server(|mut peer| {
        let _ = peer.0.write_all(b"\xff\xff\xff\0");
        drop(peer.hear());
    });
    for (port, expected) in
        [(silent, "did not complete a login"), (slow, "did not complete a login"), (long, "too long")]
    {
        let message = refusal(&endpoint(port));
        assert!(message.contains(expected), "{message}");
    }
    assert!(refusal(&endpoint(dripping)).contains("greeting"));
}

#[test]
fn a_server_that_asks_for_plugin_after_plugin_is_left() {
    let (port, _) = server(|mut peer| {
        peer.say(0, GREETING);
        let mut sequence = 2_u8;
        while peer.hear().is_some() {
            peer.say(sequence, b"\xfemysql_native_password\0abcdefghijklmnopqrst\0");
            sequence = sequence.wrapping_add(2);
        }
    });
    assert!(refusal(&endpoint(port)).contains("does not end the login"));
}

#[test]
fn a_password_is_not_given_to_whoever_asks() {
    for ask in [&b"\xfemysql_clear_password\0"[..], b"\xfecaching_sha2_password\0abcdefghijklmnopqrst\0"] {
        let (port, thread) = server(move |mut peer| {
            peer.say(0, GREETING);
            let mut heard = peer.hear().unwrap();
            peer.say(2, ask);
            while let Some(more) = peer.hear() {
                heard.extend(more);
                peer.say(4, &[1, 4]);
            }
            assert!(!heard.windows(6).any(|text| text == b"secret"));
        });
        let message = refusal(&endpoint(port));
        assert!(message.contains("clear"), "{message}");
        thread.join().unwrap();
    }
}

#[test]
fn what_is_not_tls_is_told() {
    let tls = |port| refusal(&secured(endpoint(port), &[("ssl-mode", "required")]));
    let (other, _) = server(|mut peer| {
        peer.say(0, GREETING);
        peer.hear().unwrap();
        let _ = peer.0.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        drop(peer.hear());
    });
    assert!(tls(other).contains("does not speak TLS"));
    let (in_front, _) = server(|mut peer| {
        let mut out = Vec::new();
        for payload in [GREETING, b"\0\0\0\x02\0\0\0"] {
            dbdyno_load::protocol::packet::encode(0, payload, &mut out);
        }
        let _ = peer.0.write_all(&out);
        drop(peer.hear());
    });
    let message = tls(in_front);
    assert!(message.contains("bytes in front of TLS"), "{message}");
    let (gone, _) = server(|mut peer| {
        peer.say(0, GREETING);
        peer.hear().unwrap();
    });
    let message = tls(gone);
    assert!(message.contains("lost the connection"), "{message}");
}
