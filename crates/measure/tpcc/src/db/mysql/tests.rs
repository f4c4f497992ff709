//! Tests the log-in against a scripted server, and the hashes and the encryption of passwords.
//!
//! The hashes are from go-sql-driver's `auth_test.go`. The cipher text was decrypted with
//! `openssl pkeyutl -decrypt -pkeyopt rsa_padding_mode:oaep`.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::answer::End;
use super::fault::Fault;
use super::greeting::{Agreed, LoginUser};
use super::link::Link;
use super::login::{self, LoginFault};
use super::public_key::PublicKey;
use super::scramble;
use super::wire::Wire;
use crate::db::rows::Rows;
use crate::db::stream::Stream;
use crate::db::tls::{Tls, TlsError};

const SALT: [u8; 20] = [
    10, 47, 74, 111, 75, 73, 34, 48, 88, 76, 114, 74, 37, 13, 3, 80, 82, 2, 23, 21,
];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn passwords_become_what_other_drivers_make_of_them() {
    for (password, expected) in [
        (
            "secret",
            "f490e76f66d9d86665ce54d98c78d0acfe2fb0b08b423da807144873d30b312c",
        ),
        (
            "secret2",
            "abc3934a012cf342e876071c8ee202de51785b430258a7a0138bc79c4d800bc6",
        ),
        ("", ""),
    ] {
        assert_eq!(
            hex(&scramble::caching_sha2(password.as_bytes(), &SALT)),
            expected
        );
    }
    assert_eq!(scramble::native(b"", &SALT), b"");
    assert_eq!(scramble::masked(b"ab", &[1, 2]), [b'a' ^ 1, b'b' ^ 2, 1]);
}

const PUBLIC_KEY: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA9dgipzzmVpV9arbNkfm3\n\
76tfVTHgqyEI701hWn9kjfQO9UJ1BOpUO1jUwCtMXXq1/dj1E3U01uJYQBeB4CuV\n\
f2VKyqsyvOy0BSywN3a0hfUOm3qekm/fdrULbfELaxUoOR86rjQ+fz3vUA0t/U+8\n\
0VKYgo8aNSMHPQGpGCME+oBBpeZo9TtEJx0xwfKM//7yXeVWoCsx3JgckJxb7kXf\n\
wc3s9j6tS9Bvz54+t2v9Suil2+vRg7gGuRNSOjfkYjoeJAwN92xm6E9RkMI6Dz+L\n\
f7goh9OE0UqYIaNiu8DERBtX/PjJcSPqxVYGFxsfu5Q14XnG9S9Rggk/pEh+P54h\n\
pwIDAQAB\n\
-----END PUBLIC KEY-----
";
const RSA_PUBLIC_KEY: &str = "\
-----BEGIN RSA PUBLIC KEY-----\n\
MIIBCgKCAQEA9dgipzzmVpV9arbNkfm376tfVTHgqyEI701hWn9kjfQO9UJ1BOpU\n\
O1jUwCtMXXq1/dj1E3U01uJYQBeB4CuVf2VKyqsyvOy0BSywN3a0hfUOm3qekm/f\n\
drULbfELaxUoOR86rjQ+fz3vUA0t/U+80VKYgo8aNSMHPQGpGCME+oBBpeZo9TtE\n\
Jx0xwfKM//7yXeVWoCsx3JgckJxb7kXfwc3s9j6tS9Bvz54+t2v9Suil2+vRg7gG\n\
uRNSOjfkYjoeJAwN92xm6E9RkMI6Dz+Lf7goh9OE0UqYIaNiu8DERBtX/PjJcSPq\n\
xVYGFxsfu5Q14XnG9S9Rggk/pEh+P54hpwIDAQAB\n\
-----END RSA PUBLIC KEY-----
";
/// `secret` with its NUL, encrypted for the key with the seed 0 to 19.
const ENCRYPTED: &str = "\
YJEpTuPLEUOadVCrktkPbJtw5LDZeJEv2wqsgYO7wAS26uOMLPF0uXOU6s+kq/Sz6mzjjjaLvXbV\
HV2Egj7rLYJIW5V/AgxSgxjwW1uPnMEd2fIaZFczCgRZwzNCS3no5lQhPjCknNq31quOPbC36Kdx\
S8WpmM9p0XmcgYaanBeoaeTmq1Nfz3lkJvV7g8+WNDbF+P9YVlYo9yzXazg6aGp4oW+UbM5Sqm3V\
UG5UXuEYAxxqOKWlHoCNoA7Ks/gdF6MvtMMhoyyQhAyL88VLtGHUdM22JPZatErFOQOc3Azlbedu\
XA4l6w1/Gwv6lBJLndupAvM7tyP1yIh3wZWpPw==";

