//! Payload integrity: a pattern both ways through every send and receive call, in random sizes,
//! checked byte for byte by `programs/tools/integrity.c`, while channels are upgraded and
//! downgraded at random moments and sides are stopped.

use std::thread;

use saiga_trials::{
    Signal, compile, library,
    moves::Moves,
    parity::{self, Arm},
    peer::Peer,
    scale::{Rng, by_scale, seed},
    sys,
};

const STEADY: [(&str, &str); 4] = [
    ("threads", "threads"),
    ("threads", "poll"),
    ("poll", "threads"),
    ("poll", "poll"),
];
/// Modes in which one side or both replace themselves by exec at times.
const REPLACED: [(&str, &str); 5] = [
    ("threads", "exec"),
    ("exec", "threads"),
    ("poll", "exec"),
    ("exec", "poll"),
    ("exec", "exec"),
];

/// Disturbance of the two sides during the transfer.
#[derive(Debug, Clone, Copy)]
enum Disturbance {
    None,
    /// `SAIGA_CHAOS`: the library freezes, downgrades and upgrades at random calls.
    Chaos,
    /// SIGSTOP and SIGCONT of either side.
    Stops,
    /// The connecting side runs without the library.
    OneSided,
}

fn start(args: &[&str], disturbance: Disturbance, seed: u64) -> Peer {
    let mut command = std::process::Command::new(compile::tool("integrity"));
    let one_sided = matches!(disturbance, Disturbance::OneSided) && args[0] == "connect";
    parity::set_environment(
        &mut command,
        if one_sided { Arm::Kernel } else { Arm::Library },
    );
    if matches!(disturbance, Disturbance::Chaos) {
        command.env("LD_PRELOAD", library::with_chaos());
        command.env("SAIGA_CHAOS", seed.to_string());
    }
    command.args(args);
    Peer::spawn(command)
}

/// One connection, `total` bytes each way; both sides check and must agree. Returns both sides'
/// moves.
fn pour(seed: u64, total: u64, modes: (&str, &str), disturbance: Disturbance) -> Moves {
    println!("seed {seed}: {total} bytes, {modes:?}, {disturbance:?}");
    let (seed_text, total_text) = (seed.to_string(), total.to_string());
    let mut listening = start(
        &["listen", &seed_text, &total_text, modes.0],
        disturbance,
        seed,
    );
    let port = listening.expect("port");
    let connecting = start(
        &["connect", &seed_text, &total_text, modes.1, &port],
        disturbance,
        seed + 1,
    );
    let mut sides = [listening, connecting];
    if matches!(disturbance, Disturbance::Stops) {
        stop_and_continue(&mut sides, seed, total);
    }
    let mut sum = Moves::default();
    for (name, side) in ["listening", "connecting"].iter().zip(thread_each(sides)) {
        let (said, status) = side;
        let done = said
            .lines()
            .any(|line| line == format!("done {total} {total}"));
        assert!(
            status.success() && done,
            "seed {seed}: {name} side: {status}, said {said:?}"
        );
        let carried = said
            .lines()
            .find_map(|line| line.strip_prefix("carried by TCP: "));
        let carried: u64 = carried
            .and_then(|text| text.parse().ok())
            .expect("a number");
        println!("  {name}: TCP carried {} %", carried * 100 / total);
        sum += said
            .lines()
            .find_map(Moves::parse)
            .expect("a line with moves");
        // With chaos and exec, and after the peer's FIN, a connection goes back to TCP: the kernel
        // carries a part.
        let steady = matches!(disturbance, Disturbance::None | Disturbance::Stops);
        let steady = steady && modes.0 != "exec" && modes.1 != "exec";
        assert!(carried < total || !steady, "seed {seed}: never upgraded");
    }
    sum
}

/// Reads both sides to their end at once: either may wait for the other.
fn thread_each(sides: [Peer; 2]) -> Vec<(String, std::process::ExitStatus)> {
    let readers = sides.map(|side| thread::spawn(move || side.finish()));
    readers
        .into_iter()
        .map(|reader| reader.join().expect("a side hangs"))
        .collect()
}

/// Stops one side after a random amount of progress, so that the other fills its buffers, and
/// continues: six times.
fn stop_and_continue(sides: &mut [Peer; 2], seed: u64, total: u64) {
    let mut rng = Rng::new(seed);
    let steps = total / (256 << 10) / 8;
    for _ in 0..6 {
        let which = usize::try_from(rng.below(2)).expect("0 or 1");
        let dots = usize::try_from(rng.below(steps) + 1).expect("small");
        if !sides[which].await_bytes(dots) {
            return;
        }
        sides[which].signal(Signal::STOP);
        sys::wait_stopped(sides[which].pid()).expect("our child");
        // The other side may receive any bytes while its peer is stopped.
        sides[which].signal(Signal::CONT);
    }
}

/// Transfers through each pair of modes. Returns the number of connections, and their moves.
fn every_mode(own_seed: u64, modes: &[(&str, &str)], disturbance: Disturbance) -> (u64, Moves) {
    let mut rng = Rng::new(seed(own_seed));
    let total = by_scale(12 << 20, 400 << 20);
    let (mut connections, mut moves) = (0, Moves::default());
    for _ in 0..by_scale(2, 10) {
        for &pair in modes {
            connections += 1;
            moves += pour(rng.below(1 << 40), total, pair, disturbance);
        }
    }
    (connections, moves)
}

#[test]
fn bytes_arrive_as_sent_by_every_call() {
    every_mode(1, &STEADY, Disturbance::None);
}

#[test]
fn bytes_arrive_as_sent_under_chaos() {
    let (connections, moves) = every_mode(2, &STEADY, Disturbance::Chaos);
    // Both ends of each connection move once on average; three times is usual.
    let least = 2 * connections;
    assert!(
        moves.upgrades >= least && moves.downgrades >= least,
        "chaos left {connections} connections alone: {moves:?}"
    );
}

#[test]
fn bytes_arrive_as_sent_when_sides_are_stopped() {
    every_mode(3, &STEADY, Disturbance::Stops);
}

#[test]
fn bytes_arrive_as_sent_when_one_side_is_not_accelerated() {
    every_mode(4, &STEADY, Disturbance::OneSided);
    every_mode(5, &REPLACED, Disturbance::OneSided);
}

#[test]
fn bytes_arrive_as_sent_across_exec() {
    every_mode(6, &REPLACED, Disturbance::None);
}
