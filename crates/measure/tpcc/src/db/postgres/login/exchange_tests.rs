//! Tests every state with every request. The computations of SCRAM are tested by the crate
//! `postgres_protocol`.

use super::*;

const SALT: &[u8] = b"8ec7ac7ada43d12a226934c43c5f83f04985898fba7e77bbee948ae3454fe4fe";

/// A request in openGauss's own format, with one iteration. `kept_by` names the hash: 2 is SHA-256,
/// 3 is SM3.
fn gauss_request(kept_by: u8) -> Vec<u8> {
    [&[0, 0, 0, kept_by], SALT, b"2cf71f10", &[0, 0, 0, 1]].concat()
}

/// The requests under test, each with name, code and data. Some are truncated or unknown.
fn requests() -> Vec<(&'static str, i32, Vec<u8>)> {
    vec![
        ("ok", 0, vec![]),
        ("kerberos", 2, vec![]),
        ("password", 3, vec![]),
        ("md5", 5, vec![1, 2, 3, 4]),
        ("md5 cut", 5, vec![1, 2, 3]),
        ("gssapi", 7, vec![]),
        (
            "sasl",
            10,
            b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0".to_vec(),
        ),
        ("sasl other", 10, b"OAUTHBEARER\0\0".to_vec()),
        ("sha256", 10, gauss_request(2)),
        ("sha256 other", 10, gauss_request(1)),
        ("md5_sha256", 11, [SALT, &[1, 2, 3, 4]].concat()),
        ("sasl more", 11, b"r=x,s=AAAA,i=1".to_vec()),
        ("sasl end", 12, b"v=AAAA".to_vec()),
        ("sm3", 13, gauss_request(3)),
        ("unknown", 77, vec![]),
    ]
}

fn shown(result: &Result<Step, Refusal>) -> &'static str {
    match result {
        Ok(Step::Send(_)) => "send",
        Ok(Step::Wait) => "wait",
        Err(Refusal::IsOpenGauss) => "openGauss",
        Err(Refusal::Unsupported(_)) => "unsupported",
        Err(Refusal::Protocol(_)) => "protocol",
        Err(Refusal::UnprovenServer) => "unproven server",
    }
}

/// Returns the result of each request after the requests in `before` were answered.
fn table(dialect: Engine, before: &[(i32, &[u8])]) -> Vec<(&'static str, &'static str)> {
    let of = |(name, code, data): &(&'static str, i32, Vec<u8>)| {
        let mut exchange = Exchange::new(dialect, "user", "secret");
        for (code, data) in before {
            exchange.on_request(*code, data).unwrap();
        }
        (*name, shown(&exchange.on_request(*code, data)))
    };
    requests().iter().map(of).collect()
}

/// The same result `others` for each request, except for the requests in `known`.
fn except(
    others: &'static str,
    known: &[(&'static str, &'static str)],
) -> Vec<(&'static str, &'static str)> {
    let of = |(name, _, _): (&'static str, i32, Vec<u8>)| {
        let known = known.iter().find(|(one, _)| *one == name);
        (name, known.map_or(others, |(_, what)| *what))
    };
    requests().into_iter().map(of).collect()
}

#[test]
fn the_first_request_is_answered_by_its_kind() {
    let answers = [
        ("ok", "wait"),
        ("password", "send"),
        ("md5", "send"),
        ("sasl", "send"),
        ("md5_sha256", "send"),
        ("md5 cut", "protocol"),
        ("sasl more", "protocol"),
    ];
    let own = [
        ("sha256", "send"),
        ("sm3", "send"),
        ("sha256 other", "protocol"),
    ];
    let strange = ["sha256", "sm3", "sha256 other"].map(|name| (name, "openGauss"));
    let expected = |more: [_; 3]| except("unsupported", &[&answers[..], &more].concat());
    assert_eq!(table(Engine::OpenGauss, &[]), expected(own));
    assert_eq!(table(Engine::Postgres, &[]), expected(strange));
}

#[test]
fn behind_an_answer_there_is_only_admission() {
    let only = except("protocol", &[("ok", "wait")]);
    assert_eq!(table(Engine::Postgres, &[(3, b"")]), only);
    assert_eq!(table(Engine::OpenGauss, &[(10, &gauss_request(2))]), only);
}

/// After SCRAM has begun, only its next message is accepted. The server cannot admit the user
/// before it has proved that it knows the password.
#[test]
fn scram_keeps_its_order_and_requires_a_proof() {
    let begun: [(i32, &[u8]); 1] = [(10, b"SCRAM-SHA-256\0\0")];
    assert_eq!(table(Engine::Postgres, &begun), except("protocol", &[]));
    let mut exchange = Exchange::new(Engine::Postgres, "user", "secret");
    let Ok(Step::Send(first)) = exchange.on_request(10, b"SCRAM-SHA-256\0\0") else {
        panic!("no answer");
    };
    let nonce = String::from_utf8_lossy(&first);
    let nonce = nonce.split_once("r=").unwrap().1.to_owned();
    let more = format!("r={nonce}more,s=c2FsdA==,i=1");
    assert_eq!(shown(&exchange.on_request(11, more.as_bytes())), "send");
    assert_eq!(
        shown(&exchange.on_request(12, b"v=AAAA")),
        "unproven server"
    );
    assert!(!exchange.is_admitted());
}

#[test]
fn admission_ends_it() {
    assert_eq!(
        table(Engine::Postgres, &[(0, b"")]),
        except("protocol", &[])
    );
}

#[test]
fn a_refusal_names_the_way_out() {
    let place = Place {
        engine: Engine::Postgres,
        address: "h:5432",
        user: "me",
        database: "tpcc",
    };
    let said = |refusal: Refusal| refusal.of_login(&place).to_string();
    assert_eq!(
        said(Refusal::Unsupported("a log-in by GSSAPI".to_owned())),
        "postgres at h:5432 requires a log-in by GSSAPI, which is not supported; let its pg_hba.conf say \
         scram-sha-256 or md5 (openGauss: sha256), and set the password anew"
    );
    assert!(said(Refusal::IsOpenGauss).contains("jdbc:opengauss://"));
    assert!(said(Refusal::UnprovenServer).contains("did not prove that it knows the password"));
}