#[test]
fn a_password_is_encrypted_for_keys_in_both_forms() {
    let mut seed = [0; 20];
    seed.iter_mut().zip(0..).for_each(|(byte, at)| *byte = at);
    for pem in [PUBLIC_KEY, RSA_PUBLIC_KEY] {
        let key = PublicKey::of_pem(pem.as_bytes()).unwrap();
        assert_eq!(
            STANDARD.encode(key.encrypt(b"secret\0", seed).unwrap()),
            ENCRYPTED
        );
        assert_eq!(
            key.encrypt(&[b'x'; 214], seed).map(|it| it.len()),
            Some(256)
        );
        assert_eq!(key.encrypt(&[b'x'; 215], seed), None);
    }
}

#[test]
fn what_is_no_key_is_none() {
    let body = PUBLIC_KEY.lines().nth(1).unwrap();
    for bad in [
        "".to_owned(),
        "-----BEGIN PUBLIC KEY-----".to_owned(),
        PUBLIC_KEY.replace("PUBLIC", "PRIVATE"),
        PUBLIC_KEY.replace("MIIB", "MIIC"),
        PUBLIC_KEY.replace(body, ""),
        format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----"),
    ] {
        assert!(PublicKey::of_pem(bad.as_bytes()).is_none(), "{bad}");
    }
    assert!(PublicKey::of_pem(&[0xff, 0xfe]).is_none());
}

/// One step of a scripted server.
enum Step {
    Say(Vec<u8>),
    Hear,
}
use Step::{Hear, Say};

/// A connection to a server that follows a script and then closes. The thread returns the payloads
/// that the server received.
fn scripted(script: Vec<Step>) -> (Wire, JoinHandle<Vec<Vec<u8>>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || follow(&script, listener.accept().unwrap().0));
    let stream = TcpStream::connect(address).unwrap();
    (Wire::new(Stream::of(stream.into(), false)), server)
}

/// The same on a Unix socket.
fn scripted_nearby(script: Vec<Step>) -> (Wire, JoinHandle<Vec<Vec<u8>>>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let server = thread::spawn(move || follow(&script, theirs));
    (Wire::new(Stream::of(ours.into(), true)), server)
}

fn follow(script: &[Step], mut stream: impl Read + Write) -> Vec<Vec<u8>> {
    let (mut heard, mut sequence) = (Vec::new(), 0u8);
    for step in script {
        match step {
            Say(payload) => {
                let [low, middle, high, ..] = payload.len().to_le_bytes();
                stream.write_all(&[low, middle, high, sequence]).unwrap();
                stream.write_all(payload).unwrap();
                sequence += 1;
            }
            Hear => {
                let mut header = [0; 4];
                stream.read_exact(&mut header).unwrap();
                let [low, middle, _, number] = header;
                let mut payload = vec![0; u16::from_le_bytes([low, middle]).into()];
                stream.read_exact(&mut payload).unwrap();
                heard.push(payload);
                sequence = number + 1;
            }
        }
    }
    heard
}

const MYSQL_FLAGS: u32 = 0x1ff_ffff;
const WHO: LoginUser<'_> = LoginUser {
    user: "me",
    password: "secret",
    database: "tpcc",
    takes_public_key: true,
    tls: None,
};

fn greeting(plugin: &str, flags: u32) -> Vec<u8> {
    let [low, middle, high, top] = flags.to_le_bytes();
    let version = &b"\x0a8.4.3\0\x01\0\0\0"[..];
    let state = [low, middle, 45, 2, 0, high, top, 21];
    let own = [0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0];
    let salt_ends = [&SALT[8..], &[0]].concat();
    [
        version,
        &SALT[..8],
        &[0],
        &state,
        &own,
        &salt_ends,
        plugin.as_bytes(),
        &[0],
    ]
    .concat()
}

fn switch(plugin: &str) -> Vec<u8> {
    [&[0xfe], plugin.as_bytes(), &[0], &SALT, &[0]].concat()
}

fn ok() -> Vec<u8> {
    vec![0, 0, 0, 2, 0, 0, 0]
}

const SHA2: &str = "caching_sha2_password";

#[test]
fn a_user_that_the_server_remembers_sends_a_hash() {
    let script = vec![
        Say(greeting(SHA2, MYSQL_FLAGS)),
        Hear,
        Say(vec![1, 3]),
        Say(ok()),
    ];
    let (mut wire, server) = scripted(script);
    let (agreed, status) = login::log_in(&mut wire, &WHO).unwrap();
    assert_eq!(status, 2);
    // Only MariaDB has capabilities in these bytes; for MySQL they are ignored.
    assert_eq!(
        agreed,
        Agreed {
            no_eof: true,
            cached_columns: false,
            bulk: false,
        }
    );
    let heard = server.join().unwrap();
    let proof = scramble::caching_sha2(b"secret", &SALT);
    let expected = [b"me\0\x20", &proof[..], b"tpcc\0caching_sha2_password\0"].concat();
    assert_eq!(heard[0][32..], expected);
}

