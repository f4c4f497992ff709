//! Tests of openGauss's authentication methods with a scripted server that checks them like
//! openGauss's `crypt.cpp`.
//!
//! The server has no passwords. It has the verifiers that real servers stored, as published at
//! https://www.modb.pro/db/229744 and https://www.modb.pro/db/393728. No real openGauss server
//! was available for these tests.

use hmac::{Hmac, KeyInit as _, Mac as _};
use md5::{Digest as _, Md5};
use saiga_tpcc::db::{ConnectError, Session};
use saiga_tpcc::props::Engine;
use sha2::Sha256;
use sm3::Sm3;

use crate::scripted::{Peer, Scripted};
use crate::server::log_in;

/// Salt, server key and stored key from a row of `pg_authid`, without the prefix `sha256` or `sm3`.
const KEPT: &str = "8ec7ac7ada43d12a226934c43c5f83f04985898fba7e77bbee948ae3454fe4fe\
                    cb3fed3f1a84834685cc25cdecc67882c83e43c8a5629f1c17236e54cfe05d51\
                    1374b5d5b6da2cd98cade9cdab91278c81f12dc0b3c7444669ae001e9e6366a0";
const PASSWORD: &str = "abcd@1234";
const KEPT_BY_SM3: &str = "5235899e0406d85e4e086db4db7025d53acddb10b86d9988d7b2a1bc25032236\
                           5df5fcbffc508287f1ef3205a81f8d63f43b87b16235ce7c582a0b6fa226154d\
                           7d038a0a9c2bd85aed2a9273cdd55864a481e967b62c63579441c1b03f6c550b";
const PASSWORD_BY_SM3: &str = "Admin@1234";
/// The suffix of the verifier: 10,000 iterations.
const ITERATIONS: (i32, &str) = (10_000, "ecdfecefade");
const TOKEN: &str = "2cf71f10";
const MD5_SALT: [u8; 4] = [0xfe, 1, 0, 0x7f];
const VERSION: &str = "(openGauss 5.0.1 build 33b035fd) compiled at 2023-12-15 20:28:19";

/// The script of the server for one connection.
type Part = Box<dyn FnOnce(Peer) + Send>;

fn unhex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.map(byte).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hmac(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut hmac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    hmac.update(data);
    hmac.finalize().into_bytes().to_vec()
}

/// Reads the client's answer to a password request.
fn answer(peer: &mut Peer) -> String {
    let (tag, body) = peer.message().unwrap();
    assert_eq!(tag, b'p');
    let text = String::from_utf8(body).unwrap();
    text.strip_suffix('\0').unwrap().to_owned()
}

fn decide(mut peer: Peer, is_right: bool) {
    if is_right {
        peer.welcome(VERSION);
        assert_eq!(peer.message().unwrap().0, b'X');
    } else {
        let said = b"SFATAL\0C28P01\0MInvalid username/password,login denied.\0\0";
        peer.send(b'E', said);
    }
}

/// Codes 10 and 13 (auth.cpp). The unmasked proof is the client key. Its hash is the stored key.
fn check_proof(mut peer: Peer, kept: &str, code: i32, kept_by: i32) {
    let (version, parameters) = peer.start_up();
    assert!(
        String::from_utf8(parameters)
            .unwrap()
            .contains("database\0tpcc\0")
    );
    let head = [code.to_be_bytes(), kept_by.to_be_bytes()].concat();
    let begin = [&head[..], &kept.as_bytes()[..64], TOKEN.as_bytes()].concat();
    if version != [0, 3, 0, 51] {
        // Before version 3.51, the server sends its signature but not the number of iterations.
        let signature = hex(&hmac(&unhex(&kept[64..128]), &unhex(TOKEN)));
        peer.send(b'R', &[&begin, signature.as_bytes()].concat());
        assert_eq!(peer.message(), None);
        return;
    }
    peer.send(b'R', &[&begin[..], &ITERATIONS.0.to_be_bytes()].concat());
    let proof = unhex(&answer(&mut peer));
    let mask = hmac(&unhex(&kept[128..]), &unhex(TOKEN));
    let client_key: Vec<u8> = proof.iter().zip(mask).map(|(a, b)| a ^ b).collect();
    let hash = match code {
        13 => Sm3::digest(&client_key).to_vec(),
        _ => Sha256::digest(&client_key).to_vec(),
    };
    decide(peer, hex(&hash) == kept[128..]);
}

