//! Servers that mean no good, or are none: an error in time, and nothing given away.
use std::io::Write as _;
use std::thread::sleep;
use std::time::Duration;

use crate::common::client::{connect, over_tcp, refusal, secured, user};
use crate::common::scripted_server::{GREETING, server};
use dbdyno_load::endpoint::Endpoint;

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
        let said = refusal(&endpoint(port));
        assert!(said.contains(expected), "{said}");
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
        let said = refusal(&endpoint(port));
        assert!(said.contains("clear"), "{said}");
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
    let said = tls(in_front);
    assert!(said.contains("bytes in front of TLS"), "{said}");
    let (gone, _) = server(|mut peer| {
        peer.say(0, GREETING);
        peer.hear().unwrap();
    });
    let said = tls(gone);
    assert!(said.contains("lost the connection"), "{said}");
}
