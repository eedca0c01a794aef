//! Handshake and authentication. The packets' layout and the plugins' arithmetic come from
//! `mysql_common`; this file decides what is answered to whom.

use mysql_common::auth::plugins::{AuthProc, ChallengeResponsePlugin, Context, Response};
use mysql_common::collations::CollationId;
use mysql_common::constants::{CapabilityFlags, MariadbCapabilities};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{AuthPlugin, AuthSwitchRequest, HandshakePacket, HandshakeResponse, SslRequest};
use mysql_common::proto::{MyDeserialize, MySerialize};

use super::reply::{Dialect, ServerError};
use super::server_key::ServerKey;
use crate::text::{CHARS_MAX, printable, shown};

/// Largest packet the server may send us, in bytes.
const PACKET_MAX: u32 = 1 << 30;

const OK: u8 = 0x00;
const MORE_DATA: u8 = 0x01;
const SWITCH: u8 = 0xfe;
const ERROR: u8 = 0xff;

/// caching_sha2_password: the server wants the password itself.
const FULL_LOGIN: u8 = 4;

/// What asks for the server's RSA key.
const ASK_CACHING_SHA2: u8 = 2;
const ASK_SHA256: u8 = 1;

/// Packets a server may send before it lets us in or not; three are usual.
const PACKETS_MAX: u32 = 16;

const UNKNOWN_PACKET: &str = "the server sent an unknown packet";
const OLD_PASSWORD: &str = "the account uses mysql_old_password, which is not safe";
const CLEAR_PASSWORD: &str = "the account wants the password in clear text, which only a unix socket or TLS with a \
    verified server may carry: see --ssl-mode=verify_ca";
const NO_COMPRESSION: &str = "the server does not compress with zlib: leave out --compress, or see its \
    protocol_compression_algorithms";
const NEEDS_KEY: &str = "the server wants the password, which must not travel over TCP in the clear: use \
    --ssl-mode=required, or --server-public-key-path=FILE, or --get-server-public-key, or a unix socket";

/// Who can listen on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// Whoever listens on the way: TCP without TLS.
    Open,
    /// The other end alone, whoever that is: TLS without verification.
    Sealed,
    /// No other: a unix socket, or TLS with a server that was verified.
    Private,
}

/// Who logs in, and how.
#[derive(Clone, Copy)]
pub struct Login<'a> {
    /// User name.
    pub user: &'a str,
    /// Password; empty for none.
    pub password: &'a str,
    /// Schema to start in.
    pub schema: Option<&'a str>,
    /// Who can listen, until TLS is asked for.
    pub channel: Channel,
    /// The server's RSA key, if it is known.
    pub server_key: Option<&'a ServerKey>,
    /// Whether the server may be asked for its RSA key, and believed.
    pub may_ask_for_key: bool,
    /// Whether what follows the login is to be compressed.
    pub compressed: bool,
}

/// Why the server did not let us in.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// The server refused.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// We cannot, or will not, do what it asks.
    #[error("cannot log in: {0}")]
    Refused(String),
}

/// What a greeting says.
#[derive(Debug, Clone)]
pub struct Greeting {
    /// Version text of the server.
    pub server_version: String,
    /// The server's number for this connection.
    pub connection_id: u32,
    /// How its result sets will look.
    pub dialect: Dialect,
    /// Whether it takes TLS.
    pub offers_tls: bool,
}

/// What both sides can.
#[derive(Debug, Clone, Copy)]
struct Terms {
    capabilities: CapabilityFlags,
    mariadb: MariadbCapabilities,
    /// utf8mb4 is known.
    modern: bool,
}

/// A login in progress: after the greeting [`Dialogue::request_tls`] if wanted, then
/// [`Dialogue::response`], then [`Dialogue::packet`] for each packet of the server until
/// [`Step::Done`].
pub struct Dialogue<'a> {
    login: Login<'a>,
    terms: Terms,
    nonce: Vec<u8>,
    /// By name and as it runs.
    plugin: (AuthPlugin<'static>, AuthProc),
    /// The server was asked for its key.
    awaits_key: bool,
    packets: u32,
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
    login: &'a Login<'a>,
    nonce: &'a [u8],
}

