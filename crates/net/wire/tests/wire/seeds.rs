//! The committed inputs of the fuzz targets: each is run, so that an input that once failed stays a
//! test.

use crate::fuzzed;
use std::{fs, path::PathBuf};

/// Runs each input of a target; returns their number.
fn run(target: &str, check: fn(&[u8])) -> usize {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../fuzz/seeds")
        .join(target);
    let mut inputs = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        check(&fs::read(&path).unwrap());
        inputs += 1;
    }
    inputs
}

#[test]
fn seeds_of_frames_hold() {
    assert!(run("wire_frame", fuzzed::frame) >= 10);
}

#[test]
fn seeds_of_segments_hold() {
    assert!(run("wire_tcp", fuzzed::tcp) >= 5);
}
