//! Namespaces of a test, and programs that run in them.
#![expect(unsafe_code, reason = "no crate of the project wraps unshare(2)")]

use std::process::{Command, Output};
use std::{io, panic, thread};

/// Addresses of the kernel and of the stack, with the lengths of their networks.
pub(crate) const KERNEL: [&str; 2] = ["10.9.0.1/24", "fd09::1/64"];
pub(crate) const STACK: [&str; 2] = ["10.9.0.2/24", "fd09::2/64"];

/// Runs a test in a thread with network and mount namespaces of its own, which the processes,
/// threads and sockets of the thread are in.
pub(crate) fn in_namespaces(test: impl FnOnce() + Send + 'static) {
    let run = move || {
        // SAFETY: no memory is passed, and namespaces concern none.
        let done = unsafe { libc::unshare(libc::CLONE_NEWNET | libc::CLONE_NEWNS) };
        assert_eq!(done, 0, "needs root: {}", io::Error::last_os_error());
        test();
    };
    if let Err(failure) = thread::spawn(run).join() {
        panic::resume_unwind(failure);
    }
}

/// Runs a program that must succeed; returns what it prints.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let done = output(program, arguments);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success(),
        "{program} {arguments:?}: {text}{errors}"
    );
    text
}

/// Whether a program succeeds.
pub(crate) fn succeeds(program: &str, arguments: &[&str]) -> bool {
    output(program, arguments).status.success()
}

/// Runs ip(8) with the words of a line.
pub(crate) fn ip(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    run("ip", &words)
}

/// Whether the namespace has a network interface of this name.
pub(crate) fn has_interface(name: &str) -> bool {
    succeeds("ip", &["link", "show", name])
}

/// Gives the kernel its addresses on the device, and sets it up.
pub(crate) fn set_up(name: &str) {
    for address in KERNEL {
        // Without detection of duplicates, an address of IPv6 is usable at once.
        let nodad = if address.contains(':') { "nodad" } else { "" };
        ip(&format!("address add {address} dev {name} {nodad}"));
    }
    ip(&format!("link set {name} up"));
}

/// Sends echo requests, which must be answered.
pub(crate) fn ping() {
    for address in STACK {
        let (host, _length) = address.split_once('/').unwrap();
        run("ping", &["-c", "3", "-i", "0.01", "-w", "20", host]);
    }
}

fn output(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap()
}
