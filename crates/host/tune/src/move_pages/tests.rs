//! Moves on this machine, which may have one node only: real moves are in the tests with QEMU.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use saiga_process::root::Root;

use super::*;

#[test]
fn the_text_of_a_process_is_moved_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("cat");
    fs::copy("/bin/cat", &program).unwrap();
    let mut child = Command::new(&program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // A byte that comes back shows that the program runs, so that its pages are resident.
    child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let request = MoveRequest {
        pid: child.id(),
        node: 0,
        what: What::Text,
        bytes_per_second: None,
    };
    let mut seen = Vec::new();
    let report = move_pages(&request, &|| false, &mut |file| seen.push(file.clone())).unwrap();
    assert_eq!(report.files, seen);
    let file = &report.files[0];
    assert_eq!((report.files.len(), &file.path), (1, &program));
    let pages = fs::metadata(&program)
        .unwrap()
        .len()
        .div_ceil(report.page_bytes);
    assert_eq!(file.after.values().sum::<u64>(), pages);
    assert!(report.is_complete(0), "{report:?}");

    let libraries = MoveRequest {
        what: What::Libraries,
        ..request
    };
    let report = move_pages(&libraries, &|| false, &mut |_| {}).unwrap();
    assert!(
        report
            .files
            .iter()
            .any(|file| file.path.to_string_lossy().contains("libc"))
    );

    let stopped = move_pages(&libraries, &|| true, &mut |_| {}).unwrap();
    assert!(stopped.is_interrupted && stopped.files.len() == 1);
    assert!(!stopped.is_complete(0));

    drop(child.stdin.take());
    child.wait().unwrap();
    let error = move_pages(&request, &|| false, &mut |_| {}).unwrap_err();
    assert!(matches!(error, MoveError::NoProcess { .. }), "{error}");
}

#[test]
fn nodes_without_memory_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::at(dir.path());
    fs::create_dir_all(root.path("/sys/devices/system/node")).unwrap();
    fs::write(root.path("/sys/devices/system/node/online"), "0-3\n").unwrap();
    fs::write(root.path("/sys/devices/system/node/has_memory"), "0,2\n").unwrap();
    assert!(check_node(&root, 2).is_ok());
    assert_eq!(
        check_node(&root, 1).unwrap_err().to_string(),
        "node 1 has no memory; nodes with memory: 0,2"
    );
    assert_eq!(
        check_node(&root, 4).unwrap_err().to_string(),
        "there is no node 4; this host has 0-3"
    );
    // A kernel without NUMA has no such directory.
    assert!(check_node(&Root::at("/nonexistent"), 0).is_ok());
}

#[test]
fn a_file_that_shrinks_is_not_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shrinks");
    fs::write(&path, vec![1; 1 << 20]).unwrap();
    let file = fs::File::options()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let mapping = Mapping::of(&file).unwrap();
    let resident = mapping.resident().unwrap();
    assert_eq!(resident.len(), (1 << 20) / rustix::param::page_size());
    file.set_len(4096).unwrap();
    mapping.fault_in(&resident);
    let outcomes = mapping.nodes(&resident).unwrap();
    assert!(matches!(outcomes[0], Outcome::Node(_)));
    assert!(matches!(outcomes.last(), Some(Outcome::Error(_))));
}
