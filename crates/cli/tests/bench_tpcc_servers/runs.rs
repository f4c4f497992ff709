//! Complete runs.

use std::fs;

use crate::bench::{Bench, TERMINALS, TRANSACTIONS, record};
use crate::books::{Books, total};
use crate::system::PASSWORD;

pub(crate) fn a_run_counts_the_transactions_in_the_tables(bench: &Bench) {
    let before = Books::of(bench);
    let said = bench.said("run", &["--seed", "11"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let count = TERMINALS * TRANSACTIONS;
    let last = format!("Term-00, Transaction Count = {count}");
    assert_eq!(
        said.stdout.lines().next_back(),
        Some(last.as_str()),
        "{said:?}"
    );
    assert!(
        said.stdout
            .contains("Term-00, Measured tpmC (NewOrders) = "),
        "{said:?}"
    );
    let folders = fs::read_dir(bench.path("")).unwrap().flatten();
    let mut results = folders.map(|entry| entry.path()).filter(|path| {
        path.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("my_result_2")
    });
    let (Some(out), None) = (results.next(), results.next()) else {
        panic!("not one folder of results: {said:?}")
    };
    let record = record(&out);
    assert_eq!(
        total(&record, |track| track.committed + track.rolled_back),
        i64::from(count)
    );
    assert_eq!(total(&record, |track| track.unknown + track.failed), 0);
    assert_eq!((record.lost_connections, &record.gaps[..]), (0, &[][..]));
    // The server is on this host and has the same clock.
    let clock = record.clock.unwrap();
    let off_us = clock.server_ahead_us.unsigned_abs();
    assert!(off_us <= clock.within_us, "{clock:?}");
    let broken = |when: &str| {
        let mut looks = record.consistency.iter().filter(|look| look.when == when);
        looks.next().unwrap().broken.len()
    };
    assert_eq!((broken("before"), broken("after")), (0, 0));
    let copy = fs::read_to_string(out.join("run.properties")).unwrap();
    assert!(
        !copy.contains(PASSWORD) && copy.contains("terminals=10\n"),
        "{copy}"
    );
    before.assert_agreement(bench, &record);
}

/// Without a props file, a database is given by options and variables as for `mysql` and `psql`.
pub(crate) fn a_database_is_given_by_options(bench: &Bench) {
    let said = bench.said_by_options("check", PASSWORD, &[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.starts_with(&bench.system.name()), "{said:?}");

    let before = bench.orders();
    let words = ["--for", "500ms", "--terminals", "3", "--no-check", "--json"];
    let said = bench.said_by_options("run", PASSWORD, &words);
    assert!(matches!(said.code, Some(0 | 1)), "{said:?}");
    assert!(bench.orders() > before);
    assert!(said.stdout.contains("\"terminals\":3"), "{}", said.stdout);

    let said = bench.said_by_options("check", PASSWORD, &["--user", "stranger"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("\"stranger\""), "{said:?}");
    let said = bench.said_by_options("check", PASSWORD, &["--tls", "require"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    let refused = said.stderr.contains("the server does not offer it");
    assert!(refused, "{said:?}");
    let socket = bench.system.socket();
    let socket = socket.to_str().unwrap();
    let words = ["--sample", "--socket", socket];
    let said = bench.said_by_options("check", PASSWORD, &words);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains(&format!(" at {socket}, ")), "{said:?}");
    let said = bench.said_by_options("check", PASSWORD, &["--props", "props.conf"]);
    assert!(said.stderr.contains("cannot be used with"), "{said:?}");
    bench.assert_nothing_left();
}
