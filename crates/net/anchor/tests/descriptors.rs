//! A process without descriptors. The limit is the process's, so this test has one of its own.

use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd as _;
use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use saiga_anchor::{Anchors, Config, ConnectError, Opening, Routes};

#[test]
#[expect(unsafe_code, reason = "unshare(2) is unsafe for files alone")]
fn a_descriptor_limit_is_named_and_passes() {
    // SAFETY: the flag is not CLONE_FILES, which could close descriptors of others.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.expect("tests of anchors need root");
    for line in ["link set lo up", "address add 10.77.0.1/32 dev lo"] {
        let done = Command::new("ip").args(line.split(' ')).status();
        assert!(done.unwrap().success());
    }
    let served: SocketAddr = "10.77.0.1:6000".parse().unwrap();
    let client: SocketAddr = "10.77.0.2:40001".parse().unwrap();
    let _listener = TcpListener::bind(served).unwrap();
    let _routes = Routes::up(&Config::default(), &[served]).unwrap();
    let mut anchors = Anchors::new().unwrap();
    let limit = getrlimit(Resource::Nofile);
    // The next descriptor would have this number.
    let next = File::open("/dev/null").unwrap().as_raw_fd();
    let current = Some(u64::try_from(next).unwrap());
    setrlimit(Resource::Nofile, Rlimit { current, ..limit }).unwrap();
    let refused = anchors.connect(client, served).unwrap_err();
    assert!(
        matches!(refused, ConnectError::Descriptors { .. }),
        "{refused}"
    );
    setrlimit(Resource::Nofile, limit).unwrap();
    let opening = anchors.connect(client, served).unwrap();
    assert!(matches!(opening, Opening::Established(_)));
}
