//! `kill -9` of either side at random moments: the other side sees the same end as on TCP, keeps no
//! resources, and its next connection works.

use saiga_trials::{
    census::Census,
    compile,
    parity::Arm,
    peer::Peer,
    scale::{Rng, by_scale, seed},
};

const WAYS: [&str; 4] = ["recv", "poll", "epoll", "full"];

/// One round: a new victim, killed after a random number of messages.
fn round(survivor: &mut Peer, port: &str, rng: &mut Rng, victim_connects: bool) {
    let way = WAYS[usize::try_from(rng.below(4)).expect("below 4")];
    // With "full" the survivor never reads again, so the victim sends little.
    let most = if way == "full" { 60 } else { 300 };
    let messages = usize::try_from(rng.below(most)).expect("small");
    let program = compile::tool("victim");
    let mut victim = if victim_connects {
        survivor.tell(&format!("accept {way}"));
        Peer::start(program, &["connect", port], Arm::Library)
    } else {
        let mut victim = Peer::start(program, &["listen"], Arm::Library);
        let port = victim.expect("port");
        survivor.tell(&format!("connect {port} {way}"));
        victim
    };
    // At least the connection must exist; otherwise the survivor would wait for ever.
    assert!(
        victim.await_bytes(messages.max(1)),
        "the victim ended by itself ({way})"
    );
    victim.kill();
    let end = survivor.expect("end");
    assert!(
        ["EOF", "ECONNRESET", "EPIPE"].contains(&end.as_str()),
        "after {messages} messages ({way}) the survivor saw {end}"
    );
}

fn series(own_seed: u64, victim_connects: bool) {
    let mut rng = Rng::new(seed(own_seed));
    let mut survivor = Peer::start(compile::tool("survivor"), &[], Arm::Library);
    let port = survivor.expect("port");
    for _ in 0..20 {
        round(&mut survivor, &port, &mut rng, victim_connects);
    }
    let before = survivor.census();
    let rounds = by_scale(100, 1000);
    for _ in 0..rounds {
        round(&mut survivor, &port, &mut rng, victim_connects);
    }
    let after = survivor.census();
    // The link to the last dead peer may exist before, after, or both.
    before.assert_no_growth(&after, 1, 512, &format!("{rounds} kills"));
    let upgrades = Census::upgrades(survivor.pid());
    println!("{upgrades} upgrades");
    assert!(
        upgrades > rounds / 4,
        "only {upgrades} of {rounds} connections were upgraded"
    );
}

#[test]
fn survivor_of_killed_clients_keeps_nothing() {
    series(11, true);
}

#[test]
fn survivor_of_killed_servers_keeps_nothing() {
    series(12, false);
}
