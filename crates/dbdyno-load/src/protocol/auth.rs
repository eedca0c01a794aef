//! Handshake and authentication. The packets' layout and the plugins' arithmetic come from
//! `mysql_common`; this file decides what is answered to whom.

use mysql_common::auth::plugins::{AuthProc, ChallengeResponsePlugin, Context, Response};
use mysql_common::constants::CapabilityFlags;
use mysql_common::io::ParseBuf;
use mysql_common::packets::{AuthPlugin, AuthSwitchRequest, HandshakePacket, HandshakeResponse};
use mysql_common::proto::{MyDeserialize, MySerialize};

use super::reply::{Dialect, ServerError, printable};

/// Largest packet the server may send us, in bytes.
const PACKET_MAX: u32 = 1 << 30;

const OK: u8 = 0x00;
const MORE_DATA: u8 = 0x01;
const SWITCH: u8 = 0xfe;
const ERROR: u8 = 0xff;

/// Who logs in.
#[derive(Debug, Clone, Copy)]
pub struct Login<'a> {
    /// User name.
    pub user: &'a str,
    /// Password; empty for none.
    pub password: &'a str,
    /// Schema to start in.
    pub schema: Option<&'a str>,
    /// Whether nobody can listen (a unix socket).
    pub private: bool,
}

/// Why the server did not let us in.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// The server said no.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// We cannot, or will not, do what it asks.
    #[error("cannot log in: {0}")]
    Refused(String),
}

/// What a greeting told.
#[derive(Debug, Clone)]
pub struct Greeting {
    /// Version text of the server.
    pub server_version: String,
    /// The server's number for this connection.
    pub connection_id: u32,
    /// How its result sets will look.
    pub dialect: Dialect,
}

/// A login in progress: give it the server's packets, send what it answers.
pub struct Dialogue<'a> {
    login: Login<'a>,
    nonce: Vec<u8>,
    plugin: AuthProc,
}

/// What to do after a packet.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this payload, then read on.
    Send(Vec<u8>),
    /// Read on.
    Read,
    /// Logged in.
    Done,
}

struct Secrets<'a> {
    login: Login<'a>,
    nonce: &'a [u8],
}

impl Context for Secrets<'_> {
    fn pass(&self) -> &[u8] {
        self.login.password.as_bytes()
    }
    fn is_ipc_transport(&self) -> bool {
        self.login.private
    }
    fn is_tls_transport(&self) -> bool {
        false
    }
    fn scramble(&self) -> &[u8] {
        self.nonce
    }
    fn server_key_pem(&self) -> Option<&[u8]> {
        None
    }
}

