//! ssh over loopback. sshd separates privileges: a child under seccomp reads its first bytes and
//! ends, so ssh's own connection stays on TCP; it must work. The data of a tunnel enter and leave
//! by other connections, which are upgraded.

use std::{
    fs,
    process::{Command, Stdio},
};

use saiga_trials::{
    parity::Arm::{self, Kernel, Library},
    peer::Peer,
    port,
    scale::by_scale,
    sys::{self, Signal},
    witness::{EVIDENCE, Server, Site, await_listener, await_some, await_true, upgrades_of},
};

/// Writes keys and configuration for one server and one client.
fn set_up(site: &Site, port: u16) {
    for name in ["host", "user"] {
        let mut keygen = Command::new("ssh-keygen");
        keygen
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(site.path(name));
        site.done(keygen);
    }
    let host = site.read("host.pub");
    site.write("known", format!("[127.0.0.1]:{port} {host}"));
    site.write("authorized", site.read("user.pub"));
    let at = |name: &str| site.path(name).display().to_string();
    site.write(
        "sshd.conf",
        format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n\
             Subsystem sftp internal-sftp\n",
            at("host"),
            at("authorized")
        ),
    );
}

/// sshd requires a folder of the host, /run/sshd; root makes it in a mount namespace.
fn serve(site: &Site, port: u16) -> Server {
    let config = site.path("sshd.conf");
    let command = if sys::is_root() {
        let mut command = site.command("unshare", Library);
        command.args(["--mount", "sh", "-c"]);
        command.arg(
            "mount -t tmpfs saiga /run && mkdir /run/sshd && exec /usr/sbin/sshd -D -e -f \"$0\"",
        );
        command.arg(config);
        command
    } else {
        let mut command = site.command("/usr/sbin/sshd", Library);
        command.args(["-D", "-e", "-f"]).arg(config);
        command
    };
    site.serve(command).listening(port)
}

fn client(site: &Site, arm: Arm, program: &str, port: u16) -> Command {
    let mut command = site.command(program, arm);
    command
        .arg(if program == "ssh" { "-p" } else { "-P" })
        .arg(port.to_string());
    command.args([
        "-F",
        "none",
        "-o",
        "BatchMode=yes",
        "-o",
        "StrictHostKeyChecking=yes",
        "-i",
    ]);
    command.arg(site.path("user")).arg("-o");
    command.arg(format!(
        "UserKnownHostsFile={}",
        site.path("known").display()
    ));
    command
}

#[test]
fn ssh_runs_commands_and_copies_files() {
    for evidence in EVIDENCE {
        let (site, port) = (Site::new(evidence), port::free());
        set_up(&site, port);
        let server = serve(&site, port);
        let data: Vec<u8> = (0_u32..1_200_000).flat_map(u32::to_le_bytes).collect();
        site.write("data", &data);
        for arm in [Kernel, Library] {
            let mut ssh = client(&site, arm, "ssh", port);
            ssh.args(["127.0.0.1", "echo it works; exit 0"]);
            assert_eq!(site.done(ssh), "it works\n", "{}", server.said());
            for (from, to) in [("data", "127.0.0.1:there"), ("127.0.0.1:there", "back")] {
                let place = |name: &str| match name.split_once(':') {
                    Some((host, file)) => format!("{host}:{}", site.path(file).display()),
                    None => site.path(name).display().to_string(),
                };
                let mut scp = client(&site, arm, "scp", port);
                scp.arg(place(from)).arg(place(to));
                site.done(scp);
            }
            for name in ["there", "back"] {
                assert!(
                    fs::read(site.path(name)).expect("scp wrote it") == data,
                    "{name}"
                );
                fs::remove_file(site.path(name)).expect("our own file");
            }
        }
        server.end();
    }
}

/// The running child processes of `parent`.
fn children(parent: u32) -> Vec<u32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let children = fs::read_to_string(path).unwrap_or_default();
    let pids = children.split_whitespace();
    pids.filter_map(|pid| pid.parse().ok()).collect()
}

/// The connections into and out of the tunnel are upgraded.
#[test]
fn data_of_a_tunnel_move_to_channels() {
    for evidence in EVIDENCE {
        let (site, port, way_in, target) = (
            Site::new(evidence),
            port::free(),
            port::free(),
            port::free(),
        );
        set_up(&site, port);
        let server = serve(&site, port);
        let mut echo = site.python("talk.py", Library);
        echo.args(["serve", "127.0.0.1", &target.to_string(), "echo"]);
        let echo = site.serve(echo).listening(target);
        let mut tunnel = client(&site, Library, "ssh", port);
        tunnel.args(["-N", "-o", "ExitOnForwardFailure=yes", "-L"]);
        tunnel.arg(format!("127.0.0.1:{way_in}:127.0.0.1:{target}"));
        tunnel.arg("127.0.0.1");
        let tunnel = Peer::spawn(tunnel);
        await_listener(way_in);
        let mut talk = site.python("talk.py", Library);
        talk.args([
            "ask",
            "127.0.0.1",
            &way_in.to_string(),
            "0",
            "client",
            "2000",
        ]);
        assert_eq!(
            site.done(talk),
            "checked 2000 of echo\n",
            "{}",
            server.said()
        );
        let sessions = children(server.pid());
        assert_eq!(sessions.len(), 1, "{}", server.said());
        assert_eq!(upgrades_of(tunnel.pid()), 1, "{evidence:?}: into ssh");
        assert_eq!(upgrades_of(sessions[0]), 1, "{evidence:?}: out of sshd");
        assert_eq!(echo.upgrades(), 1, "{evidence:?}");
        tunnel.kill();
        server.end();
        echo.end();
    }
}

/// An endless download until its server process is killed: the received bytes are correct.
#[test]
fn a_session_whose_sshd_is_killed_ends_and_the_next_one_works() {
    for evidence in EVIDENCE {
        let (site, port) = (Site::new(evidence), port::free());
        set_up(&site, port);
        let server = serve(&site, port);
        let data: Vec<u8> = (0_u32..250_000).flat_map(u32::to_le_bytes).collect();
        let data_file = site.write("data", &data);
        for arm in [Kernel, Library].repeat(by_scale(1, 20)) {
            let mut ssh = client(&site, arm, "ssh", port);
            ssh.arg("127.0.0.1");
            ssh.arg(format!("while cat {}; do :; done", data_file.display()));
            let come = site.path("come");
            ssh.stdout(fs::File::create(&come).expect("room in the folder"));
            let errors = fs::File::create(site.path("errors"));
            ssh.stdin(Stdio::null())
                .stderr(errors.expect("room in the folder"));
            let mut download = ssh.spawn().expect("ssh is installed");
            let enough = by_scale(3, 30) * data.len() as u64;
            await_true(
                || fs::metadata(&come).expect("our own file").len() > enough,
                || format!("nothing comes\n{}", server.said()),
            );
            let sessions = children(server.pid());
            assert_eq!(sessions.len(), 1, "{}", server.said());
            sys::signal(sessions[0], Signal::KILL).expect("a running session");
            let status = await_some(
                || download.try_wait().expect("our own child"),
                || "ssh does not notice that sshd is gone".to_owned(),
            );
            assert_eq!(status.code(), Some(255), "{}", site.read("errors"));
            let come = fs::read(come).expect("our own file");
            let right = come.chunks(data.len()).all(|part| data.starts_with(part));
            assert!(right, "{} bytes, not as they were sent", come.len());
        }
        server.end();
    }
}
