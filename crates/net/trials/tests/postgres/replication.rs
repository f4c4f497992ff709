//! A standby fed by walsender and walreceiver, both under the library.

use saiga_trials::{census::Census, parity::Arm, postgres::Server, scale::by_scale};

use crate::{
    PAIRS, accelerated, is_joined,
    load::{assert_sums, history, processed},
    process,
};

/// Waits until the standby has replayed all changes that the primary has written so far.
pub(crate) fn await_replay(primary: &Server, standby: &Server) {
    let written = primary.query("select pg_current_wal_flush_lsn();");
    standby.await_query(
        &format!("select pg_last_wal_replay_lsn() >= '{written}';"),
        "t",
    );
}

fn assert_link_upgraded(primary: &Server, standby: &Server) {
    for pid in [
        process(primary, "walsender"),
        process(standby, "walreceiver"),
    ] {
        assert_eq!(Census::channels(pid), 1, "process {pid}");
    }
}

fn loaded(primary: &Server, arm: Arm) -> u64 {
    let count = by_scale("150", "5000");
    processed(&primary.must("pgbench", arm, &["-n", "-c", "4", "-j", "2", "-t", count]))
}

#[test]
fn a_standby_follows_through_a_channel() {
    for (first, second) in PAIRS {
        let primary = Server::start(first, &[]);
        primary.must("pgbench", first, &["-i", "-q", "-s", "1"]);
        let standby = primary.standby(second, &[]);
        let committed = loaded(&primary, first);
        await_replay(&primary, &standby);
        assert_eq!(history(&standby), committed);
        assert_sums(&standby);
        if is_joined((first, second)) {
            assert_link_upgraded(&primary, &standby);
        }
    }
}

#[test]
fn a_synchronous_standby_has_all_that_was_committed_when_it_takes_over() {
    for &arm in accelerated() {
        take_over(arm);
    }
}

fn take_over(arm: Arm) {
    let mut primary = Server::start(arm, &[]);
    primary.must("pgbench", arm, &["-i", "-q", "-s", "1"]);
    let standby = primary.standby(arm, &[]);
    primary.query("alter system set synchronous_standby_names = '*';");
    primary.query("alter system set synchronous_commit = remote_apply;");
    primary.query("select pg_reload_conf();");
    primary.await_query(
        "select count(*) from pg_stat_replication where sync_state = 'sync';",
        "1",
    );
    let committed = loaded(&primary, arm);
    assert_link_upgraded(&primary, &standby);
    assert_eq!(
        history(&standby),
        committed,
        "remote_apply: no waiting needed"
    );
    let load = primary.background("pgbench", arm, &["-n", "-c", "4", "-j", "2", "-T", "60"]);
    primary.await_query(
        &format!("select count(*) > {committed} + 200 from pgbench_history;"),
        "t",
    );
    primary.kill();
    let (report, _) = load.finish();
    assert_eq!(standby.query("select pg_promote();"), "t");
    let kept = history(&standby);
    let known = committed + processed(&report);
    assert!(
        (known..=known + 4).contains(&kept),
        "{known} were acknowledged, {kept} are there"
    );
    assert_sums(&standby);
    assert_eq!(loaded(&standby, arm) + kept, history(&standby));
}

#[test]
fn the_link_comes_back_after_either_end_is_killed() {
    for &arm in accelerated() {
        kill_either_end(arm);
    }
}

fn kill_either_end(arm: Arm) {
    let mut primary = Server::start(arm, &[]);
    primary.must("pgbench", arm, &["-i", "-q", "-s", "1"]);
    let standby = primary.standby(arm, &["wal_retrieve_retry_interval=20ms"]);
    let mut committed = loaded(&primary, arm);
    await_replay(&primary, &standby);
    // pg_terminate_backend, then kill -9 of the whole primary; the receiver connects again.
    let sender = process(&primary, "walsender");
    primary.query(&format!("select pg_terminate_backend({sender});"));
    committed += loaded(&primary, arm);
    await_replay(&primary, &standby);
    primary.kill();
    primary.launch();
    committed += loaded(&primary, arm);
    await_replay(&primary, &standby);
    assert_eq!(history(&standby), committed);
    assert_link_upgraded(&primary, &standby);
}

#[test]
fn a_subscription_copies_and_follows() {
    for &arm in accelerated() {
        subscribe(arm);
    }
}

fn subscribe(arm: Arm) {
    let first = Server::start(arm, &["wal_level=logical"]);
    let second = Server::start(arm, &[]);
    first.query("create table t (i int primary key, s text);");
    first.query("insert into t select i, repeat('c', 500) from generate_series(1, 20000) i;");
    second.query("create table t (i int primary key, s text);");
    first.query("create publication p for table t;");
    let port = first.port;
    second.query(&format!(
        "create subscription s connection 'host=127.0.0.1 port={port} user=postgres' publication p;"
    ));
    second.await_query("select count(*) from t;", "20000");
    let mut client = first.client(arm);
    for i in 20_001..=20_200 {
        client.ask(&format!("insert into t values ({i}, 'later');"));
    }
    second.await_query("select count(*) from t where s = 'later';", "200");
    assert_link(&first);
    second.query("drop subscription s;");
}

fn assert_link(publisher: &Server) {
    let sender = process(publisher, "walsender");
    assert!(Census::upgrades(sender) > 0, "the subscription is on TCP");
}
