//! Writes the first inputs of the fuzz target `capture` into a folder.

#[path = "../tests/captures/mixed.rs"]
mod mixed;
#[path = "../tests/captures/wire.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod wire;

use std::{fs, io, path::PathBuf};

fn main() -> io::Result<()> {
    let folder = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "fuzz/corpus/capture".to_owned());
    let folder = PathBuf::from(folder);
    fs::create_dir_all(&folder)?;
    let mut cut = mixed::mixed();
    cut.snap(70);
    for (name, file) in [
        ("mixed.pcap", mixed::mixed().pcap()),
        ("mixed.pcapng", mixed::mixed_ng()),
        ("cut.pcap", cut.pcap()),
    ] {
        fs::write(folder.join(name), file)?;
    }
    Ok(())
}