#[test]
fn a_user_that_it_does_not_know_yet_sends_the_password_by_its_key() {
    let key = [&[1], PUBLIC_KEY.as_bytes()].concat();
    let script = vec![
        Say(greeting("mysql_native_password", MYSQL_FLAGS)),
        Hear,
        Say(switch(SHA2)),
        Hear,
        Say(vec![1, 4]),
        Hear,
        Say(key),
        Hear,
        Say(ok()),
    ];
    let (mut wire, server) = scripted(script);
    login::log_in(&mut wire, &WHO).unwrap();
    let heard = server.join().unwrap();
    assert_eq!(heard[1], scramble::caching_sha2(b"secret", &SALT));
    assert_eq!((&heard[2][..], heard[3].len()), (&[2][..], 256));
}

/// No one can read a Unix socket's data on the way, so MySQL requests no key there.
#[test]
fn by_a_unix_socket_the_password_goes_as_it_is() {
    let hello = || Say(greeting(SHA2, MYSQL_FLAGS));
    for takes_public_key in [true, false] {
        let script = vec![hello(), Hear, Say(vec![1, 4]), Hear, Say(ok())];
        let (mut wire, server) = scripted_nearby(script);
        let login = LoginUser {
            takes_public_key,
            ..WHO
        };
        login::log_in(&mut wire, &login).unwrap();
        assert_eq!(server.join().unwrap()[1], b"secret\0");
    }
}

/// Plain text between the greeting and TLS may come from an attacker.
#[test]
fn tls_begins_with_nothing_in_between_or_not_at_all() {
    let tls = Tls::require();
    let login = LoginUser {
        tls: Some((&tls, "localhost")),
        ..WHO
    };
    let (mut wire, server) = scripted(vec![Say(greeting(SHA2, MYSQL_FLAGS & !0x800))]);
    let ended = login::log_in(&mut wire, &login);
    let not_offered = matches!(ended, Err(LoginFault::Tls(TlsError::NotOffered)));
    assert!(not_offered, "{ended:?}");
    server.join().unwrap();

    let ours = [&greeting(SHA2, MYSQL_FLAGS)[..], &[7, 0, 0, 2], &ok()].concat();
    let length = u8::try_from(greeting(SHA2, MYSQL_FLAGS).len()).unwrap();
    let (near, mut far) = UnixStream::pair().unwrap();
    far.write_all(&[&[length, 0, 0, 0], &ours[..]].concat())
        .unwrap();
    let mut wire = Wire::new(Stream::of(near.into(), true));
    let ended = login::log_in(&mut wire, &login);
    let Err(LoginFault::Tls(TlsError::Io(error))) = ended else {
        panic!("{ended:?}")
    };
    assert!(error.to_string().contains("plain text"), "{error}");
}

/// An attacker could offer its own key and read the password.
#[test]
fn a_key_that_is_not_to_be_taken_is_not_asked_for() {
    let script = vec![Say(greeting(SHA2, MYSQL_FLAGS)), Hear, Say(vec![1, 4])];
    let (mut wire, server) = scripted(script);
    let login = LoginUser {
        takes_public_key: false,
        ..WHO
    };
    let ended = login::log_in(&mut wire, &login);
    assert!(matches!(ended, Err(LoginFault::PublicKey)), "{ended:?}");
    server.join().unwrap();
}

fn outcome(script: Vec<Step>) -> String {
    let (mut wire, server) = scripted(script);
    let outcome = match login::log_in(&mut wire, &WHO) {
        Ok(_) => "in".to_owned(),
        Err(LoginFault::NoGreeting) => "no greeting".to_owned(),
        Err(LoginFault::Plugin(plugin)) => plugin,
        Err(LoginFault::PublicKey) => "a public key".to_owned(),
        Err(LoginFault::Tls(error)) => error.to_string(),
        Err(LoginFault::Fault(fault)) => fault.to_string(),
        Err(LoginFault::InPlainText(error)) => format!("{error} in plain text"),
    };
    drop(wire);
    server.join().unwrap();
    outcome
}

