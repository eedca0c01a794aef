//! The server's end of one connection, as a script, for what happens before and during a login.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dbdyno_load::protocol::packet::{self, HEADER_SIZE, decode_header};

/// A greeting that offers everything, for mysql_native_password.
pub const GREETING: &[u8] = b"\x0a8.0.0\0\x01\0\0\0abcdefgh\0\xff\xff\x2d\x02\0\xff\xff\x15\
    \0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0mysql_native_password\0";

/// An OK packet.
pub const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];

/// The port where `script` has the first connection, and its thread.
pub fn server(script: impl FnOnce(Peer) + Send + 'static) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = thread::spawn(move || script(Peer(listener.accept().unwrap().0)));
    (port, thread)
}

/// The port where `script` has every connection, each in a thread of its own that ends with it.
pub fn server_of_all(script: impl Fn(&mut Peer) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = Arc::new(script);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (script, mut peer) = (Arc::clone(&script), Peer(stream.unwrap()));
            thread::spawn(move || script(&mut peer));
        }
    });
    port
}

/// The client of a script.
pub struct Peer(pub TcpStream);

impl Peer {
    /// Sends one packet.
    pub fn say(&mut self, sequence: u8, payload: &[u8]) {
        let mut out = Vec::new();
        packet::encode(sequence, payload, &mut out);
        // It may have left.
        let _ = self.0.write_all(&out);
    }

    /// Sends a byte every 100 ms, over and over, until the client leaves.
    pub fn drip(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().cycle() {
            thread::sleep(Duration::from_millis(100));
            if self.0.write_all(&[*byte]).is_err() {
                return;
            }
        }
    }

    /// The payload of its next packet; `None` when it has left.
    pub fn hear(&mut self) -> Option<Vec<u8>> {
        let mut header = [0; HEADER_SIZE];
        self.0.read_exact(&mut header).ok()?;
        let mut payload = vec![0; decode_header(header).0];
        self.0.read_exact(&mut payload).ok()?;
        Some(payload)
    }

    /// Lets it in whoever it is.
    pub fn let_in(&mut self) {
        self.say(0, GREETING);
        self.hear().unwrap();
        self.say(2, OK);
    }
}
