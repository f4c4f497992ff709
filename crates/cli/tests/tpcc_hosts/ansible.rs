//! `ansible.yml`: three hosts over ssh, each with its own address, keys, home and temporary files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use saiga_trials::parity::Arm;
use saiga_trials::port;
use saiga_trials::witness::{Server, Site};

use crate::bench::Bench;
use crate::system::System;
use crate::{HOSTS, all_hosts_make_one_run, fetched, in_namespaces, repository, run_to_end, site};

/// Sets up a load host with its own /run and /var/tmp.
const HOST: &str = "mount -t tmpfs own /run && mkdir /run/sshd && mount -t tmpfs own /var/tmp && \
                    exec /usr/sbin/sshd -D -e -f \"$0\"";

#[test]
fn a_playbook_runs_on_three_hosts_and_makes_one_report() {
    let bench = Bench::new(System::mariadb());
    let site = site();
    keys(&site);
    fs::create_dir(site.path("bin")).unwrap();
    symlink(bench.path("bin/saiga"), site.path("bin/saiga")).unwrap();
    let hosts: Vec<Host> = (1..=HOSTS)
        .map(|number| Host::start(&site, number))
        .collect();
    let addresses: Vec<(String, u16)> = hosts
        .iter()
        .map(|host| (host.address.clone(), host.port))
        .collect();
    inventory(&site, "load", "load", &addresses);
    all_hosts_make_one_run(&bench, |bench| {
        let outcome = run_to_end(playbook(&site, &bench.path("props.conf")));
        let said: Vec<String> = hosts.iter().map(|host| host.sshd.said()).collect();
        assert!(outcome.is_success(), "{outcome:#?}\n{said:#?}");
        assert!(
            outcome
                .stdout
                .contains("Term-00, Measured tpmC (NewOrders) = "),
            "{outcome:#?}"
        );
        let mut found = fs::read_dir(site.path("results")).unwrap().flatten();
        let (Some(one), None) = (found.next(), found.next()) else {
            panic!("not one folder of results")
        };
        (outcome, one.path().join("result"))
    });
    // Nor beside the playbook.
    let mut status = Command::new("git");
    status
        .args(["status", "--porcelain", "--ignored", "examples"])
        .current_dir(repository());
    assert_eq!(
        String::from_utf8(status.output().unwrap().stdout).unwrap(),
        ""
    );
    bench.assert_nothing_left();
}

struct Host {
    address: String,
    port: u16,
    sshd: Server,
}

impl Host {
    fn start(site: &Site, number: u32) -> Self {
        let (address, port) = (format!("127.0.1.{number}"), port::free());
        let config = sshd_config(site, number, &address, port);
        let mut command = in_namespaces(site, HOST);
        command.arg(config);
        let sshd = site.serve(command);
        saiga_trials::witness::await_some(
            || std::net::TcpStream::connect((address.as_str(), port)).ok(),
            || format!("nobody listens on {address}:{port}: {}", sshd.said()),
        );
        Self {
            address,
            port,
            sshd,
        }
    }
}

/// Writes the configuration of a host's sshd, and makes its home.
pub(crate) fn sshd_config(site: &Site, number: u32, address: &str, port: u16) -> PathBuf {
    let at = |name: &str| site.path(name).display().to_string();
    let home = at(&format!("home-{number}"));
    fs::create_dir(&home).unwrap();
    site.write(
        &format!("sshd-{number}.conf"),
        format!(
            "Port {port}\nListenAddress {address}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile \
             none\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n\
             Subsystem sftp internal-sftp\nSetEnv HOME={home} PATH={}:/usr/bin:/bin\n",
            at("host"),
            at("user.pub"),
            at("bin"),
        ),
    )
}

/// Makes the keys of all hosts and of the user.
pub(crate) fn keys(site: &Site) {
    for name in ["host", "user"] {
        let mut keygen = site.command("ssh-keygen", Arm::Kernel);
        keygen
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(site.path(name));
        site.done(keygen);
    }
}

/// Writes an inventory like an operator's, with options that ignore the ssh settings of this host.
/// The hosts of `group` are called PREFIX-1, PREFIX-2 and so on.
pub(crate) fn inventory(site: &Site, group: &str, prefix: &str, hosts: &[(String, u16)]) {
    let key = site.read("host.pub");
    let known = hosts.iter().map(|(address, port)| match port {
        22 => format!("{address} {key}"),
        _ => format!("[{address}]:{port} {key}"),
    });
    site.write("known", known.collect::<String>());
    let mut text = format!("[{group}]\n");
    for ((address, port), number) in hosts.iter().zip(1..) {
        text += &format!("{prefix}-{number} ansible_host={address} ansible_port={port}\n");
    }
    let at = |name: &str| site.path(name).display().to_string();
    text += &format!(
        "[{group}:vars]\nansible_ssh_private_key_file={}\nansible_user=root\n\
         ansible_ssh_common_args='-F none -o UserKnownHostsFile={} -o StrictHostKeyChecking=yes \
         -o ConnectionAttempts=30'\n",
        at("user"),
        at("known")
    );
    site.write("hosts", text);
}

/// The environment of Ansible's programs in the folder of a test.
pub(crate) fn environment(command: &mut Command, site: &Site) {
    command
        .env("HOME", site.path(""))
        .env(
            "PATH",
            format!(
                "{}:/usr/bin:/bin:/usr/sbin:/sbin",
                site.path("bin").display()
            ),
        )
        .env("LC_ALL", "C.UTF-8")
        // No ssh connection stays open after the playbook.
        .env("ANSIBLE_SSH_ARGS", "-o ControlMaster=no");
}

/// The example with the shortest possible run.
fn playbook(site: &Site, props: &Path) -> Command {
    let results = site.path("results");
    fs::create_dir(&results).unwrap();
    let mut command = site.command(fetched("ansible", "ansible-playbook"), Arm::Kernel);
    command.arg("-i").arg(site.path("hosts"));
    command.arg(repository().join("examples/tpcc-hosts/ansible.yml"));
    command.args(["-e", &format!("props={}", props.display()), "-e", "flags="]);
    command.current_dir(&results).env("PWD", &results);
    environment(&mut command, site);
    command
}
