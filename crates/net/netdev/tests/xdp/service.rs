//! A TCP host on the queues (the example `xdp`), with the kernel as its client.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::settings;
use crate::world::{HOST_V4, HOST_V6, World, run};

/// A process that ends with the test.
pub(crate) struct Ended(Child);

impl Ended {
    /// Kills the process with SIGKILL, and waits for its end.
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _status = self.0.wait();
    }
}

/// The example, built if it is missing. After a change, `cargo test -p saiga-netdev` builds it
/// again; `--test xdp` alone does not.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("examples/xdp");
    if !built.exists() {
        let arguments = [
            "build",
            "--quiet",
            "--package",
            "saiga-netdev",
            "--example",
            "xdp",
        ];
        let done = Command::new(env!("CARGO")).args(arguments).status();
        assert!(done.unwrap().success());
    }
    built
}

/// Starts the example on `vs`. It must say `ready`.
pub(crate) fn start(world: &World, options: &[&str], ready: &str) -> Ended {
    world.host.within(|| {
        let mut child = Command::new(example())
            .args(["vs", "10.77.0.1/24", "fd77::1/64"])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let child = Ended(child);
        assert_eq!(line, format!("ready {ready}\n"));
        child
    })
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

/// One byte, much data, many connections; ping beside them.
fn converse(world: &World) {
    world.client.within(|| {
        for (to, host) in [("10.77.0.1:7", HOST_V4), ("[fd77::1]:7", HOST_V6)] {
            run("ping", &["-c", "1", "-w", "20", host]);
            echo(to, 1);
            echo(to, 5_000_000);
            for _ in 0..50 {
                echo(to, 1_000);
            }
            let closed = TcpStream::connect((host, 8)).unwrap_err();
            assert_eq!(closed.kind(), std::io::ErrorKind::ConnectionRefused);
        }
    });
}

#[test]
fn the_kernel_talks_to_the_stack_in_native_mode() {
    let world = World::new();
    let _service = start(&world, &[], "Native 1");
    converse(&world);
}

/// All checksums are formed, and verified by the stack.
#[test]
fn the_kernel_talks_to_the_stack_with_checksums() {
    let world = World::new();
    world
        .client
        .within(|| settings::set("vc", settings::TX_CHECKSUM, 0));
    let _service = start(&world, &[], "Native 1");
    converse(&world);
}

/// In generic mode, nothing divides the client's super-segments before the program sees them.
#[test]
fn the_kernel_talks_to_the_stack_in_generic_mode() {
    let world = World::new();
    world
        .client
        .within(|| settings::set("vc", settings::SEGMENTATION, 0));
    let _service = start(&world, &["--mode", "generic"], "Generic 1");
    converse(&world);
}

#[test]
fn the_kernel_talks_to_the_stacks_of_many_queues() {
    let world = World::with_queues(4);
    let _service = start(&world, &[], "Native 4");
    converse(&world);
}

/// A killed process leaves nothing: the kernel serves the next connection, and the next process
/// opens the same queue at once.
#[test]
fn the_kernel_serves_when_the_process_is_killed() {
    let world = World::new();
    let listener = world
        .host
        .within(|| TcpListener::bind((HOST_V4, 7)).unwrap());
    for _ in 0..5 {
        let mut service = start(&world, &[], "Native 1");
        let mut stream = world.client.within(|| {
            echo("10.77.0.1:7", 100_000);
            TcpStream::connect((HOST_V4, 7)).unwrap()
        });
        stream.write_all(&[1; 10_000]).unwrap();
        service.kill();
        let client = world
            .client
            .within(|| TcpStream::connect((HOST_V4, 7)).unwrap());
        let (accepted, peer) = listener.accept().unwrap();
        assert_eq!(client.local_addr().unwrap(), peer);
        drop((accepted, client));
        // The kernel does not know the connection, and says so.
        let error = loop {
            match stream.write_all(b"x") {
                Ok(()) => thread::yield_now(),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
}
