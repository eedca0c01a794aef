use super::*;
use proptest::prelude::*;

const LOGIN: Login<'_> = Login {
    user: "u",
    password: "p",
    schema: None,
    channel: Channel::Open,
    server_key: None,
    may_ask_for_key: false,
    compressed: false,
};

fn greeting(plugin: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x0a10.11.19-MariaDB\0\x01\0\0\0abcdefgh\0\xff\xff\x2d\x02\0\xff\xff\x15".to_vec();
    bytes.extend([0; 10]);
    bytes.extend(b"ijklmnopqrst\0");
    bytes.extend(plugin);
    bytes.push(0);
    bytes
}

fn start<'a>(login: Login<'a>, plugin: &[u8]) -> (Dialogue<'a>, Vec<u8>) {
    let (mut dialogue, _) = Dialogue::start(login, &greeting(plugin)).unwrap();
    let response = dialogue.response().unwrap();
    (dialogue, response)
}

#[test]
fn native_password_logs_in() {
    let (_, greeted) = Dialogue::start(LOGIN, &greeting(b"mysql_native_password")).unwrap();
    assert_eq!(greeted.server_version, "10.11.19-MariaDB");
    assert_eq!(greeted.dialect, Dialect::Ok);
    let (mut dialogue, answer) = start(LOGIN, b"mysql_native_password");
    assert!(answer.len() > 32 + 20);
    assert!(!answer.windows(2).any(|pair| pair == b"p\0"));
    assert_eq!(dialogue.packet(&[OK, 0, 0]).unwrap(), Step::Done);
}

#[test]
fn mariadb_is_asked_to_leave_out_known_columns() {
    const LOW_CAPABILITIES: usize = 18 + 4 + 8 + 1;
    const RESERVED: usize = LOW_CAPABILITIES + 2 + 1 + 2 + 2 + 1;
    let mut bytes = greeting(b"mysql_native_password");
    // Neither without MariaDB's mark ...
    bytes[RESERVED + 6] = 0x1d;
    assert_eq!(Dialogue::start(LOGIN, &bytes).unwrap().1.dialect, Dialect::Ok);
    bytes[LOW_CAPABILITIES] &= !1;
    let (mut dialogue, greeted) = Dialogue::start(LOGIN, &bytes).unwrap();
    assert_eq!(greeted.dialect, Dialect::CachedMetadata);
    let response = dialogue.response().unwrap();
    assert_eq!((response[0] & 1, &response[28..32]), (0, &[0x10, 0, 0, 0][..]));
    // ... nor without what it builds on.
    bytes[RESERVED - 2] &= !1;
    assert_eq!(Dialogue::start(LOGIN, &bytes).unwrap().1.dialect, Dialect::Eof);
}

#[test]
fn tls_is_asked_for_with_the_terms_of_the_response() {
    let (mut dialogue, greeted) = Dialogue::start(LOGIN, &greeting(b"mysql_native_password")).unwrap();
    assert!(greeted.offers_tls);
    let request = dialogue.request_tls(Channel::Sealed);
    assert_eq!(request.len(), 32);
    assert!(dialogue.response().unwrap().starts_with(&request));
}

#[test]
fn a_clear_password_needs_a_verified_server() {
    let switch = b"\xfemysql_clear_password\0\0";
    for channel in [Channel::Open, Channel::Sealed] {
        let (mut dialogue, _) = start(Login { channel, ..LOGIN }, b"mysql_native_password");
        let error = dialogue.packet(switch).unwrap_err().to_string();
        assert!(error.contains("clear text") && error.contains("verify_ca"), "{error}");
    }
    let (mut dialogue, _) = start(Login { channel: Channel::Private, ..LOGIN }, b"mysql_native_password");
    assert_eq!(dialogue.packet(switch).unwrap(), Step::Send(b"p\0".to_vec()));
    assert!(dialogue.packet(&[0xfe]).is_err());
    let error = Dialogue::start(LOGIN, &greeting(b"mysql_clear_password")).unwrap().0.response().unwrap_err();
    assert!(error.to_string().contains("clear text"), "{error}");
}

