//! The packet scripts on the Linux kernel, over a TUN device in a network namespace.
//!
//! Each script that the engine runs (tests/scripts) runs here too, in real time and in a namespace
//! of its own. A script in which the two differ on purpose says so. README.md in that folder
//! explains the form. Needs root, /dev/net/tun and ip(8).
//!
//! - `SCRIPT=name` runs one script and prints its segments
//! - `SAIGA_SOAK=1` runs those that take longer than 3 s as well, and more seeds
//! - `SAIGA_SEEDS=n` compares so many random scripts
//! - `SEED=n` compares one random script, and prints it
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod compare;
mod device;
mod differential;
#[expect(
    dead_code,
    reason = "the other target runs whole scripts on the engine"
)]
#[path = "../scripts/run.rs"]
mod engine;
mod icmp;
mod numbers;
#[path = "../scripts/parse.rs"]
mod parse;
mod random;
mod record;
mod run;
mod scripts;
mod settings;
#[path = "../scripts/show.rs"]
mod show;
mod socket;
mod sys;

use scripts::Scripts;

#[test]
fn the_kernel_agrees_with_the_scripts() {
    let name = std::env::var("SCRIPT").ok();
    let is_soak = std::env::var_os("SAIGA_SOAK").is_some();
    let scripts = Scripts::read(name.as_deref(), is_soak);
    let (differ, long) = (scripts.differ.clone(), scripts.long);
    let report = scripts.run(name.is_some());
    println!("{} scripts held", report.held);
    println!("{} for SAIGA_SOAK=1, {} too long", long[0], long[1]);
    println!(
        "{} late each time: {:?}",
        report.unproven.len(),
        report.unproven
    );
    println!("{} in which the kernel differs on purpose:", differ.len());
    for line in &differ {
        println!("    {line}");
    }
    assert!(report.failed.is_empty(), "\n{}", report.failed.join("\n"));
    assert_proven(report.held, report.unproven.len());
}

/// Runs that were late prove nothing: most must have been in time.
fn assert_proven(held: usize, unproven: usize) {
    assert!(
        held > unproven,
        "this machine is too busy: {held} scripts held, {unproven} were late each time"
    );
}

/// How many random scripts are compared.
fn count() -> u64 {
    match std::env::var("SAIGA_SEEDS") {
        Ok(count) => count.parse().unwrap(),
        Err(_) if std::env::var_os("SAIGA_SOAK").is_some() => 2000,
        Err(_) => 48,
    }
}

#[test]
fn random_scripts_do_not_differ() {
    let seed = std::env::var("SEED").ok();
    let seeds = match &seed {
        Some(seed) => vec![seed.parse().unwrap()],
        None => (1..=count()).collect(),
    };
    let report = differential::compare(seeds, seed.is_some());
    println!("{} random scripts held", report.held);
    println!(
        "{} late each time: {:?}",
        report.unproven.len(),
        report.unproven
    );
    assert!(report.failed.is_empty(), "\n{}", report.failed.join("\n\n"));
    assert_proven(report.held, report.unproven.len());
}
