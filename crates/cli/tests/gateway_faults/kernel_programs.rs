//! curl, ab, iperf3 and ssh on the interface of the gateway, over ports that it does not serve: the
//! kernel carries them while the gateway works.
//!
//! Only with AF_XDP: the other end of a TAP device is not an interface of the server's host.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::support::program::{Ended, start};
use crate::support::text;
use crate::world::{SERVER, World, succeed};

/// Ports without `[[serve]]`.
const HTTP: u16 = 8080;
const IPERF: u16 = 5201;
const SSH: u16 = 2222;
/// Lines of the file that curl, ab and ssh fetch: 300 KB.
const LINES: u32 = 50_000;

/// The servers, and a thread with their clients.
pub(crate) struct KernelPrograms {
    over: Arc<AtomicBool>,
    /// Returns how often the clients have run.
    clients: JoinHandle<u32>,
    _servers: [Ended; 3],
}

impl KernelPrograms {
    /// Starts the servers, and their clients on the client's host.
    pub(crate) fn start(world: &World) -> Self {
        let dir = world.saiga.path("kernel");
        prepare(&dir);
        let servers = [serve_http(&dir), serve_iperf(), serve_ssh(&dir)];
        let over = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&over);
        let clients = world.thread_on_client(move || {
            run_iperf();
            let mut rounds = 0;
            while rounds == 0 || !theirs.load(Ordering::Relaxed) {
                run_clients(&dir);
                rounds += 1;
            }
            rounds
        });
        Self {
            over,
            clients,
            _servers: servers,
        }
    }

    /// Waits for the clients; returns how often they have run.
    pub(crate) fn end(self) -> u32 {
        self.over.store(true, Ordering::Relaxed);
        self.clients.join().unwrap()
    }
}

/// The file to fetch, keys, and the settings of sshd.
fn prepare(dir: &Path) {
    fs::create_dir(dir).unwrap();
    let lines: String = (0..LINES).map(|number| format!("{number}\n")).collect();
    fs::write(dir.join("file"), lines).unwrap();
    for name in ["host", "user"] {
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]);
        succeed(keygen.arg(dir.join(name)));
    }
    let host = fs::read_to_string(dir.join("host.pub")).unwrap();
    fs::write(dir.join("known"), format!("[{SERVER}]:{SSH} {host}")).unwrap();
    let settings = format!(
        "Port {SSH}\nListenAddress {SERVER}\nHostKey {0}/host\nAuthorizedKeysFile {0}/user.pub\n\
         PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n",
        dir.display()
    );
    fs::write(dir.join("sshd.conf"), settings).unwrap();
}

fn serve_http(dir: &Path) -> Ended {
    let mut command = Command::new("python3");
    command.args(["-u", "-m", "http.server", &HTTP.to_string()]);
    command.args(["--bind", &SERVER.to_string(), "--directory", text(dir)]);
    // It reports each request there.
    command.stderr(Stdio::null());
    start(&mut command, "Serving HTTP")
}

fn serve_iperf() -> Ended {
    let mut command = Command::new("iperf3");
    command.args(["--server", "--forceflush", "--port", &IPERF.to_string()]);
    command.args(["--bind", &SERVER.to_string()]);
    start(&mut command, "Server listening")
}

/// sshd requires a directory of the host, /run/sshd, which is made in a mount namespace.
fn serve_ssh(dir: &Path) -> Ended {
    let script = "mount -t tmpfs saiga /run && mkdir /run/sshd && exec /usr/sbin/sshd -D -e -f \
                  \"$0\" 2>&1";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]);
    start(command.arg(dir.join("sshd.conf")), "Server listening")
}

/// Once: the server may take the last words of a client late, and refuses the next one until then.
fn run_iperf() {
    let (server, port) = (SERVER.to_string(), IPERF.to_string());
    let mut iperf = Command::new("iperf3");
    iperf.args(["--client", &server, "--port", &port, "--bytes", "2M"]);
    let said = succeed(&mut iperf);
    assert!(said.contains("iperf Done."), "{said}");
}

/// Each other client once; each must get the right bytes.
fn run_clients(dir: &Path) {
    let wanted = fs::read_to_string(dir.join("file")).unwrap();
    let url = format!("http://{SERVER}:{HTTP}/file");
    let fetched = succeed(Command::new("curl").args(["-sS", "--fail", &url]));
    assert!(fetched == wanted, "curl got other bytes");

    let mut ab = Command::new("ab");
    let said = succeed(ab.args(["-q", "-n", "8", "-c", "4", &url]));
    let is_complete = |line: &str| line.split_whitespace().eq(["Complete", "requests:", "8"]);
    assert!(said.lines().any(is_complete), "{said}");
    assert!(!said.contains("Non-2xx"), "{said}");

    let mut ssh = Command::new("ssh");
    ssh.args(["-F", "none", "-p", &SSH.to_string(), "-o", "BatchMode=yes"]);
    ssh.arg("-o")
        .arg(format!("UserKnownHostsFile={}/known", dir.display()));
    ssh.arg("-i").arg(dir.join("user")).arg(SERVER.to_string());
    ssh.arg(format!("cat {}/file", dir.display()));
    assert!(succeed(&mut ssh) == wanted, "ssh got other bytes");
}
