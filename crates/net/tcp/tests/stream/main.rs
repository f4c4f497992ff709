//! Sequences of calls and segments into one connection: the committed inputs of the fuzz target
//! `tcp_stream`, and random ones.
//!
//! `tools/fuzz tcp_stream 60` searches for more.

mod driven;

use std::fs;
use std::path::Path;

/// An input that once failed remains a test.
#[test]
fn seeds_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/tcp_stream");
    let mut count = 0;
    for file in fs::read_dir(folder).expect("a folder of inputs") {
        let path = file.expect("an entry").path();
        println!("{}", path.display());
        driven::stream(&fs::read(&path).expect("an input"));
        count += 1;
    }
    assert!(count > 0);
}

/// Random bytes. The seed is printed before each input, so that a failure can be repeated.
#[test]
fn random_streams_hold() {
    for seed in 0..3000 {
        println!("{seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let input: Vec<u8> = (0..random.usize(4..600))
            .map(|_| random.u8(..) & random.choice([255, 255, 127, 15]).unwrap_or(255))
            .collect();
        driven::stream(&input);
    }
}