#[test]
fn a_password_travels_in_the_clear_only_where_nobody_listens() {
    let full = |login| start(login, b"caching_sha2_password").0.packet(&[1, FULL_LOGIN]);
    for channel in [Channel::Sealed, Channel::Private] {
        assert_eq!(full(Login { channel, ..LOGIN }).unwrap(), Step::Send(b"p\0".to_vec()));
    }
    let error = full(LOGIN).unwrap_err().to_string();
    assert!(error.contains("--get-server-public-key"), "{error}");
    assert_eq!(full(Login { may_ask_for_key: true, ..LOGIN }).unwrap(), Step::Send(vec![ASK_CACHING_SHA2]));
    let key = ServerKey::parse(include_bytes!("../../tests/keys/rsa-1024.pub.pem")).unwrap();
    let Ok(Step::Send(sealed)) = full(Login { server_key: Some(&key), ..LOGIN }) else { panic!() };
    assert_eq!(sealed.len(), 128);
}

#[test]
fn a_key_is_taken_from_a_server_that_was_asked() {
    let pem = include_bytes!("../../tests/keys/rsa-1024.pub.pem");
    let answer = [&[MORE_DATA], &pem[..]].concat();
    let asking = Login { may_ask_for_key: true, ..LOGIN };
    let (mut dialogue, _) = start(asking, b"caching_sha2_password");
    assert!(dialogue.packet(&answer).is_err());
    for (plugin, ask) in [(&b"caching_sha2_password"[..], true), (b"sha256_password", false)] {
        let (mut dialogue, response) = start(asking, plugin);
        if ask {
            dialogue.packet(&[MORE_DATA, FULL_LOGIN]).unwrap();
        } else {
            assert!(response.windows(2).any(|pair| pair == [1, ASK_SHA256]));
        }
        assert!(matches!(dialogue.packet(&answer), Ok(Step::Send(sealed)) if sealed.len() == 128));
    }
    let (mut dialogue, _) = start(asking, b"sha256_password");
    assert!(dialogue.packet(b"\x01no key").is_err());
    // The plugin itself would ask for a key after this, and take any.
    let key = ServerKey::parse(pem).unwrap();
    let (mut dialogue, _) = start(Login { server_key: Some(&key), ..LOGIN }, b"sha256_password");
    assert!(dialogue.packet(b"\x01abcdefghijklmnopqrst").is_err());
    assert!(dialogue.packet(&answer).is_err());
    // No other process can put another key into a socket.
    let private = Login { channel: Channel::Private, ..LOGIN };
    let (mut dialogue, _) = start(private, b"sha256_password");
    assert!(matches!(dialogue.packet(&answer), Ok(Step::Send(sealed)) if sealed.len() == 128));
}

#[test]
fn a_server_that_never_ends_is_left() {
    let (mut dialogue, _) = start(LOGIN, b"mysql_native_password");
    let switch = b"\xfemysql_native_password\0abcdefghijklmnopqrst\0";
    let taken = (0..100).take_while(|_| dialogue.packet(switch).is_ok()).count();
    assert_eq!(taken, PACKETS_MAX as usize);
}

#[test]
fn a_full_server_is_told() {
    let error = Dialogue::start(LOGIN, b"\xff\x10\x04Too many connections").err();
    assert!(error.unwrap().to_string().starts_with("1040 "));
}

#[test]
fn an_impossible_version_is_only_a_text() {
    let mut bytes = b"\x0a99999.99999.99999\0".to_vec();
    bytes.extend(&greeting(b"mysql_native_password")[18..]);
    let (mut dialogue, greeted) = Dialogue::start(LOGIN, &bytes).unwrap();
    assert_eq!(greeted.server_version, "99999.99999.99999");
    assert!(dialogue.response().is_ok());
}

proptest! {
    #[test]
    fn garbage_never_panics(bytes: Vec<u8>, tails: Vec<Vec<u8>>, seed: u8) {
        let _ = Dialogue::start(LOGIN, &bytes);
        let plugins = [&b"caching_sha2_password"[..], b"sha256_password", b"client_ed25519", b"mysql_clear_password"];
        let mut almost = greeting(plugins[usize::from(seed) % plugins.len()]);
        let at = bytes.len() % almost.len();
        for (byte, other) in almost[at..].iter_mut().zip(&bytes) {
            *byte = *other;
        }
        let login = Login { may_ask_for_key: seed & 64 != 0, ..LOGIN };
        let Ok((mut dialogue, _)) = Dialogue::start(login, &almost) else { return Ok(()) };
        if seed & 128 != 0 {
            dialogue.request_tls(Channel::Sealed);
        }
        let _ = dialogue.response();
        for tail in &tails {
            let _ = dialogue.packet(tail);
            let _ = dialogue.packet(&[&[MORE_DATA, FULL_LOGIN], tail.as_slice()].concat());
            let _ = dialogue.packet(&[&[SWITCH], tail.as_slice()].concat());
            let _ = dialogue.packet(&[&[MORE_DATA], tail.as_slice()].concat());
        }
    }
}
