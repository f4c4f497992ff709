//! `saiga bench tpcc` with real servers: the whole job, and what breaks in the middle of it.
//!
//! One load of one warehouse serves all parts of a test; each part leaves tables that are consistent,
//! and counts from where it finds them. The long form (`make soak`) kills more often, at random.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bench;
mod books;
mod builds;
mod full_disk;
mod kills;
#[path = "../marked/mod.rs"]
mod marked;
mod obstacles;
mod runs;
mod stalls;
mod system;

use bench::Bench;
use system::System;

/// Everything that one load serves, in the order of a user's work; `last` is what one system has more.
fn the_whole_job(mut bench: Bench, last: fn(&mut Bench)) {
    builds::one_that_is_killed_is_recognised_and_completed(&bench);
    runs::one_as_operators_write_it_counts_what_is_in_the_tables(&bench);
    runs::a_database_is_named_by_options(&bench);
    obstacles::a_server_without_room_is_named_before_the_start(&bench);
    obstacles::a_user_without_rights_on_a_table_learns_which(&bench);
    stalls::a_server_that_stands_still_shows_in_the_latency(&bench);
    stalls::a_server_that_stands_still_for_good_is_given_up(&bench);
    kills::a_client_that_is_killed_leaves_consistent_tables(&bench);
    kills::a_server_that_is_killed_is_a_gap_and_counts_nothing_twice(&mut bench);
    last(&mut bench);
    builds::tables_are_dropped(&bench);
    bench.assert_nothing_left();
}

#[test]
fn the_whole_job_on_mariadb() {
    the_whole_job(Bench::new(System::mariadb()), |_| ());
}

#[test]
fn the_whole_job_on_postgres() {
    let last = kills::a_fail_over_is_a_gap_and_loses_nothing;
    the_whole_job(Bench::new(System::postgres()), last);
}

#[test]
fn the_example_for_opengauss() {
    let bench = Bench::new(System::postgres());
    builds::the_example_for_opengauss_makes_no_foreign_keys(&bench);
    bench.assert_nothing_left();
}