/// Code 11 (crypt.cpp, `uaMD5`): the MD5 hash of the verifier without `sha256`, and of the salt.
fn check_md5(mut peer: Peer) {
    peer.start_up();
    let salt = &KEPT.as_bytes()[..64];
    peer.send(b'R', &[&[0, 0, 0, 11], salt, &MD5_SALT].concat());
    let mut md5 = Md5::new();
    md5.update(KEPT);
    md5.update(ITERATIONS.1);
    md5.update(MD5_SALT);
    let wanted = format!("md5{}", hex(&md5.finalize()));
    let is_right = answer(&mut peer) == wanted;
    decide(peer, is_right);
}

fn part(check: impl FnOnce(Peer) + Send + 'static) -> Part {
    Box::new(check)
}

fn sha256() -> Part {
    part(|peer| check_proof(peer, KEPT, 10, 2))
}

/// A name, a scripted server, and the right password for it.
type Way = (&'static str, fn() -> Part, &'static str);
type Entered = Result<saiga_tpcc::db::Server, ConnectError>;

fn enter(parts: Vec<Part>, system: &str, password: &str) -> Entered {
    let server = Scripted::play(parts);
    let session = log_in(&server.url(system), "test", password);
    let entered = session.map(|session: Box<dyn Session>| session.server().clone());
    server.end();
    entered
}

#[test]
fn only_the_right_password_is_accepted() {
    let ways: [Way; 3] = [
        ("sha256", sha256, PASSWORD),
        ("md5_sha256", || part(check_md5), PASSWORD),
        (
            "sm3",
            || part(|peer| check_proof(peer, KEPT_BY_SM3, 13, 3)),
            PASSWORD_BY_SM3,
        ),
    ];
    for (name, check, password) in ways {
        let known = enter(vec![check()], "opengauss", password).unwrap();
        assert_eq!(
            (known.engine, known.version.as_str()),
            (Engine::OpenGauss, "openGauss 5.0.1"),
            "{name}"
        );
        for wrong in ["abcd@1235", ""] {
            let error = enter(vec![check()], "opengauss", wrong).unwrap_err();
            assert!(
                matches!(error, ConnectError::Login { .. }),
                "{name}: {error}"
            );
            assert!(
                error.to_string().starts_with("opengauss at 127.0.0.1:"),
                "{error}"
            );
        }
    }
}

/// openGauss's guide to BenchmarkSQL uses `jdbc:postgresql:` URLs with openGauss's driver.
#[test]
fn opengauss_is_recognised_behind_a_url_of_postgresql() {
    let known = enter(vec![sha256(), sha256()], "postgresql", PASSWORD).unwrap();
    assert_eq!(known.engine, Engine::OpenGauss);
    let error = enter(vec![sha256(), sha256()], "postgresql", "wrong").unwrap_err();
    assert!(matches!(error, ConnectError::Login { .. }), "{error}");
}

#[test]
fn an_unknown_authentication_method_is_named() {
    let iam = part(|mut peer| {
        peer.start_up();
        peer.send(b'R', &[0, 0, 0, 14]);
    });
    let said = enter(vec![iam], "opengauss", PASSWORD)
        .unwrap_err()
        .to_string();
    assert!(said.contains(
        "requires a log-in by an IAM token, which is not supported; let its pg_hba.conf"
    ));
}

#[test]
fn a_starting_server_is_a_temporary_refusal() {
    for code in ["57P03", "57P01", "53300"] {
        let starting = part(move |mut peer: Peer| {
            peer.start_up();
            let said = format!("SFATAL\0C{code}\0Mthe database system is starting up\0\0");
            peer.send(b'E', said.as_bytes());
        });
        let error = enter(vec![starting], "postgresql", PASSWORD).unwrap_err();
        assert!(
            matches!(error, ConnectError::Refused { for_now: true, .. }),
            "{error}"
        );
    }
}
