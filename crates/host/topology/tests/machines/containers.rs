//! Containers, and machines that only look like one.

use saiga_topology::collect::collect;
use saiga_topology::read::read;
use saiga_topology::unpack::Sysroot;

use crate::recorded;

const HOST: &str = "pid:[4026531836]";
const OTHER: &str = "pid:[4026532201]";
const HOST_CGROUP: &str = "cgroup:[4026531835]";
const OTHER_CGROUP: &str = "cgroup:[4026532273]";
/// A cgroup namespace hides the path, and so does a process at the root of the hierarchy.
const ROOT: &str = "0::/";

/// What a process sees of its surroundings.
struct Surroundings {
    name: &'static str,
    cgroup: &'static str,
    /// Targets of `/proc/self/ns/pid` and `/proc/self/ns/cgroup`; none in trees of other tools.
    namespaces: Option<(&'static str, Option<&'static str>)>,
    /// A file and its text.
    file: Option<(&'static str, &'static str)>,
    expected: Option<&'static str>,
}

const DOCKER: (&str, &str) = ("/.dockerenv", "");
const PODMAN: (&str, &str) = ("/run/.containerenv", "engine=\"podman\"");
const SYSTEMD: &str = "/run/systemd/container";

const HOSTS: [Surroundings; 5] = [
    Surroundings {
        name: "bare metal",
        cgroup: "0::/user.slice/user-0.slice/session-1.scope",
        namespaces: Some((HOST, Some(HOST_CGROUP))),
        file: None,
        expected: None,
    },
    Surroundings {
        name: "a virtual machine whose image was made from a Docker image",
        cgroup: ROOT,
        namespaces: Some((HOST, Some(HOST_CGROUP))),
        file: Some(DOCKER),
        expected: None,
    },
    Surroundings {
        name: "a virtual machine whose image was a systemd container",
        cgroup: "0::/system.slice/ssh.service",
        namespaces: Some((HOST, Some(HOST_CGROUP))),
        file: Some((SYSTEMD, "oci")),
        expected: None,
    },
    Surroundings {
        name: "the same before cgroup namespaces (Linux 4.6)",
        cgroup: "2:cpuset:/\n1:memory:/user.slice",
        namespaces: Some((HOST, None)),
        file: Some(DOCKER),
        expected: None,
    },
    Surroundings {
        name: "a tree of another tool, with nothing",
        cgroup: ROOT,
        namespaces: None,
        file: None,
        expected: None,
    },
];

const CONTAINERS: [Surroundings; 12] = [
    Surroundings {
        name: "Docker, cgroup v2",
        cgroup: ROOT,
        namespaces: Some((OTHER, Some(OTHER_CGROUP))),
        file: Some(DOCKER),
        expected: Some("Docker container"),
    },
    Surroundings {
        name: "Docker, cgroup v1",
        cgroup: "3:cpuset:/docker/7\n2:memory:/docker/7",
        namespaces: Some((OTHER, Some(HOST_CGROUP))),
        file: Some(DOCKER),
        expected: Some("Docker container"),
    },
    Surroundings {
        name: "Docker with --pid=host, cgroup v2",
        cgroup: ROOT,
        namespaces: Some((HOST, Some(OTHER_CGROUP))),
        file: Some(DOCKER),
        expected: Some("Docker container"),
    },
    Surroundings {
        name: "Docker with --pid=host --cgroupns=host",
        cgroup: "0::/system.slice/docker-7.scope",
        namespaces: Some((HOST, Some(HOST_CGROUP))),
        file: Some(DOCKER),
        expected: Some("Docker container"),
    },
    Surroundings {
        name: "Podman",
        cgroup: ROOT,
        namespaces: Some((OTHER, Some(OTHER_CGROUP))),
        file: Some(PODMAN),
        expected: Some("Podman container"),
    },
    Surroundings {
        name: "Podman with systemd",
        cgroup: "0::/init.scope",
        namespaces: Some((OTHER, Some(OTHER_CGROUP))),
        file: Some((SYSTEMD, "podman")),
        expected: Some("Podman container"),
    },
    Surroundings {
        name: "LXC with systemd",
        cgroup: "0::/init.scope",
        namespaces: Some((OTHER, Some(OTHER_CGROUP))),
        file: Some((SYSTEMD, "lxc")),
        expected: Some("LXC container"),
    },
    Surroundings {
        name: "LXC without systemd",
        cgroup: ROOT,
        namespaces: Some((OTHER, Some(OTHER_CGROUP))),
        file: None,
        expected: Some("container"),
    },
    Surroundings {
        name: "systemd-nspawn",
        cgroup: "0::/init.scope",
        namespaces: Some((OTHER, Some(OTHER_CGROUP))),
        file: Some((SYSTEMD, "systemd-nspawn")),
        expected: Some("systemd-nspawn container"),
    },
    Surroundings {
        name: "Kubernetes with containerd, cgroup v2",
        cgroup: ROOT,
        namespaces: Some((OTHER, Some(OTHER_CGROUP))),
        file: Some(("/var/run/secrets/kubernetes.io/serviceaccount/token", "x")),
        expected: Some("Kubernetes container"),
    },
    Surroundings {
        name: "Kubernetes with hostPID, privileged",
        cgroup: "0::/kubepods.slice/kubepods-pod7.slice/cri-containerd-7.scope",
        namespaces: Some((HOST, Some(HOST_CGROUP))),
        file: None,
        expected: Some("Kubernetes container"),
    },
    Surroundings {
        name: "an archive without the links of namespaces",
        cgroup: ROOT,
        namespaces: None,
        file: Some((SYSTEMD, "oci")),
        expected: Some("container"),
    },
];

#[test]
fn containers_are_told_from_machines_with_their_files() {
    for seen in HOSTS.iter().chain(&CONTAINERS) {
        let tree = recorded::memory_only();
        tree.write("/proc/self/cgroup", seen.cgroup);
        if let Some((pid, cgroup)) = seen.namespaces {
            tree.link("/proc/self/ns/pid", pid);
            if let Some(cgroup) = cgroup {
                tree.link("/proc/self/ns/cgroup", cgroup);
            }
        }
        if let Some((file, text)) = seen.file {
            tree.write(file, text);
        }
        let dir = tempfile::tempdir().unwrap();
        let archive = dir.path().join("machine.tar.gz");
        let collected = collect(&tree.root(), &archive).unwrap().machine;
        let again = read(Sysroot::open(&archive).unwrap().root()).unwrap();
        for machine in [collected, again] {
            let found = machine.system.virtualisation;
            assert_eq!(found.as_deref(), seen.expected, "{}", seen.name);
        }
    }
}
