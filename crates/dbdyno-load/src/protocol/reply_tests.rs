use super::super::packet::encode;
use super::*;
use proptest::prelude::*;

const OK_PACKET: &[u8] = &[0, 1, 0, 2, 0, 0, 0];

fn packets(payloads: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut sequence = 1;
    for payload in payloads {
        encode(sequence, payload, &mut out);
        sequence = sequence.wrapping_add((payload.len() / PAYLOAD_MAX + 1) as u8);
    }
    out
}

fn select(deprecate_eof: bool, status: u8) -> Vec<u8> {
    let eof = [END, 0, 0, status, 0];
    let ok = [END, 0, 0, status, 0, 0, 0];
    let mut payloads: Vec<&[u8]> = vec![&[2], b"\x03def.a", b"\x03def.b"];
    if !deprecate_eof {
        payloads.push(&eof);
    }
    payloads.extend([&b"\x011\x03abc"[..], b"\x012\xfb"]);
    payloads.push(if deprecate_eof { &ok } else { &eof });
    packets(&payloads)
}

fn dialect(deprecate_eof: bool) -> Dialect {
    if deprecate_eof { Dialect::Ok } else { Dialect::Eof }
}

fn parse(bytes: &[u8], deprecate_eof: bool) -> Result<Option<Reply>, ProtocolError> {
    ReplyParser::new(dialect(deprecate_eof)).feed(bytes)
}

fn replies() -> Vec<(bool, Vec<u8>, Reply)> {
    let reply = |rows| Reply { rows, ..Reply::default() };
    let duplicate = ServerError { code: 1062, sqlstate: "23000".into(), message: "Duplicate entry".into() };
    let mut long_row = vec![END];
    long_row.extend((PAYLOAD_MAX as u64 + 10).to_le_bytes());
    long_row.resize(PAYLOAD_MAX + 19, b'x');
    let long = packets(&[&[1], b"\x03def.a", &long_row, &[END, 0, 0, 2, 0, 0, 0]]);
    vec![
        (true, packets(&[OK_PACKET]), reply(0)),
        (true, select(true, 2), reply(2)),
        (false, select(false, 2), reply(2)),
        (true, long, reply(1)),
        (
            true,
            packets(&[b"\xff\x26\x04#23000Duplicate entry"]),
            Reply { error: Some(Box::new(duplicate)), ..Reply::default() },
        ),
    ]
}

#[test]
fn a_reply_is_the_same_split_anywhere() {
    for (deprecate_eof, bytes, expected) in replies() {
        assert_eq!(parse(&bytes, deprecate_eof), Ok(Some(expected.clone())));
        for at in (1..bytes.len()).filter(|at| *at < 200 || at + 200 > bytes.len()) {
            let mut parser = ReplyParser::new(dialect(deprecate_eof));
            assert_eq!(parser.feed(&bytes[..at]), Ok(None), "at {at}");
            assert_eq!(parser.feed(&bytes[at..]), Ok(Some(expected.clone())));
        }
        if bytes.len() < 1000 {
            let mut parser = ReplyParser::new(dialect(deprecate_eof));
            let last = bytes.len() - 1;
            for byte in &bytes[..last] {
                assert_eq!(parser.feed(&[*byte]), Ok(None));
            }
            assert_eq!(parser.feed(&bytes[last..]), Ok(Some(expected)));
        }
    }
}

#[test]
fn a_parser_serves_reply_after_reply() {
    let mut parser = ReplyParser::new(Dialect::Ok);
    for _ in 0..3 {
        parser.expect(1);
        assert_eq!(parser.feed(&select(true, 2)).unwrap().unwrap().rows, 2);
    }
}

#[test]
fn columns_that_are_known_are_not_defined_again() {
    let mut parser = ReplyParser::new(Dialect::CachedMetadata);
    let end = &[END, 0, 0, 3, 0, 2, 0][..];
    let expected = Reply { rows: 1, warnings: 2, in_transaction: true, error: None };
    for head in [vec![&[2, 0][..]], vec![&[2, 1][..], b"\x03def.a", b"\x03def.b"]] {
        let payloads: Vec<&[u8]> = head.into_iter().chain([&b"\0\0\x01\0"[..], end]).collect();
        parser.expect(1);
        assert_eq!(parser.feed(&packets(&payloads)), Ok(Some(expected.clone())));
    }
}

