//! The RSA key of a MySQL server, with which a password is encrypted where TLS does not do it.

use mysql_common::crypto::rsa::{GetRandom, Pkcs1OaepPadding, PublicKey};
use mysql_common::num_bigint::BigUint;
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject as _;

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
    use super::*;
    use proptest::prelude::*;

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
