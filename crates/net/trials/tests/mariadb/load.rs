//! sysbench, many connections, large results and files.

use std::{fs, io::Write as _};

use saiga_trials::{
    bounded::Ending,
    mariadb::{Server, Under},
    scale::by_scale,
};

use crate::{HANDLING, cells, through_channels};

#[test]
fn sysbench_works_on_every_pair_of_arms() {
    for (handling, pair) in cells() {
        let (serving, client) = pair;
        let server = Server::start(serving, handling);
        server.prepare_sysbench(client);
        through_channels(&server, pair, 8, || {
            server.sysbench(client, "oltp_point_select", 8, by_scale(4000, 400_000));
        });
        through_channels(&server, pair, 4, || {
            server.sysbench(client, "oltp_read_write", 4, by_scale(100, 10_000));
        });
    }
}

/// mariadb-slap gives every connection the same number of queries; sysbench would starve some.
#[test]
fn two_hundred_and_fifty_six_connections() {
    for handling in HANDLING {
        // The default backlog is below 256: the kernel answers with SYN cookies and forgets some.
        let mut options = handling.to_vec();
        options.push("--back-log=512");
        let server = Server::start(Under::AtOnce, &options);
        let pair = (Under::AtOnce, Under::AtOnce);
        for _ in 0..by_scale(2, 40) {
            through_channels(&server, pair, 256, || server.slap(pair.1, 256, 300));
        }
    }
}

#[test]
fn large_results_arrive_whole() {
    let query = "SELECT seq, MD5(seq), REPEAT(CHAR(65 + seq % 26), 1000) \
                 FROM trial.seq_1_to_20000";
    let expected: Vec<String> = {
        let server = Server::start(Under::Kernel, &[]);
        let rows = server.must(Under::Kernel, query);
        rows.lines().map(str::to_owned).collect()
    };
    assert_eq!(expected.len(), 20_000);
    for (handling, pair) in cells() {
        let (serving, client) = pair;
        let mut server = Server::start(serving, handling);
        for host in ["127.0.0.1", "::1"] {
            server.host = host;
            let rows = through_channels(&server, pair, 0, || server.must(client, query));
            assert!(rows.lines().eq(&expected), "{serving:?} with {client:?}");
        }
    }
}

#[test]
fn files_are_loaded_whole() {
    for (handling, pair) in cells() {
        let (serving, client) = pair;
        let server = Server::start(serving, handling);
        let path = server.folder().join("rows");
        let mut file = fs::File::create(&path).expect("a file");
        let rows = 20_000;
        for i in 1..=rows {
            let text = "abcdefghij".repeat(80);
            writeln!(file, "{i}\t{text}{i}").expect("room on the disk");
        }
        drop(file);
        let statements = format!(
            "CREATE TABLE trial.t (id INT PRIMARY KEY, text VARCHAR(1000)) ENGINE=InnoDB; \
                 LOAD DATA LOCAL INFILE '{}' INTO TABLE trial.t; \
                 SELECT COUNT(*), SUM(id), SUM(text = CONCAT(REPEAT('abcdefghij', 80), id)) FROM trial.t",
            path.display()
        );
        let answer = server.must(client, &statements);
        assert_eq!(answer, "20000\t200010000\t20000");
    }
}

#[test]
fn clients_of_both_kinds_share_a_server() {
    for handling in HANDLING {
        let server = Server::start(Under::Earned, handling);
        server.prepare_sysbench(Under::Earned);
        let loads: Vec<_> = [Under::Kernel, Under::AtOnce, Under::Earned]
            .into_iter()
            .map(|under| server.load(under, "oltp_point_select", 4))
            .collect();
        for under in [Under::Kernel, Under::Earned] {
            server.sysbench(under, "oltp_read_write", 4, by_scale(60, 6000));
        }
        for load in loads {
            load.kill();
        }
        let outcome = server.client(Under::AtOnce, &["-e", "SELECT COUNT(*) FROM trial.sbtest1"]);
        assert_eq!(outcome.ending, Ending::Exited(0), "{outcome:?}");
        assert_eq!(outcome.stdout, "1000\n");
    }
}