impl<'a> Dialogue<'a> {
    /// Reads the server's `greeting` and gives the payload that answers it.
    ///
    /// # Errors
    /// An error packet instead of a greeting (too many connections, host not allowed), a server
    /// too old, or bytes that are no greeting.
    pub fn start(login: Login<'a>, greeting: &[u8]) -> Result<(Self, Greeting, Vec<u8>), AuthError> {
        if let Some(error) = ServerError::parse(greeting) {
            return Err(error.into());
        }
        let packet = parse_greeting(greeting)
            .ok_or_else(|| AuthError::Refused("the greeting is not that of a MySQL or MariaDB server".into()))?;
        let theirs = packet.capabilities();
        if !theirs.contains(CapabilityFlags::CLIENT_PROTOCOL_41 | CapabilityFlags::CLIENT_SECURE_CONNECTION) {
            return Err(AuthError::Refused("the server is older than 4.1".into()));
        }
        let ours = theirs & wanted_capabilities();
        // A plugin we do not speak may still let us in through a switch.
        let offered = packet.auth_plugin().map(AuthPlugin::into_owned);
        let plugin =
            offered.filter(|plugin| init(plugin, login.private).is_ok()).unwrap_or(AuthPlugin::MysqlNativePassword);
        let mut dialogue = Self { login, nonce: packet.nonce(), plugin: init(&plugin, login.private)? };
        let proof = match dialogue.challenge(None)? {
            Step::Send(proof) => proof,
            Step::Read | Step::Done => Vec::new(),
        };
        let response = HandshakeResponse::new(
            Some(proof),
            packet.server_version_parsed().unwrap_or((5, 6, 0)),
            Some(login.user.as_bytes()),
            login.schema.map(str::as_bytes),
            theirs.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH).then_some(plugin),
            ours,
            None,
            PACKET_MAX,
        );
        let mut payload = Vec::new();
        response.serialize(&mut payload);
        let greeting = Greeting {
            server_version: without_replication_prefix(&printable(packet.server_version_ref())),
            connection_id: packet.connection_id(),
            dialect: if ours.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF) { Dialect::Ok } else { Dialect::Eof },
        };
        Ok((dialogue, greeting, payload))
    }

    /// Handles the server's next packet.
    ///
    /// # Errors
    /// Access denied, or a plugin we cannot or will not serve.
    pub fn packet(&mut self, payload: &[u8]) -> Result<Step, AuthError> {
        match payload.first() {
            Some(&OK) => Ok(Step::Done),
            Some(&ERROR) => Err(ServerError::parse(payload)
                .map_or_else(|| AuthError::Refused("an error packet cut short".into()), AuthError::Server)),
            Some(&MORE_DATA) => self.challenge(Some(&payload[1..])),
            Some(&SWITCH) => self.switch(payload),
            _ => Err(AuthError::Refused("the server sent an unknown packet".into())),
        }
    }

    fn switch(&mut self, payload: &[u8]) -> Result<Step, AuthError> {
        // The one-byte form asks for the password hash of MySQL 3.23.
        let request = AuthSwitchRequest::deserialize((), &mut ParseBuf(payload))
            .map_err(|_| AuthError::Refused("the account uses mysql_old_password, which is not safe".into()))?;
        self.plugin = init(&request.auth_plugin(), self.login.private)?;
        self.nonce = request.plugin_data().to_vec();
        self.challenge(None)
    }

    /// One step of the plugin, over `data` or else the nonce.
    fn challenge(&mut self, data: Option<&[u8]>) -> Result<Step, AuthError> {
        let secrets = Secrets { login: self.login, nonce: &self.nonce };
        let response = self
            .plugin
            .run(secrets, data.unwrap_or(&self.nonce))
            .map_err(|error| AuthError::Refused(error.to_string()))?;
        Ok(match response {
            Response::Next { packet: Some(data) } | Response::Last { packet: Some(data) } => Step::Send(data),
            Response::Next { packet: None } | Response::Last { packet: None } => Step::Read,
        })
    }
}

/// MariaDB 10 calls itself 5.5.5 first, for the sake of old replicas.
fn without_replication_prefix(version: &str) -> String {
    version.strip_prefix("5.5.5-").unwrap_or(version).to_owned()
}

fn wanted_capabilities() -> CapabilityFlags {
    CapabilityFlags::CLIENT_LONG_PASSWORD
        | CapabilityFlags::CLIENT_PROTOCOL_41
        | CapabilityFlags::CLIENT_TRANSACTIONS
        | CapabilityFlags::CLIENT_SECURE_CONNECTION
        | CapabilityFlags::CLIENT_MULTI_RESULTS
        | CapabilityFlags::CLIENT_PLUGIN_AUTH
        | CapabilityFlags::CLIENT_CONNECT_WITH_DB
        | CapabilityFlags::CLIENT_DEPRECATE_EOF
}