impl Context for Secrets<'_> {
    fn pass(&self) -> &[u8] {
        self.login.password.as_bytes()
    }
    // The password itself and the server's key are ours to handle: `Dialogue::password`.
    fn is_ipc_transport(&self) -> bool {
        false
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
    /// Reads the server's `greeting`.
    ///
    /// # Errors
    /// An error packet instead of a greeting (too many connections, host not allowed), a server
    /// too old, or bytes that are no greeting.
    pub fn start(login: Login<'a>, greeting: &[u8]) -> Result<(Self, Greeting), AuthError> {
        if let Some(error) = ServerError::parse(greeting, greeting.len()) {
            return Err(error.into());
        }
        let packet =
            parse_greeting(greeting).ok_or_else(|| refused("the greeting is not that of a MySQL or MariaDB server"))?;
        let theirs = packet.capabilities();
        if !theirs.contains(CapabilityFlags::CLIENT_PROTOCOL_41 | CapabilityFlags::CLIENT_SECURE_CONNECTION) {
            return Err(refused("the server is older than 4.1"));
        }
        let mut terms = Terms::new(&packet, login.schema.is_some());
        if login.compressed {
            if !theirs.contains(CapabilityFlags::CLIENT_COMPRESS) {
                return Err(refused(NO_COMPRESSION));
            }
            terms.capabilities |= CapabilityFlags::CLIENT_COMPRESS;
        }
        // A plugin we do not speak may still let us in through a switch.
        let offered = packet.auth_plugin().map(AuthPlugin::into_owned);
        let spoken = offered.and_then(|plugin| init(&plugin).ok().map(|running| (plugin, running)));
        let native = AuthPlugin::MysqlNativePassword;
        let plugin = match spoken {
            Some(plugin) => plugin,
            None => (native.clone(), init(&native)?),
        };
        let greeting = Greeting {
            server_version: without_replication_prefix(&text_of(packet.server_version_ref())),
            connection_id: packet.connection_id(),
            dialect: terms.dialect(),
            offers_tls: theirs.contains(CapabilityFlags::CLIENT_SSL),
        };
        let dialogue = Self { login, terms, nonce: packet.nonce(), plugin, awaits_key: false, packets: 0 };
        Ok((dialogue, greeting))
    }

    /// The payload after which both sides speak TLS, on a channel as good as `channel`.
    pub fn request_tls(&mut self, channel: Channel) -> Vec<u8> {
        self.login.channel = channel;
        self.terms.capabilities |= CapabilityFlags::CLIENT_SSL;
        let request = SslRequest::new(self.terms.capabilities, PACKET_MAX, self.terms.collation() as u8)
            .with_mariadb_capabilities(self.terms.mariadb);
        let mut payload = Vec::new();
        request.serialize(&mut payload);
        payload
    }

    /// The payload that answers the greeting.
    ///
    /// # Errors
    /// A plugin we cannot or will not serve.
    pub fn response(&mut self) -> Result<Vec<u8>, AuthError> {
        let proof = match self.challenge(None)? {
            Step::Send(proof) => proof,
            Step::Read | Step::Done => Vec::new(),
        };
        let plugin = &self.plugin.0;
        let response = HandshakeResponse::new(
            Some(proof),
            if self.terms.modern { (5, 5, 3) } else { (5, 0, 0) },
            Some(self.login.user.as_bytes()),
            self.login.schema.map(str::as_bytes),
            self.terms.capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH).then(|| plugin.clone()),
            self.terms.capabilities,
            None,
            PACKET_MAX,
        );
        let mut payload = Vec::new();
        response.with_mariadb_ext_capabilities(self.terms.mariadb).serialize(&mut payload);
        Ok(payload)
    }

    /// Handles the server's next packet.
    ///
    /// # Errors
    /// Access denied, or a plugin we cannot or will not serve.
    pub fn packet(&mut self, payload: &[u8]) -> Result<Step, AuthError> {
        self.packets += 1;
        if self.packets > PACKETS_MAX {
            return Err(refused("the server does not come to an end"));
        }
        match payload.first() {
            Some(&OK) => Ok(Step::Done),
            Some(&ERROR) => Err(ServerError::parse(payload, payload.len())
                .map_or_else(|| refused("an error packet cut short"), AuthError::Server)),
            Some(&MORE_DATA) => self.challenge(Some(&payload[1..])),
            Some(&SWITCH) => self.switch(payload),
            _ => Err(refused(UNKNOWN_PACKET)),
        }
    }

    fn switch(&mut self, payload: &[u8]) -> Result<Step, AuthError> {
        // The one-byte form asks for the password hash of MySQL 3.23.
        let request = AuthSwitchRequest::deserialize((), &mut ParseBuf(payload)).map_err(|_| refused(OLD_PASSWORD))?;
        let plugin = request.auth_plugin().into_owned();
        let running = init(&plugin)?;
        self.plugin = (plugin, running);
        self.awaits_key = false;
        self.nonce = request.plugin_data().to_vec();
        self.challenge(None)
    }

    /// One step of the plugin, over `data` or else the nonce.
    fn challenge(&mut self, data: Option<&[u8]>) -> Result<Step, AuthError> {
        let asked = std::mem::take(&mut self.awaits_key);
        match (&self.plugin.0, data) {
            (_, Some(pem)) if asked => {
                let key = ServerKey::parse(pem).ok_or_else(|| refused("the server's RSA key is none"))?;
                return self.sealed(&key);
            }
            (AuthPlugin::MysqlClearPassword, _) if self.login.channel != Channel::Private => {
                return Err(refused(CLEAR_PASSWORD));
            }
            (AuthPlugin::CachingSha2Password, Some([FULL_LOGIN])) => {
                return self.password(self.login.channel != Channel::Open, ASK_CACHING_SHA2);
            }
            (AuthPlugin::Sha256Password, None) if !self.login.password.is_empty() => {
                // A unix socket does not count as safe to this plugin of the server.
                return self.password(self.terms.capabilities.contains(CapabilityFlags::CLIENT_SSL), ASK_SHA256);
            }
            // It would take a key that was not asked for.
            (AuthPlugin::Sha256Password, Some(_)) => return Err(refused(UNKNOWN_PACKET)),
            _ => {}
        }
        let secrets = Secrets { login: &self.login, nonce: &self.nonce };
        let response = self.plugin.1.run(secrets, data.unwrap_or(&self.nonce));
        Ok(match response.map_err(|error| AuthError::Refused(shown(&error.to_string())))? {
            Response::Next { packet: Some(data) } | Response::Last { packet: Some(data) } => Step::Send(data),
            Response::Next { packet: None } | Response::Last { packet: None } => Step::Read,
        })
    }

    /// The password itself: `clear`, or encrypted against readers on the way. `ask` asks for the
    /// key that this needs.
    fn password(&mut self, clear: bool, ask: u8) -> Result<Step, AuthError> {
        if clear {
            return Ok(Step::Send([self.login.password.as_bytes(), &[0]].concat()));
        }
        match self.login.server_key {
            Some(key) => self.sealed(key),
            None if self.login.may_ask_for_key || self.login.channel == Channel::Private => {
                self.awaits_key = true;
                Ok(Step::Send(vec![ask]))
            }
            None => Err(refused(NEEDS_KEY)),
        }
    }

    fn sealed(&self, key: &ServerKey) -> Result<Step, AuthError> {
        let sealed = key.seal(self.login.password, &self.nonce);
        sealed.map(Step::Send).ok_or_else(|| refused("the password is too long for the server's RSA key"))
    }
}