#[test]
fn a_dialogue_that_is_none_ends_in_words() {
    let hello = || Say(greeting(SHA2, MYSQL_FLAGS));
    let said = |what: &str| format!("the server sent {what}; is it MySQL or MariaDB?");
    for (script, expected) in [
        (vec![Say(greeting(SHA2, 0))], "no greeting".to_owned()),
        (
            vec![Say(greeting(SHA2, MYSQL_FLAGS)[..40].to_vec())],
            "no greeting".to_owned(),
        ),
        (vec![Say(vec![])], "no greeting".to_owned()),
        (
            vec![hello(), Hear, Say(vec![])],
            said("no step of a log-in"),
        ),
        (
            vec![hello(), Hear, Say(vec![1])],
            said("no step of a log-in"),
        ),
        (
            vec![hello(), Hear, Say(vec![0])],
            said("no end of the log-in"),
        ),
        (
            vec![hello(), Hear, Say(vec![0xfe])],
            "mysql_old_password".to_owned(),
        ),
        (
            vec![hello(), Hear, Say(switch("dialog"))],
            "dialog".to_owned(),
        ),
        (
            vec![hello(), Hear, Say(vec![1, 4]), Hear, Say(vec![1, 2])],
            said("no public key"),
        ),
        (
            vec![hello(), Hear],
            "the server closed the connection".to_owned(),
        ),
    ] {
        assert_eq!(outcome(script), expected);
    }
    let turns = || (0..10).flat_map(|_| [Hear, Say(switch(SHA2))]);
    let endless = [hello()].into_iter().chain(turns()).chain([Hear]).collect();
    assert_eq!(outcome(endless), said("a log-in without end"));
}

/// The description of one column with an unsigned number, as an answer to `select` contains it.
fn column() -> Vec<u8> {
    let names = [3, b'd', b'e', b'f', 0, 0, 0, 0, 0];
    [&names[..], &[12, 63, 0, 20, 0, 0, 0, 8, 0x20, 0, 0, 0, 0]].concat()
}

fn asked(answers: Vec<Vec<u8>>, agreed: Agreed) -> (Result<End, Fault>, Rows) {
    let answers = answers.into_iter().map(Say);
    let (wire, server) = scripted([Hear].into_iter().chain(answers).chain([Hear]).collect());
    let mut rows = Rows::new();
    let mut link = Link::new(wire, (agreed, 0));
    let end = link.query("select 1", &[], &mut rows);
    drop(link);
    // The last packet that the server receives is COM_QUIT.
    assert_eq!(server.join().unwrap().last(), Some(&vec![1]));
    (end, rows)
}

#[test]
fn rows_end_in_the_way_that_was_agreed() {
    let row = b"\x1418446744073709551615".to_vec();
    let eof = vec![0xfe, 1, 0, 2, 0];
    let old = vec![vec![1], column(), eof.clone(), row.clone(), eof];
    let new = vec![vec![1], column(), row, vec![0xfe, 0, 0, 2, 0, 1, 0]];
    for (answers, no_eof) in [(old, false), (new, true)] {
        let (end, rows) = asked(
            answers,
            Agreed {
                no_eof,
                cached_columns: false,
                bulk: false,
            },
        );
        assert_eq!(
            end.unwrap(),
            End {
                rows: 1,
                status: 2,
                warnings: 1
            }
        );
        assert_eq!(rows.text(0, 0), Ok("18446744073709551615"));
    }
}

#[test]
fn an_answer_that_is_none_is_a_fault() {
    let agreed = Agreed {
        no_eof: true,
        cached_columns: true,
        bulk: false,
    };
    for (answers, expected) in [
        (vec![vec![]], "a result without its number of columns"),
        (vec![vec![0]], "an incomplete OK packet"),
        (vec![vec![0xff]], "an error without a number"),
        (
            vec![vec![1, 1], vec![3, b'd']],
            "an incomplete description of a column",
        ),
        (vec![vec![1, 0]], "rows before their columns were described"),
        (
            vec![vec![1, 1], column(), vec![5, b'1']],
            "an incomplete row",
        ),
        (
            vec![vec![1, 1], column(), vec![0xfe]],
            "an incomplete end of rows",
        ),
    ] {
        let (end, _) = asked(answers, agreed);
        let fault = end.unwrap_err();
        assert!(fault.ends_session());
        let Fault::Answer(what) = fault else {
            panic!("{fault}")
        };
        assert_eq!(what, expected);
    }
}

/// A server can request any file of the client in its answer to any statement.
#[test]
fn a_file_is_never_given_unasked() {
    let (wire, server) = scripted(vec![
        Hear,
        Say(b"\xfb/etc/passwd".to_vec()),
        Hear,
        Say(ok()),
        Hear,
    ]);
    let mut link = Link::new(wire, (Agreed::default(), 0));
    link.command("select 1").unwrap();
    drop(link);
    assert_eq!(server.join().unwrap()[1], b"");
}
