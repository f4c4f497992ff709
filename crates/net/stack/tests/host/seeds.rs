//! Inputs for the fuzz target `stack_frames`, made of conversations between two hosts.
//!
//! `SAIGA_WRITE_SEEDS=1 cargo test -p saiga-stack --test host seeds` writes them to
//! `fuzz/seeds/stack_frames`.

use saiga_stack::Micros;
use saiga_wire::tcp::Flags;

use crate::fuzzed;
use crate::world::{World, segment, v4, v6};

/// The frames that the second host gets, each as a step, with a decision, a call and some time
/// after each.
fn input(world: &World, calls: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0];
    let to_server = world.seen.iter().filter(|(host, _)| *host == 0);
    for ((_, frame), call) in to_server.zip(calls.iter().cycle()) {
        let length = u16::try_from(frame.len()).unwrap();
        // Both numbers are those that the host expects; a SYN begins with its own.
        let is_syn = segment(frame).is_some_and(|one| one.header.flags.contains(Flags::SYN));
        bytes.push(if is_syn { 0 } else { 3 });
        bytes.extend(length.to_be_bytes());
        bytes.extend(frame);
        bytes.push(*call);
    }
    bytes
}

/// Conversations with all bytes in order, and with calls in between.
fn inputs() -> Vec<(String, Vec<u8>)> {
    let mut inputs = Vec::new();
    for (version, own, peer) in [(4, v4(1), v4(2)), (6, v6(1), v6(2))] {
        let mut world = World::new();
        let id = world.connect(own, peer);
        world.hosts[0].write(id, &[1; 3_000], world.now);
        world.run(Micros::from_secs(1));
        let _ = world.hosts[0].stack.close(id, world.now);
        world.run(Micros::from_secs(1));
        // Step 20 accepts, 13 writes and reads, 127 lets a third of a second pass, 30 closes.
        inputs.push((
            format!("accepted-v{version}"),
            input(&world, &[20, 13, 20, 127, 13, 30]),
        ));
        inputs.push((format!("refused-v{version}"), input(&world, &[4, 7, 12])));
    }
    inputs
}

#[test]
fn seeds_run() {
    for (name, bytes) in inputs() {
        fuzzed::frames(&bytes);
        let folder = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../fuzz/seeds/stack_frames"
        );
        let file = format!("{folder}/{name}");
        if std::env::var_os("SAIGA_WRITE_SEEDS").is_some() {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(&file, &bytes).unwrap();
        }
        assert!(std::fs::metadata(&file).is_ok(), "{file} is missing");
    }
}

/// Seeds with damaged bytes.
#[test]
fn damaged_seeds_run() {
    let seed = 5;
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for (_, bytes) in inputs() {
        for _ in 0..500 {
            let mut damaged = bytes.clone();
            for _ in 0..random.usize(1..20) {
                let at = random.usize(..damaged.len());
                damaged[at] = random.u8(..);
            }
            fuzzed::frames(&damaged);
        }
    }
}
