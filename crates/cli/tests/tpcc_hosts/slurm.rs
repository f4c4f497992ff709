//! `slurm.sh`: a batch job on three nodes, all of which are on this host.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use saiga_trials::parity::Arm;
use saiga_trials::port;
use saiga_trials::witness::{Server, Site, await_true};

use crate::bench::Bench;
use crate::system::System;
use crate::{HOSTS, all_hosts_make_one_run, fetched, in_namespaces, repository, run_to_end, site};

#[test]
fn a_batch_job_runs_on_three_nodes_and_makes_one_report() {
    let bench = Bench::new(System::postgres());
    let cluster = Cluster::start();
    all_hosts_make_one_run(&bench, |bench| {
        let site = &cluster.site;
        symlink(repository().join("examples"), site.path("examples")).unwrap();
        let mut sbatch = cluster.client("sbatch");
        let nodes = format!("--nodes={HOSTS}");
        let props = format!("--export=ALL,PROPS={}", bench.path("props.conf").display());
        sbatch.args(["--wait", &nodes, &props, "examples/tpcc-hosts/slurm.sh"]);
        sbatch.env("SAIGA", bench.path("bin/saiga"));
        let outcome = run_to_end(sbatch);
        let said = site.read("slurm-1.out");
        assert!(
            outcome.is_success(),
            "{outcome:#?}\n{said}\n{}",
            cluster.said()
        );
        assert!(
            said.contains("Term-00, Measured tpmC (NewOrders) = "),
            "{said}"
        );
        (outcome, site.path("tpcc-1/result"))
    });
    bench.assert_nothing_left();
}

/// munge, the controller, and a daemon for each node.
struct Cluster {
    daemons: Vec<Server>,
    site: Site,
}

impl Cluster {
    fn start() -> Self {
        let mut cluster = Self {
            daemons: Vec::new(),
            site: site(),
        };
        let site = &cluster.site;
        let at = |name: &str| site.path(name).display().to_string();
        for folder in ["state", "bin"] {
            fs::create_dir(site.path(folder)).unwrap();
        }
        site.write("slurm.conf", configuration(site));
        // The test needs no limits by cgroups; the plug-in for version 2 would require them.
        site.write("cgroup.conf", "CgroupPlugin=cgroup/v1\n");
        let mut key = site.command(fetched("slurm", "bin/mungekey"), Arm::Kernel);
        key.args(["--create", &format!("--keyfile={}", at("key"))]);
        site.done(key);
        let files = [
            "key-file=key",
            "socket=munge",
            "pid-file=munge.pid",
            "log-file=munge.log",
            "seed-file=seed",
        ];
        let files = files.map(|words| {
            let (option, name) = words.split_once('=').unwrap();
            format!("--{option}={}", at(name))
        });
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let munged = cluster.daemon("munged", &[&["--foreground"], &files[..]].concat());
        cluster.daemons.push(munged);
        let socket = cluster.site.path("munge");
        await_true(|| socket.exists(), || "munged makes no socket".to_owned());
        let controller = cluster.daemon("slurmctld", &["-D"]);
        cluster.daemons.push(controller);
        let stepd = fetched("slurm", "bin/slurmstepd").display().to_string();
        for node in 1..=HOSTS {
            let name = format!("n{node}");
            fs::create_dir(cluster.site.path(&name)).unwrap();
            let node = cluster.daemon("slurmd", &["-D", "-N", &name, "-d", &stepd]);
            cluster.daemons.push(node);
        }
        let idle = || {
            let mut sinfo = cluster.client("sinfo");
            let output = sinfo
                .args(["--noheader", "--states=idle", "--format=%D"])
                .output()
                .unwrap();
            String::from_utf8_lossy(&output.stdout).trim() == HOSTS.to_string()
        };
        await_true(idle, || {
            format!("not all nodes are idle: {}", cluster.said())
        });
        cluster
    }

    fn daemon(&self, name: &str, words: &[&str]) -> Server {
        let mut command = in_namespaces(&self.site, "exec \"$0\" \"$@\"");
        command
            .arg(fetched("slurm", &format!("bin/{name}")))
            .args(words);
        command.env("SLURM_CONF", self.site.path("slurm.conf"));
        self.site.serve(command)
    }

    /// A client program of Slurm.
    fn client(&self, name: &str) -> Command {
        let program: PathBuf = fetched("slurm", &format!("bin/{name}"));
        let folder = program.parent().unwrap().display().to_string();
        let mut command = self.site.command(&program, Arm::Kernel);
        command
            .env("SLURM_CONF", self.site.path("slurm.conf"))
            .env("PATH", format!("{folder}:/usr/bin:/bin"));
        command
    }

    fn said(&self) -> String {
        self.daemons.iter().map(Server::said).collect()
    }
}

/// The configuration of a cluster whose nodes are daemons on one host.
fn configuration(site: &Site) -> String {
    let at = |name: &str| site.path(name).display().to_string();
    let mut text = format!(
        "ClusterName=trial\nSlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort={}\n\
         SlurmUser=root\nSlurmdUser=root\nAuthType=auth/munge\nAuthInfo=socket={}\nCredType=cred/munge\n\
         PluginDir={}\nStateSaveLocation={}\nSlurmdSpoolDir={}\nSlurmctldPidFile={}\nSlurmdPidFile={}\n\
         MailProg=/bin/true\nMpiDefault=none\nProctrackType=proctrack/pgid\nTaskPlugin=task/none\n\
         SwitchType=switch/none\nJobAcctGatherType=jobacct_gather/none\n\
         AccountingStorageType=accounting_storage/none\nSchedulerType=sched/builtin\n",
        port::free(),
        at("munge"),
        fetched("slurm", "plugins").display(),
        at("state"),
        at("%n"),
        at("controller.pid"),
        at("%n.pid"),
    );
    for node in 1..=HOSTS {
        let port = port::free();
        text += &format!(
            "NodeName=n{node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=1\n"
        );
    }
    text + &format!("PartitionName=main Nodes=n[1-{HOSTS}] Default=YES State=UP\n")
}
