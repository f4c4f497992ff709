//! Fuzz test: each call on a session returns an answer or an error, for any bytes of the server.

use proptest::prelude::*;
use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::db::statement::Statement;
use saiga_tpcc::db::value::Value;
use saiga_tpcc::table::Table;

use crate::scripted::{Peer, Scripted, message, row};
use crate::server::log_in;

/// Valid and invalid messages of a server.
fn a_message() -> impl Strategy<Value = Vec<u8>> {
    let tags = prop::sample::select(b"123ACDEGHIKNRSTVWZcdnstv\0\xff".to_vec());
    let bodies = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..24),
        Just(b"I".to_vec()),
        Just(b"T".to_vec()),
        Just(b"E".to_vec()),
        Just(b"SELECT 1\0".to_vec()),
        Just(b"SERROR\0C40001\0Mwords\0\0".to_vec()),
        Just(b"SFATAL\0C57P01\0Mwords\0\0".to_vec()),
        Just(row(&["a", "1"])),
        Just(row(&["a"])),
        Just(b"\0\0\0\x0aSCRAM-SHA-256\0\0".to_vec()),
        Just([&b"\0\0\0\x0a\0\0\0\x02"[..], &[b'a'; 72], &[0, 0, 0, 1]].concat()),
        Just(b"\0\0\0\0".to_vec()),
    ];
    let sound = (tags, bodies).prop_map(|(tag, body)| message(tag, &body));
    let wild = prop::collection::vec(any::<u8>(), 0..16);
    prop_oneof![8 => sound, 1 => wild]
}

fn messages() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(a_message(), 0..12).prop_map(|all| all.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_session_survives_every_answer(bytes in messages(), call in 0..7u8, way in 0..3usize) {
        let server = Scripted::play(vec![Box::new(move |mut peer: Peer| {
            peer.start_up();
            peer.welcome("PostgreSQL 15.8");
            peer.message();
            // The client may have closed the connection.
            let _ = peer.send_raw(&bytes);
        })]);
        let mut url = server.url("postgresql");
        let ways = [("a", ""), ("fetchsize", "1"), ("reWriteBatchedInserts", "true")];
        url.params.push((ways[way].0.to_owned(), ways[way].1.to_owned()));
        let mut session = log_in(&url, "me", "").unwrap();
        let (mut rows, params) = (Rows::new(), [1, 2, 3].map(Value::Int));
        for _twice in 0..2 {
            let _answer = match call {
                0 => session.execute(Statement::PayCustomer, &params, &mut rows).map(|_| ()),
                1 => session.execute(Statement::OrderQueue, &params, &mut rows).map(|_| ()),
                2 => session.batch(Statement::OrderQueue, &[params; 3].concat()).map(|_| ()),
                3 => session.run("select 1", &mut rows).map(|_| ()),
                4 => session.status().map(|_| ()),
                _ => session.load(Table::NewOrder, &mut |sink| {
                    for _ in 0..40_000 {
                        sink.int(1);
                        sink.end_row()?;
                    }
                    Ok(())
                }),
            };
            let _ended = (session.commit(), session.rollback());
        }
        server.end();
    }

    #[test]
    fn a_log_in_survives_every_answer(bytes in messages(), gauss in any::<bool>()) {
        let play = move |bytes: Vec<u8>| -> Box<dyn FnOnce(Peer) + Send> {
            Box::new(move |mut peer: Peer| {
                peer.start_up();
                let _ = peer.send_raw(&bytes);
            })
        };
        let server = Scripted::play(vec![play(bytes.clone())]);
        let url = server.url(if gauss { "opengauss" } else { "postgresql" });
        let _entered = log_in(&url, "me", "secret").map(|_| ());
        server.end();
    }
}
