//! The example `tap` beside the kernel's ping and TCP, in network namespaces of their own.
//!
//! Needs root, /dev/net/tun, ip(8), ping(8), tcpdump and tshark.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(unsafe_code, reason = "no crate of the project wraps unshare(2)")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

const ADDRESSES: [&str; 2] = ["10.9.0.2/24", "fd09::2/64"];

/// A process that ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _status = self.0.wait();
    }
}

/// Runs a test in a thread with a network namespace of its own, which the processes and sockets of
/// the thread are in.
fn in_namespace(test: impl FnOnce() + Send + 'static) {
    let run = move || {
        // SAFETY: no memory is passed.
        let done = unsafe { libc::unshare(libc::CLONE_NEWNET) };
        assert_eq!(done, 0, "needs root: {}", std::io::Error::last_os_error());
        test();
    };
    if let Err(failure) = thread::spawn(run).join() {
        std::panic::resume_unwind(failure);
    }
}

/// The example, built if it is missing. After a change, `cargo test -p saiga-stack` builds it
/// again; `--test tap` alone does not.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("examples/tap");
    if !built.exists() {
        let arguments = [
            "build",
            "--quiet",
            "--package",
            "saiga-stack",
            "--example",
            "tap",
        ];
        let done = Command::new(env!("CARGO")).args(arguments).status();
        assert!(done.unwrap().success());
    }
    built
}

/// Starts the example on the device `tap0`, with the kernel as the other host.
fn start(options: &[&str]) -> Ended {
    let mut child = Command::new(example())
        .arg("tap0")
        .args(ADDRESSES)
        .args(options)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = child.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let child = Ended(child);
    assert_eq!(line, "ready\n");
    run("ip", &["link", "set", "lo", "up"]);
    run("ip", &["address", "add", "10.9.0.1/24", "dev", "tap0"]);
    // Without detection of duplicates, the address is usable at once.
    run(
        "ip",
        &["address", "add", "fd09::1/64", "dev", "tap0", "nodad"],
    );
    run("ip", &["link", "set", "tap0", "up"]);
    child
}

fn run(program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success(),
        "{program} {arguments:?}: {text}{errors}"
    );
    text
}

/// Sends bytes to the echo service while it answers, and reads to the end.
fn echo(to: &str, bytes: usize) {
    let to: SocketAddr = to.parse().unwrap();
    let mut random = fastrand::Rng::with_seed(3);
    let sent: Vec<u8> = (0..bytes).map(|_| random.u8(..)).collect();
    let mut stream = TcpStream::connect(to).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let copy = sent.clone();
    let writing = thread::spawn(move || {
        writer.write_all(&copy).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    writing.join().unwrap();
    assert!(received == sent, "{to}: {} of {bytes}", received.len());
}

/// Every test of one device: ping, one byte, much data, many connections.
fn converse() {
    for host in ["10.9.0.2", "fd09::2"] {
        run("ping", &["-c", "3", "-i", "0.01", "-w", "20", host]);
        // Larger than the MTU: fragments come, and the answer is too large for the stack.
        run("ping", &["-c", "1", "-s", "1400", "-w", "20", host]);
    }
    for to in ["10.9.0.2:7", "[fd09::2]:7"] {
        echo(to, 1);
        echo(to, 2_000_000);
        for _ in 0..50 {
            echo(to, 1_000);
        }
    }
    let closed = TcpStream::connect("10.9.0.2:8").unwrap_err();
    assert_eq!(closed.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn the_kernel_talks_to_the_stack_with_offloads() {
    in_namespace(|| {
        let _stack = start(&[]);
        converse();
    });
}

/// Without offloads, every checksum on the device is there: tshark checks all of them.
#[test]
fn tshark_finds_no_fault() {
    in_namespace(|| {
        let _stack = start(&["--plain"]);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tap.pcap");
        let capture = capture(&file);
        converse();
        stop(capture);
        let found = |filter: &str| {
            let file = file.to_str().unwrap();
            let checks = ["tcp.check_checksum:TRUE", "ip.check_checksum:TRUE"];
            let options = [
                "-n", "-o", checks[0], "-o", checks[1], "-r", file, "-Y", filter,
            ];
            run("tshark", &options)
        };
        let faults = "_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0 \
                      || icmp.checksum.status == 0 || icmpv6.checksum.status == 0";
        assert_eq!(found(faults), "");
        // The filter finds what it looks for: segments of both hosts are there.
        assert!(found("tcp.srcport == 7").lines().count() > 1_000);
        assert!(
            found("tcp.dstport == 7 && tcp.checksum.status == 1")
                .lines()
                .count()
                > 1_000
        );
    });
}

/// A capture that has begun.
fn capture(file: &Path) -> Child {
    let mut child = Command::new("tcpdump")
        .args(["-i", "tap0", "-U", "-B", "65536", "-Z", "root", "-w"])
        .arg(file)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = child.stderr.as_mut().unwrap();
    let mut lines = BufReader::new(stderr).lines();
    let begun = lines.any(|line| line.unwrap().contains("listening on"));
    assert!(begun);
    child
}

fn stop(mut capture: Child) {
    let pid = capture.id().cast_signed();
    // SAFETY: no memory is passed.
    unsafe { libc::kill(pid, libc::SIGINT) };
    assert!(capture.wait().unwrap().success());
}
