//! The committed inputs of the fuzz targets. Each input is run, so an input that once failed
//! remains a test. Each reason to drop a frame has an input of its name.

use crate::fuzzed::{self, prepare};
use saiga_wire::Malformed;
use saiga_wire::frame::Frame;
use std::{ffi::OsStr, fs, path::PathBuf};

/// The inputs of a target with their names.
fn inputs(target: &str) -> impl Iterator<Item = (String, Vec<u8>)> {
    let crate_folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let folder = crate_folder.join("../../../fuzz/seeds").join(target);
    fs::read_dir(folder)
        .expect("a folder of inputs")
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(OsStr::to_str).expect("a name");
            (name.to_owned(), fs::read(&path).expect("an input"))
        })
}

#[test]
fn seeds_hold() {
    for (name, input) in inputs("wire_frame") {
        println!("{name}");
        fuzzed::frame(&input);
    }
    for (name, input) in inputs("wire_tcp") {
        println!("{name}");
        fuzzed::tcp(&input);
    }
}

#[test]
fn each_reason_has_a_seed() {
    let mut found = [0; Malformed::COUNT];
    for (name, input) in inputs("wire_frame") {
        let (frame, state) = prepare(&input).unwrap();
        match Frame::parse(&frame, state) {
            Ok(_) => assert!(name.starts_with("ok_"), "{name} is accepted"),
            Err(reason) => {
                assert_eq!(name, reason.name());
                found[reason as usize] += 1;
            }
        }
    }
    // The offload header is not a part of the frame.
    found[Malformed::OffloadHeader as usize] += 1;
    let missing: Vec<Malformed> = Malformed::ALL
        .into_iter()
        .filter(|reason| found[*reason as usize] == 0)
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
