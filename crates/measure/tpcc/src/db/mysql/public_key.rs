//! RSA with OAEP padding (RFC 8017 §7.1.1, SHA-1). On an unencrypted connection,
//! `caching_sha2_password` uses it for a password that is not in the server's cache yet.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use num_bigint::BigUint;
use sha1::{Digest as _, Sha1};

const HASH_LENGTH: usize = 20;
const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;
const INTEGER: u8 = 0x02;

/// An RSA public key of a server.
#[derive(Debug)]
pub(super) struct PublicKey {
    modulus: BigUint,
    exponent: BigUint,
}

impl PublicKey {
    /// Parses the PEM of `PUBLIC KEY` (RFC 5280) or `RSA PUBLIC KEY` (RFC 8017 §A.1.1).
    pub(super) fn of_pem(pem: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(pem).ok()?;
        let (_, rest) = text.split_once("-----BEGIN ")?;
        let (kind, rest) = rest.split_once("-----")?;
        let (body, _) = rest.split_once("-----END ")?;
        let body: String = body.split_whitespace().collect();
        let der = STANDARD.decode(body).ok()?;
        let (outer, _) = element(SEQUENCE, &der)?;
        let key = match kind {
            "RSA PUBLIC KEY" => outer,
            "PUBLIC KEY" => {
                let (_algorithm, rest) = element(SEQUENCE, outer)?;
                let (bits, _) = element(BIT_STRING, rest)?;
                element(SEQUENCE, bits.strip_prefix(&[0])?)?.0
            }
            _ => return None,
        };
        let (modulus, rest) = element(INTEGER, key)?;
        let (exponent, _) = element(INTEGER, rest)?;
        let modulus = BigUint::from_bytes_be(modulus);
        let exponent = BigUint::from_bytes_be(exponent);
        // Smaller keys are too short for a password, and no server uses them.
        (modulus.bits() >= 1024).then_some(Self { modulus, exponent })
    }

    /// Encrypts a message with a random `seed`. `None` if the message is too long for the key.
    pub(super) fn encrypt(&self, message: &[u8], seed: [u8; HASH_LENGTH]) -> Option<Vec<u8>> {
        let length = usize::try_from(self.modulus.bits().div_ceil(8)).ok()?;
        let fill = length.checked_sub(message.len() + 2 * HASH_LENGTH + 2)?;
        let mut block = Sha1::digest(b"").to_vec();
        block.resize(HASH_LENGTH + fill, 0);
        block.push(1);
        block.extend(message);
        mask(&mut block, &seed);
        let mut hidden_seed = seed;
        mask(&mut hidden_seed, &block);
        let padded = [&hidden_seed[..], &block].concat();
        let number = BigUint::from_bytes_be(&padded).modpow(&self.exponent, &self.modulus);
        let digits = number.to_bytes_be();
        let mut encrypted = vec![0; length - digits.len()];
        encrypted.extend(digits);
        Some(encrypted)
    }
}

/// Applies MGF1 of `seed` to `data` by XOR (RFC 8017 §B.2.1).
fn mask(data: &mut [u8], seed: &[u8]) {
    for (counter, chunk) in (0u32..).zip(data.chunks_mut(HASH_LENGTH)) {
        let hash = Sha1::new()
            .chain_update(seed)
            .chain_update(counter.to_be_bytes())
            .finalize();
        for (byte, key) in chunk.iter_mut().zip(hash) {
            *byte ^= key;
        }
    }
}

/// The contents of a DER element with this tag, and the bytes after the element.
fn element(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = der.strip_prefix(&[tag])?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        short @ 0..=0x7f => (usize::from(*short), rest),
        0x81 => (usize::from(*rest.first()?), &rest[1..]),
        0x82 => {
            let (two, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*two)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}