impl Terms {
    fn new(greeting: &HandshakePacket<'_>, with_schema: bool) -> Self {
        let theirs = greeting.capabilities();
        let mut capabilities = theirs & wanted_capabilities();
        capabilities.set(CapabilityFlags::CLIENT_CONNECT_WITH_DB, with_schema);
        // MariaDB's own capabilities stand where MySQL has nothing; it leaves out this flag to say so.
        let is_mariadb = !theirs.contains(CapabilityFlags::CLIENT_LONG_PASSWORD);
        let mut mariadb = MariadbCapabilities::empty();
        if is_mariadb && capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF) {
            mariadb = greeting.mariadb_ext_capabilities() & MariadbCapabilities::MARIADB_CLIENT_CACHE_METADATA;
        }
        let modern =
            !["4.", "5.0.", "5.1."].iter().any(|old| greeting.server_version_ref().starts_with(old.as_bytes()));
        Self { capabilities, mariadb, modern }
    }

    fn dialect(self) -> Dialect {
        if !self.mariadb.is_empty() {
            Dialect::CachedMetadata
        } else if self.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF) {
            Dialect::Ok
        } else {
            Dialect::Eof
        }
    }

    fn collation(self) -> CollationId {
        if self.modern { CollationId::UTF8MB4_GENERAL_CI } else { CollationId::UTF8MB3_GENERAL_CI }
    }
}

fn refused(why: &str) -> AuthError {
    AuthError::Refused(why.into())
}

fn text_of(bytes: &[u8]) -> String {
    printable(bytes, bytes.len(), CHARS_MAX)
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
        | CapabilityFlags::CLIENT_PS_MULTI_RESULTS
        | CapabilityFlags::CLIENT_PLUGIN_AUTH
        | CapabilityFlags::CLIENT_DEPRECATE_EOF
}

/// A plugin made ready.
fn init(plugin: &AuthPlugin<'_>) -> Result<AuthProc, AuthError> {
    if *plugin == AuthPlugin::MysqlOldPassword {
        return Err(refused(OLD_PASSWORD));
    }
    AuthProc::init(plugin).map_err(|_| {
        AuthError::Refused(format!(
            "the account uses the authentication plugin {}, which is not supported: use mysql_native_password, \
             caching_sha2_password, sha256_password or ed25519",
            text_of(plugin.as_bytes())
        ))
    })
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
#[path = "auth_tests.rs"]
mod tests;
