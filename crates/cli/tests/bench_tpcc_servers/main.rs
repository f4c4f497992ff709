//! `saiga bench tpcc` with real servers: all steps, and failures during them.
//!
//! All parts of a test use one load of one warehouse. Each part leaves consistent tables, and
//! counts from the state that it finds. With `soak` (`make soak`), processes are killed at random.
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
mod settings;
mod stalls;
mod system;

use bench::Bench;
use system::System;

/// All parts for one load, in the order of a user's work; `last` is specific to a system.
fn all_steps(mut bench: Bench, last: fn(&mut Bench)) {
    builds::a_killed_build_is_recognised_and_completed(&bench);
    runs::a_run_counts_the_transactions_in_the_tables(&bench);
    runs::a_database_is_given_by_options(&bench);
    settings::differences_to_the_running_server_are_shown(&bench);
    obstacles::a_server_without_room_is_named_before_the_start(&bench);
    obstacles::a_table_without_privileges_is_named(&bench);
    stalls::a_stalled_server_shows_in_the_latency(&bench);
    stalls::a_server_stalled_for_good_ends_the_run(&bench);
    kills::a_killed_client_leaves_consistent_tables(&bench);
    kills::a_killed_server_is_a_gap_without_double_counts(&mut bench);
    last(&mut bench);
    builds::tables_are_dropped(&bench);
    bench.assert_nothing_left();
}

#[test]
fn all_steps_on_mariadb() {
    all_steps(Bench::new(System::mariadb()), |_| ());
}

#[test]
fn all_steps_on_postgres() {
    let last = kills::a_fail_over_is_a_gap_and_loses_nothing;
    all_steps(Bench::new(System::postgres()), last);
}

#[test]
fn the_example_for_opengauss() {
    let bench = Bench::new(System::postgres());
    builds::the_example_for_opengauss_makes_no_foreign_keys(&bench);
    bench.assert_nothing_left();
}
