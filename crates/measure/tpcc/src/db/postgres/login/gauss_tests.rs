//! Compares with external values: rows that live servers have stored, and a published driver's
//! test.

use super::*;

/// The values that a live MogDB 2.0.1, which is based on openGauss, has stored for the password
/// `abcd@1234` (a row of `pg_authid`, published at https://www.modb.pro/db/229744): salt, server
/// key, stored key.
const KEPT: [&[u8]; 3] = [
    b"8ec7ac7ada43d12a226934c43c5f83f04985898fba7e77bbee948ae3454fe4fe",
    b"cb3fed3f1a84834685cc25cdecc67882c83e43c8a5629f1c17236e54cfe05d51",
    b"1374b5d5b6da2cd98cade9cdab91278c81f12dc0b3c7444669ae001e9e6366a0",
];
/// The values that a live openGauss 3.0.0 has stored for `Admin@1234` with SM3
/// (https://www.modb.pro/db/393728): salt and stored key.
const KEPT_BY_SM3: [&[u8]; 2] = [
    b"5235899e0406d85e4e086db4db7025d53acddb10b86d9988d7b2a1bc25032236",
    b"7d038a0a9c2bd85aed2a9273cdd55864a481e967b62c63579441c1b03f6c550b",
];

fn request_of(kept_by: u32, salt: &[u8], token: &[u8], iterations: u32) -> Vec<u8> {
    let (kept_by, iterations) = (kept_by.to_be_bytes(), iterations.to_be_bytes());
    [&kept_by, salt, token, &iterations].concat()
}

#[test]
fn keys_are_those_that_a_live_server_keeps() {
    let keys = Keys::of("abcd@1234", KEPT[0], 10_000, Hash::Sha256).unwrap();
    assert_eq!(text_of(&keys.server).as_bytes(), KEPT[1]);
    assert_eq!(text_of(&keys.stored).as_bytes(), KEPT[2]);
    let keys = Keys::of("Admin@1234", KEPT_BY_SM3[0], 10_000, Hash::Sm3).unwrap();
    assert_eq!(text_of(&keys.stored).as_bytes(), KEPT_BY_SM3[1]);
}

/// The case "sha256" of TestRFC5802Algorithm in openGauss-connector-go-pq.
#[test]
fn the_proof_is_that_of_the_published_go_driver() {
    let data = request_of(
        2,
        b"3458fe51abe962f7b6011a1d73fc14edf50539fae89fb9dda75fbb642d9859bf",
        b"2cf71f10",
        10_000,
    );
    let request = request(&data, Hash::Sha256).unwrap();
    assert_eq!(
        proof("sha256@abc123", &request, Hash::Sha256).unwrap(),
        "f5213af93974ae3f0a3eedba7b0ef27796bcd4d84bb737d9c35fce54fcfe28fd"
    );
}

/// The check in crypt.cpp: MD5 of the whole stored row after its `sha256`, and of the salt. All
/// rows that were found end in `ecdfecefade`, which means 10,000 iterations.
#[test]
fn the_md5_proof_is_what_the_server_makes_of_its_row() {
    let (row, salt) = (KEPT.concat(), *b"\x01\x02\xfe\xff");
    let mut md5 = Md5::new();
    md5.update(&row);
    md5.update("ecdfecefade");
    md5.update(salt);
    let wanted = format!("md5{}", text_of(&md5.finalize()));
    let data = [KEPT[0], &salt].concat();
    assert_eq!(md5_proof("abcd@1234", &data), Some(wanted));
    assert_eq!(md5_proof("abcd@1234", &data[..67]), None);
    assert_eq!(md5_proof("abcd@1234", &[&data[..], b"x"].concat()), None);
}

#[test]
fn a_malformed_request_is_not_answered() {
    let sound = request_of(2, KEPT[0], b"2cf71f10", 10_000);
    assert!(request(&sound, Hash::Sha256).is_some());
    for cut in 0..sound.len() {
        assert_eq!(request(&sound[..cut], Hash::Sha256), None, "{cut}");
    }
    for unsound in [
        request_of(1, KEPT[0], b"2cf71f10", 10_000),
        request_of(3, KEPT[0], b"2cf71f10", 10_000),
        request_of(2, KEPT[0], b"2cf71f1g", 10_000),
        request_of(2, &[b'x'; KEY_DIGITS], b"2cf71f10", 10_000),
        request_of(2, KEPT[0], b"2cf71f10", 0),
        request_of(2, KEPT[0], b"2cf71f10", MAX_ITERATIONS + 1),
    ] {
        assert_eq!(request(&unsound, Hash::Sha256), None);
    }
}
