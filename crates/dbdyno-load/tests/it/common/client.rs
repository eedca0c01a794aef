//! Sessions on a test's server, and an event loop for one connection that does without speed.

use std::path::Path;
use std::time::Duration;

use dbdyno_load::endpoint::{Address, Endpoint, Security};
use dbdyno_load::error::Error;
use dbdyno_load::password::Password;
use dbdyno_load::protocol::packet::{Parameter, RequestEncoder, reply_sequence};
use dbdyno_load::protocol::reply::Reply;
use dbdyno_load::protocol::session::{Connection, Session};
use dbdyno_load::stop::Stop;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// Root without a password.
pub fn endpoint(address: Address) -> Endpoint {
    Endpoint {
        address,
        user: "root".into(),
        password: Password::default(),
        connect_timeout: Duration::from_secs(10),
        stall_timeout: Duration::from_secs(30),
        reply_timeout: Duration::from_secs(30),
        statement_timeout: Duration::from_secs(60),
        init_command: None,
        security: Security::default(),
        compressed: false,
    }
}

pub fn over_socket(path: &Path) -> Endpoint {
    endpoint(Address::Socket(path.to_owned()))
}

pub fn over_tcp(port: u16) -> Endpoint {
    endpoint(Address::Tcp("127.0.0.1".into(), port))
}

/// `endpoint` with these options on security, by the names of the flags.
pub fn secured(endpoint: Endpoint, options: &[(&'static str, &str)]) -> Endpoint {
    let option = |name| options.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let host = match &endpoint.address {
        Address::Tcp(host, _) => host.clone(),
        Address::Socket(_) => "localhost".into(),
    };
    Endpoint { security: Security::read(&option, &host).unwrap(), ..endpoint }
}

/// `endpoint` for another user.
pub fn user(endpoint: Endpoint, user: &str, password: &str) -> Endpoint {
    Endpoint { user: user.into(), password: Password::new(password.into()), ..endpoint }
}

pub fn connect(endpoint: &Endpoint) -> Result<Session, Error> {
    Session::connect(endpoint, None, &Stop::default())
}

pub fn session(endpoint: &Endpoint) -> Session {
    connect(endpoint).unwrap()
}

/// Why it cannot be connected to.
pub fn refusal(endpoint: &Endpoint) -> String {
    connect(endpoint).err().unwrap().to_string()
}

/// Executes statement `number`: its reply, and the bytes of it.
pub fn execute(connection: &mut Connection, number: usize, parameters: &[Parameter<'_>]) -> (Reply, usize) {
    let mut request = Vec::new();
    RequestEncoder::new(&mut request, &mut connection.prepared).execute(number, parameters);
    ask(connection, request)
}

/// Runs a text query: its reply, and the bytes of it.
pub fn query(connection: &mut Connection, sql: &str) -> (Reply, usize) {
    let mut request = Vec::new();
    RequestEncoder::new(&mut request, &mut []).query(&[sql.as_bytes()]);
    ask(connection, request)
}

fn ask(connection: &mut Connection, mut request: Vec<u8>) -> (Reply, usize) {
    connection.parser.expect(reply_sequence(&request));
    if let Some(tls) = &mut connection.tls {
        tls.seal(&mut request).unwrap();
    }
    let mut rest = request.as_slice();
    while !rest.is_empty() {
        match send(&connection.socket, rest, SendFlags::NOSIGNAL) {
            Ok(sent) => rest = &rest[sent..],
            Err(errno) => assert_eq!(errno, Errno::AGAIN),
        }
    }
    let (mut buffer, mut plain, mut size) = (vec![0; 64 << 10], Vec::new(), 0);
    loop {
        let got = match recv(&connection.socket, &mut buffer[..], RecvFlags::empty()) {
            Ok((got, _)) => got,
            Err(Errno::AGAIN) => continue,
            Err(errno) => panic!("{errno}"),
        };
        assert!(got > 0, "the server closed the connection");
        let bytes = match &mut connection.tls {
            None => &buffer[..got],
            Some(tls) => {
                plain.clear();
                tls.open(&buffer[..got], &mut plain).unwrap();
                &plain
            }
        };
        size += bytes.len();
        if let Some(reply) = connection.parser.feed(bytes).unwrap() {
            return (reply, size);
        }
    }
}
