//! sysbench, many connections, large results and files.

use std::{fs, io::Write as _};

use saiga_trials::{
    bounded::Ending,
    census::Census,
    mariadb::Server,
    parity::Arm,
    scale::{by_scale, patience},
};

use crate::{
    HANDLING, KIND, cells,
    channels::{await_answer, through_channels},
};

#[test]
fn sysbench_works_on_every_pair_of_arms() {
    for (handling, pair) in cells() {
        let (serving, client) = pair;
        let server = Server::start(KIND, serving, handling);
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
        // The default backlog is below 256: the kernel would answer with SYN cookies and lose some.
        let mut options = handling.to_vec();
        options.push("--back-log=512");
        let server = Server::start(KIND, Arm::Library, &options);
        let pair = (Arm::Library, Arm::Library);
        // A slow machine moves connections late.
        let queries = by_scale(100, 300) * patience().min(8);
        for _ in 0..by_scale(2, 40) {
            through_channels(&server, pair, 256, || server.slap(pair.1, 256, queries));
        }
    }
}

#[test]
fn short_connections_leave_nothing_in_the_server() {
    let pair = (Arm::Library, Arm::Library);
    for handling in HANDLING {
        let server = Server::start(KIND, pair.0, handling);
        let mut watcher = server.session(Arm::Kernel);
        let mut run = |connections: u32, at_a_time: u32| {
            through_channels(&server, pair, u64::from(connections), || {
                server.come_and_go(pair.1, connections, at_a_time, 20);
            });
            await_answer(&mut watcher, &KIND.counter("Threads_connected"), "1");
            Census::of(server.pid()).expect("a running process")
        };
        // The server keeps its threads with their stacks and heaps: the first run makes all of
        // them.
        let (before, after) = (run(300, 32), run(by_scale(800, 100_000), 4));
        before.assert_no_growth(&after, 4, 512, &format!("connections, {handling:?}"));
    }
}

#[test]
fn large_results_arrive_whole() {
    let query = "USE trial; WITH RECURSIVE number (n) AS \
                 (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 20000) \
                 SELECT n, SHA2(n, 256), REPEAT(CHAR(65 + n % 26), 1000) FROM number";
    let expected: Vec<String> = {
        let server = Server::start(KIND, Arm::Kernel, &[]);
        let rows = server.must(Arm::Kernel, query);
        rows.lines().map(str::to_owned).collect()
    };
    assert_eq!(expected.len(), 20_000);
    for (handling, pair) in cells() {
        let (serving, client) = pair;
        let mut server = Server::start(KIND, serving, handling);
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
        let server = Server::start(KIND, serving, handling);
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
        let server = Server::start(KIND, Arm::Shipped, handling);
        server.prepare_sysbench(Arm::Shipped);
        let loads: Vec<_> = [Arm::Kernel, Arm::Library, Arm::Shipped]
            .into_iter()
            .map(|arm| server.load(arm, "oltp_point_select", 4))
            .collect();
        for arm in [Arm::Kernel, Arm::Shipped] {
            server.sysbench(arm, "oltp_read_write", 4, by_scale(60, 6000));
        }
        for load in loads {
            load.kill();
        }
        let outcome = server.client(Arm::Library, &["-e", "SELECT COUNT(*) FROM trial.sbtest1"]);
        assert_eq!(outcome.ending, Ending::Exited(0), "{outcome:?}");
        assert_eq!(outcome.stdout, "1000\n");
    }
}

/// The server has counted the same events as sysbench, and no row is missing.
#[test]
fn sixty_four_threads_execute_what_they_count() {
    for (handling, pair) in cells() {
        let server = Server::start(KIND, pair.0, handling);
        server.prepare_sysbench(pair.1);
        for (test, counter, events) in [
            (
                "oltp_point_select",
                "Com_stmt_execute",
                by_scale(4000, 400_000),
            ),
            ("oltp_read_write", "Com_commit", by_scale(300, 10_000)),
        ] {
            let before = server.count(counter);
            through_channels(&server, pair, by_scale(1, 64), || {
                server.sysbench(pair.1, test, 64, events);
            });
            assert_eq!(server.count(counter) - before, u64::from(events), "{test}");
        }
        let rows = "SELECT COUNT(*), COUNT(DISTINCT id) FROM trial.sbtest1 UNION ALL \
                    SELECT COUNT(*), COUNT(DISTINCT id) FROM trial.sbtest2";
        assert_eq!(server.must(Arm::Kernel, rows), "1000\t1000\n1000\t1000");
    }
}

#[test]
fn connections_for_one_query_all_end_normally() {
    for (handling, pair) in cells() {
        let server = Server::start(KIND, pair.0, handling);
        let (before, connections) = (server.count("Connections"), by_scale(400, 20_000));
        through_channels(&server, pair, 0, || {
            server.come_and_go(pair.1, connections, 8, 1);
        });
        assert!(server.count("Connections") - before >= u64::from(connections));
        assert_eq!(server.count("Aborted_connects"), 0, "{}", server.log());
        assert_eq!(server.count("Aborted_clients"), 0, "{}", server.log());
    }
}