#[test]
fn several_results_are_one_reply() {
    let mut bytes = select(true, 0x0a);
    let mut sequence = bytes.len() as u8;
    let mut at = 0;
    while at < bytes.len() {
        let (length, number) = decode_header(bytes[at..at + 4].try_into().unwrap());
        sequence = number + 1;
        at += 4 + length;
    }
    let mut parser = ReplyParser::new(Dialect::Ok);
    assert_eq!(parser.feed(&bytes), Ok(None));
    bytes.clear();
    encode(sequence, OK_PACKET, &mut bytes);
    assert_eq!(parser.feed(&bytes).unwrap().unwrap().rows, 2);
}

#[test]
fn control_characters_of_a_server_are_not_printed() {
    let payload = b"\xff\x01\x00#HY\x1b\xe2\x80\x1b[2Jboo\x07 \xe2\x80\xaeeslaf";
    let error = ServerError::parse(payload, payload.len()).unwrap();
    assert_eq!((error.message.as_str(), error.sqlstate.as_str()), ("[2Jboo eslaf", "HY \u{fffd}"));
}

#[test]
fn a_long_error_is_cut_the_same_in_whatever_pieces_it_comes() {
    let payload = [b"\xff\x01\x00#HY000", "\u{20ac}x".repeat(500_000).as_bytes()].concat();
    let bytes = packets(&[&payload]);
    let whole = parse(&bytes, true).unwrap().unwrap();
    let message = &whole.error.as_ref().unwrap().message;
    assert_eq!(message.len(), 1015 + " ... (1998985 more bytes)".len());
    assert!(message.ends_with("x\u{20ac} ... (1998985 more bytes)"), "{message}");
    for size in [1, 700, 16 << 10] {
        let mut parser = ReplyParser::new(Dialect::Ok);
        let replies: Vec<_> = bytes.chunks(size).map(|piece| parser.feed(piece).unwrap()).collect();
        assert_eq!(replies.last().unwrap().as_ref(), Some(&whole), "{size}");
    }
    assert_eq!(ReplyParser::new(Dialect::Ok).payload(&payload[..HEAD_MAX], payload.len()), Ok(Some(whole)));
}

#[test]
fn what_is_not_the_protocol_is_refused() {
    for bytes in [
        packets(&[&[LOCAL_INFILE, b'x']]),
        packets(&[&[]]),
        packets(&[&[0]]),
        packets(&[&[0xfe, 1, 1, 1, 1, 1, 1, 1, 1]]),
        packets(&[OK_PACKET, OK_PACKET]),
        b"\x07\0\0\x05\0\x01\0\x02\0\0\0".to_vec(),
        packets(&[b"\xff\x01"]),
    ] {
        assert!(parse(&bytes, true).is_err(), "{bytes:?}");
    }
}

#[test]
fn a_long_packet_is_not_kept() {
    let mut parser = ReplyParser::new(Dialect::Ok);
    parser.feed(&packets(&[&[1], b"\x03def"])).unwrap();
    parser.feed(&[0xfe, 0xff, 0xff, 3]).unwrap();
    let piece = vec![b'x'; 65_536];
    for _ in 0..255 {
        parser.feed(&piece).unwrap();
    }
    assert!(parser.head.capacity() <= 2 * HEAD_MAX);
}

proptest! {
    #[test]
    fn garbage_never_panics(pieces: Vec<Vec<u8>>, deprecate_eof: bool) {
        let mut parser = ReplyParser::new(dialect(deprecate_eof));
        for piece in &pieces {
            if parser.feed(piece).is_err() {
                break;
            }
        }
    }

    #[test]
    fn garbage_in_good_frames_never_panics(payloads: Vec<Vec<u8>>, deprecate_eof: bool) {
        let payloads: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
        let _ = parse(&packets(&payloads), deprecate_eof);
    }
}
