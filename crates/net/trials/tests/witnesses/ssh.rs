//! ssh over loopback: sshd separates privileges and puts itself under seccomp, so its connections
//! may stay on the kernel; they must work.

use std::{fs, process::Command};

use saiga_trials::{
    parity::Arm::{self, Kernel, Library},
    port, sys,
    witness::{EVIDENCE, Server, Site},
};

/// Keys and configuration for one server and one client.
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

/// sshd insists on a folder of the host, /run/sshd; root gives it one in a mount namespace.
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
