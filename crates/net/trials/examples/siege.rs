//! Measures a bystander's service while another client attacks the same server: `make
//! bench-hostile`.
//!
//! `cargo run --release -p saiga-trials --example siege -- [PAIRS [MILLISECONDS [ATTACK]]]` runs
//! redis-server under the library, a bystander with one upgraded connection, and `besieger` with
//! each attack in turn. Each attack is paired with an equal, harmless load, in changing order, so
//! that the attacker's own CPU time has no effect on the ratio. Prints a table: the median ratio of
//! the bystander's round trips per second over the pairs, its range, and the worst 99.9th
//! percentile of either arm.

use std::{env, path::PathBuf, process::Command, time::Duration};

use saiga_trials::{
    bounded::{self, Ending},
    compile,
    parity::{self, Arm},
    peer::Peer,
    port,
    redis::Server,
};

const ATTACKS: [&str; 9] = [
    "words-made",
    "words-given",
    "storm-made",
    "storm-given",
    "many-bells",
    "bell-flood",
    "offers",
    "segments",
    "no-acknowledgement",
];

fn main() {
    let mut words = env::args().skip(1);
    let mut number = |otherwise| {
        let word = words.next();
        word.map_or(otherwise, |word| word.parse().expect("a number"))
    };
    let (pairs, milliseconds) = (number(5), number(3000));
    let only = words.next().unwrap_or_default();
    println!(
        "| attack | rounds | trips/s, ratio (range) | p99.9, attack | p99.9, equal load | slowest |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    for attack in ATTACKS.iter().filter(|name| name.contains(&only)) {
        measure(attack, pairs, milliseconds);
    }
}

/// Measurements of the bystander in one run.
#[derive(Debug, Clone, Copy)]
struct Seen {
    trips: f64,
    p999_us: u64,
    slowest_us: u64,
    rounds: u64,
}

fn measure(attack: &str, pairs: u64, milliseconds: u64) {
    let port = port::free();
    let options = ["--bind", "127.0.0.1", "127.0.0.2", "--protected-mode", "no"];
    let _server = Server::start_on_port(Arm::Library, "127.0.0.1", port, &options);
    let port = port.to_string();
    let mut bystander = Peer::start(compile::tool("pulse"), &[&port], Arm::Library);
    bystander.expect("ready");
    let (mut attacked, mut equal) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        let mut run = |name| besiege(&mut bystander, name, &port, milliseconds);
        if pair % 2 == 0 {
            equal.push(run("equal-load"));
            attacked.push(run(attack));
        } else {
            attacked.push(run(attack));
            equal.push(run("equal-load"));
        }
    }
    let both = attacked.iter().zip(&equal);
    let mut ratios: Vec<f64> = both.map(|(a, b)| a.trips / b.trips).collect();
    ratios.sort_by(f64::total_cmp);
    let most = |runs: &[Seen], of: fn(&Seen) -> u64| runs.iter().map(of).max().unwrap_or(0);
    println!(
        "| {attack} | {} | {:.2} ({:.2}-{:.2}) | {} µs | {} µs | {} µs |",
        attacked.iter().map(|seen| seen.rounds).sum::<u64>(),
        ratios[ratios.len() / 2],
        ratios[0],
        ratios[ratios.len() - 1],
        most(&attacked, |seen| seen.p999_us),
        most(&equal, |seen| seen.p999_us),
        most(&attacked, |seen| seen.slowest_us),
    );
}

/// Makes one run: the bystander's measurement lies within the attack.
fn besiege(bystander: &mut Peer, attack: &str, port: &str, milliseconds: u64) -> Seen {
    let mut command = Command::new(besieger());
    parity::set_environment(&mut command, Arm::Kernel);
    command.args([attack, port, &(milliseconds + 200).to_string()]);
    let limit = Duration::from_millis(milliseconds) + Duration::from_secs(30);
    let outcome = std::thread::scope(|scope| {
        let siege = scope.spawn(|| bounded::run(command, limit));
        bystander.tell(&format!("beat {milliseconds}"));
        siege.join().expect("the attack does not panic")
    });
    assert_eq!(outcome.ending, Ending::Exited(0), "{attack}: {outcome:?}");
    let rounds = outcome.stdout.trim().strip_prefix("rounds ");
    let line = bystander.line().expect("the bystander is alive");
    let seen: Vec<u64> = line
        .split(' ')
        .map(|word| word.parse().expect("a number"))
        .collect();
    Seen {
        trips: seen[0] as f64,
        p999_us: seen[2],
        slowest_us: seen[3],
        rounds: rounds.and_then(|n| n.parse().ok()).expect("rounds"),
    }
}

/// Path of the attacking program, which is built beside this example.
fn besieger() -> PathBuf {
    let example = env::current_exe().expect("its own path");
    let folder = example.parent().and_then(|examples| examples.parent());
    folder.expect("target/PROFILE/examples").join("besieger")
}
