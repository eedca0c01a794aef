//! Handshake and authentication. The packets' layout and the plugins' arithmetic come from
//! `mysql_common`; this file decides what is answered to whom.

use mysql_common::auth::plugins::{AuthProc, ChallengeResponsePlugin, Context, Response};
use mysql_common::collations::CollationId;
use mysql_common::constants::{CapabilityFlags, MariadbCapabilities};
use mysql_common::crypto::rsa::{GetRandom, Pkcs1OaepPadding, PublicKey};
use mysql_common::io::ParseBuf;
use mysql_common::num_bigint::BigUint;
use mysql_common::packets::{AuthPlugin, AuthSwitchRequest, HandshakePacket, HandshakeResponse, SslRequest};
use mysql_common::proto::{MyDeserialize, MySerialize};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject as _;

use super::reply::{Dialect, ServerError};
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
            return Err(refused("the server does not end the login"));
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
        let awaits_key = std::mem::take(&mut self.awaits_key);
        match (&self.plugin.0, data) {
            (_, Some(pem)) if awaits_key => {
                let key = ServerKey::parse(pem).ok_or_else(|| refused("the server's RSA key is not valid"))?;
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

/// Sizes of a modulus that make sense, in bits. Encrypting takes longer with the size.
const MODULUS_BITS: std::ops::RangeInclusive<u64> = 1024..=16_384;

/// Largest public exponent, in bits; 65,537 is usual.
const EXPONENT_BITS_MAX: u64 = 64;

/// Bytes that OAEP with SHA-1 adds at least.
const PADDING: usize = 42;

/// Content type of DER.
const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;
const INTEGER: u8 = 0x02;

/// A public key.
#[derive(Debug)]
pub struct ServerKey(PublicKey);

impl ServerKey {
    /// Reads a key in PEM (`BEGIN PUBLIC KEY`), strictly, as it may come from anyone.
    pub fn parse(pem: &[u8]) -> Option<Self> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem).ok()?;
        let mut info = take(SEQUENCE, &mut der.as_ref())?;
        take(SEQUENCE, &mut info)?;
        let mut key = take(BIT_STRING, &mut info)?.strip_prefix(&[0])?;
        let mut numbers = take(SEQUENCE, &mut key)?;
        let modulus = BigUint::from_bytes_be(take(INTEGER, &mut numbers)?);
        let exponent = BigUint::from_bytes_be(take(INTEGER, &mut numbers)?);
        let sane = MODULUS_BITS.contains(&modulus.bits()) && (2..=EXPONENT_BITS_MAX).contains(&exponent.bits());
        // An even modulus is no product of two large primes.
        (sane && modulus.bit(0)).then(|| Self(PublicKey::new(modulus, exponent)))
    }

    /// Encrypts `password`, mixed with the server's `nonce` so that it serves this login only.
    /// `None` if it is too long for the key.
    pub fn seal(&self, password: &str, nonce: &[u8]) -> Option<Vec<u8>> {
        let block = password.bytes().chain([0]).zip(nonce.iter().cycle());
        let block: Vec<u8> = block.map(|(byte, mask)| byte ^ mask).collect();
        if block.len() + PADDING > self.0.num_octets() || nonce.is_empty() {
            return None;
        }
        self.0.encrypt_block(&block, Pkcs1OaepPadding::new(GetRandom)).ok()
    }
}

/// Takes the content of a DER element of type `tag` off the front of `bytes`.
fn take<'a>(tag: u8, bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let rest = bytes.strip_prefix(&[tag])?;
    let (length, rest) = match rest.split_first()? {
        (length @ 0..=0x7f, rest) | (0x81, [length, rest @ ..]) => (usize::from(*length), rest),
        (0x82, [high, low, rest @ ..]) => (usize::from(u16::from_be_bytes([*high, *low])), rest),
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some(content)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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

    /// Made for these tests.
    const KEY: &str = include_str!("../../tests/keys/rsa-1024.pub.pem");

    #[test]
    fn a_password_is_sealed_with_a_key() {
        let key = ServerKey::parse(KEY.as_bytes()).unwrap();
        let sealed = key.seal("secret", &[7; 20]).unwrap();
        assert_eq!(sealed.len(), 128);
        assert_ne!(sealed, key.seal("secret", &[7; 20]).unwrap());
    }

    #[test]
    fn a_password_too_long_for_the_key_is_none_to_it() {
        let key = ServerKey::parse(KEY.as_bytes()).unwrap();
        let longest = 128 - PADDING - 1;
        assert!(key.seal(&"x".repeat(longest), &[7; 20]).is_some());
        assert!(key.seal(&"x".repeat(longest + 1), &[7; 20]).is_none());
        assert!(key.seal("x", &[]).is_none());
    }

    #[test]
    fn what_is_no_key_is_none() {
        for text in ["", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"] {
            assert!(ServerKey::parse(text.as_bytes()).is_none());
        }
    }

    proptest! {
        #[test]
        fn a_damaged_key_never_panics(at in 0..KEY.len(), byte: u8, cut: bool) {
            let mut pem = KEY.as_bytes().to_vec();
            pem[at] = byte;
            if cut {
                pem.truncate(at);
            }
            if let Some(key) = ServerKey::parse(&pem) {
                let _ = key.seal("secret", &[7; 20]);
            }
        }
    }
}