/// A plugin made ready, unless it would give the password away.
fn init(plugin: &AuthPlugin<'_>, private: bool) -> Result<AuthProc, AuthError> {
    let name = String::from_utf8_lossy(plugin.as_bytes()).into_owned();
    match plugin {
        AuthPlugin::MysqlClearPassword if !private => Err(AuthError::Refused(
            "the account wants the password in clear text, which only a unix socket may carry".into(),
        )),
        AuthPlugin::MysqlOldPassword => {
            Err(AuthError::Refused("the account uses mysql_old_password, which is not safe".into()))
        }
        plugin => plugin.init().map_err(|_| {
            AuthError::Refused(format!(
                "the account uses the authentication plugin {}, which is not supported: use \
                 mysql_native_password, caching_sha2_password or ed25519",
                printable(name.as_bytes())
            ))
        }),
    }
}

fn parse_greeting(payload: &[u8]) -> Option<HandshakePacket<'_>> {
    // Version text, NUL, then 20 fixed bytes before the length of the nonce, which the parser
    // takes for a signed number.
    let nul = payload.iter().position(|byte| *byte == 0)?;
    let nonce_length = payload.get(nul + 21)?;
    if payload.first() != Some(&10) || *nonce_length > 64 {
        return None;
    }
    HandshakePacket::deserialize((), &mut ParseBuf(payload)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LOGIN: Login<'_> = Login { user: "u", password: "p", schema: None, private: false };

    fn greeting(plugin: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x0a10.11.19-MariaDB\0\x01\0\0\0abcdefgh\0\xff\xff\x2d\x02\0\xff\xff\x15".to_vec();
        bytes.extend([0; 10]);
        bytes.extend(b"ijklmnopqrst\0");
        bytes.extend(plugin);
        bytes.push(0);
        bytes
    }

    #[test]
    fn native_password_logs_in() {
        let (mut dialogue, told, answer) = Dialogue::start(LOGIN, &greeting(b"mysql_native_password")).unwrap();
        assert_eq!(told.server_version, "10.11.19-MariaDB");
        assert_eq!(told.dialect, Dialect::Ok);
        assert!(answer.len() > 32 + 20);
        assert!(!answer.windows(2).any(|pair| pair == b"p\0"));
        assert_eq!(dialogue.packet(&[OK, 0, 0]).unwrap(), Step::Done);
    }

    #[test]
    fn a_password_is_not_given_away() {
        let (mut dialogue, _, _) = Dialogue::start(LOGIN, &greeting(b"mysql_clear_password")).unwrap();
        let error = dialogue.packet(b"\xfemysql_clear_password\0\0").unwrap_err();
        assert!(error.to_string().contains("clear text"), "{error}");
        assert!(dialogue.packet(&[0xfe]).is_err());
    }

    #[test]
    fn caching_sha2_sends_the_password_only_over_a_socket() {
        for (private, expected) in [(true, b"p\0".to_vec()), (false, vec![2])] {
            let login = Login { private, ..LOGIN };
            let (mut dialogue, _, _) = Dialogue::start(login, &greeting(b"caching_sha2_password")).unwrap();
            assert_eq!(dialogue.packet(&[1, 4]).unwrap(), Step::Send(expected));
        }
    }

    #[test]
    fn a_full_server_is_told() {
        let error = Dialogue::start(LOGIN, b"\xff\x10\x04Too many connections").err();
        assert!(error.unwrap().to_string().starts_with("1040 "));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes: Vec<u8>, tail: Vec<u8>) {
            let _ = Dialogue::start(LOGIN, &bytes);
            let mut almost = greeting(b"caching_sha2_password");
            let at = bytes.len() % almost.len();
            for (byte, other) in almost[at..].iter_mut().zip(&bytes) {
                *byte = *other;
            }
            if let Ok((mut dialogue, _, _)) = Dialogue::start(LOGIN, &almost) {
                let _ = dialogue.packet(&tail);
                let _ = dialogue.packet(&[&[SWITCH], tail.as_slice()].concat());
                let _ = dialogue.packet(&[&[MORE_DATA], tail.as_slice()].concat());
            }
        }
    }
}
