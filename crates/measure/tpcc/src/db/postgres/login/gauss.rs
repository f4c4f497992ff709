//! openGauss's own authentication: the keys of RFC 5802 in messages of its own format.
//!
//! The server stores salt, server key and stored key as hexadecimal text (`pg_authid.rolpassword`)
//! and sends the salt and a token. PBKDF2 over HMAC-SHA1 derives the client key from the password.
//! The hash of the client key is the stored key. The answer is the client key xor the HMAC of the
//! token under the stored key. Source: openGauss's `crypt.cpp` and `auth.cpp`.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit as _, Mac as _};
use md5::{Digest as _, Md5};
use sha1::Sha1;
use sha2::Sha256;
use sm3::Sm3;

/// Length of keys and hashes in bytes, and as hexadecimal text.
const KEY_BYTES: usize = 32;
const KEY_DIGITS: usize = 2 * KEY_BYTES;
/// Length of the token as text.
const TOKEN_DIGITS: usize = 8;
/// The maximum of `auth_iteration_count`. More iterations would take minutes of CPU time.
const MAX_ITERATIONS: u32 = 134_217_728;
/// The default of `auth_iteration_count`, for messages that do not contain the number.
const ITERATIONS: u32 = 10_000;
/// Codes of the hash with which the server has stored the password: SHA-256 or SM3.
const KEPT_BY_SHA256: u32 = 2;
const KEPT_BY_SM3: u32 = 3;

/// The hash that converts a client key into a stored key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hash {
    Sha256,
    Sm3,
}

/// A request of the server. Its format is: code of the hash, salt, token, iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request<'a> {
    salt: &'a [u8],
    token: &'a [u8],
    iterations: u32,
}

/// Whether a request has openGauss's format. PostgreSQL's begins with the name of a mechanism.
pub(super) fn is_own(data: &[u8]) -> bool {
    data.first() == Some(&0) && data.len() > 4
}

/// Parses a request in the format of protocol 3.51; `None` if it has another format.
pub(super) fn request(data: &[u8], hash: Hash) -> Option<Request<'_>> {
    let wanted = match hash {
        Hash::Sha256 => KEPT_BY_SHA256,
        Hash::Sm3 => KEPT_BY_SM3,
    };
    let (kept_by, rest) = data.split_first_chunk()?;
    let (salt, rest) = rest.split_at_checked(KEY_DIGITS)?;
    let (token, rest) = rest.split_at_checked(TOKEN_DIGITS)?;
    let iterations = u32::from_be_bytes(rest.try_into().ok()?);
    let is_sound = u32::from_be_bytes(*kept_by) == wanted
        && bytes_of(salt).is_some()
        && bytes_of(token).is_some()
        && (1..=MAX_ITERATIONS).contains(&iterations);
    is_sound.then_some(Request {
        salt,
        token,
        iterations,
    })
}

/// The answer to a request, as text.
pub(super) fn proof(password: &str, request: &Request<'_>, hash: Hash) -> Option<String> {
    let keys = Keys::of(password, request.salt, request.iterations, hash)?;
    let mask = hmac(&keys.stored, &bytes_of(request.token)?)?;
    let masked: Vec<u8> = mask.iter().zip(&keys.client).map(|(a, b)| a ^ b).collect();
    Some(text_of(&masked))
}

/// The answer to the request `MD5_SHA256`: salt, then four bytes. The server sends this request if
/// pg_hba.conf says `md5` and the password is stored with SHA-256.
///
/// The server hashes the stored text, including the number of iterations at its end, which the
/// request does not contain. Published drivers omit this end and use 2048 iterations.
pub(super) fn md5_proof(password: &str, data: &[u8]) -> Option<String> {
    let (salt, md5_salt) = data.split_at_checked(KEY_DIGITS)?;
    let md5_salt: [u8; 4] = md5_salt.try_into().ok()?;
    let keys = Keys::of(password, salt, ITERATIONS, Hash::Sha256)?;
    let mut md5 = Md5::new();
    md5.update(salt);
    md5.update(text_of(&keys.server));
    md5.update(text_of(&keys.stored));
    md5.update(written(ITERATIONS));
    md5.update(md5_salt);
    Some(format!("md5{}", text_of(&md5.finalize())))
}

/// The number of iterations as it is stored after the keys: each digit, beginning with the last, is
/// added to one of these letters.
fn written(iterations: u32) -> Vec<u8> {
    let mut rest = iterations;
    let add = |letter: &u8| {
        let digit = u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        letter + digit
    };
    b"ecdfdcefade".iter().map(add).collect()
}

struct Keys {
    server: [u8; KEY_BYTES],
    client: [u8; KEY_BYTES],
    stored: [u8; KEY_BYTES],
}

impl Keys {
    fn of(password: &str, salt: &[u8], iterations: u32, hash: Hash) -> Option<Self> {
        let mut salted = [0; KEY_BYTES];
        let salt = bytes_of(salt)?;
        pbkdf2::pbkdf2_hmac::<Sha1>(password.as_bytes(), &salt, iterations, &mut salted);
        // "Sever" is the server's spelling.
        let (server, client) = (hmac(&salted, b"Sever Key")?, hmac(&salted, b"Client Key")?);
        let stored = match hash {
            Hash::Sha256 => Sha256::digest(client).into(),
            Hash::Sm3 => Sm3::digest(client).into(),
        };
        Some(Self {
            server,
            client,
            stored,
        })
    }
}

fn hmac(key: &[u8], data: &[u8]) -> Option<[u8; KEY_BYTES]> {
    let mut hmac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    hmac.update(data);
    Some(hmac.finalize().into_bytes().into())
}

/// Converts hexadecimal text into bytes.
fn bytes_of(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
        _ => None,
    };
    text.chunks(2).map(byte).collect()
}

fn text_of(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
#[path = "gauss_tests.rs"]
mod tests;
