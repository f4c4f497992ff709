//! The container in which this process runs.
//!
//! A container has a PID namespace of its own, and `/proc/self/ns/pid` shows it: the number of the
//! kernel's first PID namespace is fixed. Files that a container's manager creates tell the kind.
//! By themselves they prove nothing, because the image of a virtual machine that was made from a
//! container has them, too. Trees without the links of namespaces are judged by these files.

use crate::read::ReadError;
use crate::source::Source;

/// `PID_NS_INIT_INO` and `CGROUP_NS_INIT_INO` of `include/uapi/linux/nsfs.h`, fixed since Linux 3.8
/// and 4.6.
const FIRST_PID: &str = "pid:[4026531836]";
const FIRST_CGROUP: &str = "cgroup:[4026531835]";
/// Words in the cgroup of a container, or in the file in which systemd keeps its kind.
const KINDS: [(&str, &str); 7] = [
    ("kubepods", "Kubernetes container"),
    ("docker", "Docker container"),
    ("libpod", "Podman container"),
    ("podman", "Podman container"),
    ("systemd-nspawn", "systemd-nspawn container"),
    ("containerd", "containerd container"),
    ("lxc", "LXC container"),
];
const FILES: [(&str, &str); 3] = [
    ("/var/run/secrets/kubernetes.io", "Kubernetes container"),
    ("/run/.containerenv", "Podman container"),
    ("/.dockerenv", "Docker container"),
];
const UNKNOWN: &str = "container";

/// The kind of the container; `None` outside of containers.
pub(super) fn of_this_process(source: &Source) -> Result<Option<String>, ReadError> {
    let cgroup = source.text("/proc/self/cgroup")?.unwrap_or_default();
    if let Some(name) = named(&cgroup, &KINDS) {
        return Ok(Some(name));
    }
    let marked = marked(source)?;
    let pid = source.link("/proc/self/ns/pid")?;
    let cgroup = source.link("/proc/self/ns/cgroup")?;
    let is_first = |link: Option<String>, first: &str| link.map(|link| link == first);
    Ok(
        match (is_first(pid, FIRST_PID), is_first(cgroup, FIRST_CGROUP)) {
            (Some(false), _) => Some(marked.unwrap_or_else(|| UNKNOWN.to_owned())),
            // Without a cgroup namespace, the cgroup above would name the manager.
            (Some(true), Some(true) | None) => None,
            // `--pid=host` of Docker and Podman, or a tree without these links.
            (Some(true), Some(false)) | (None, _) => marked,
        },
    )
}

/// The kind by the files of container managers.
fn marked(source: &Source) -> Result<Option<String>, ReadError> {
    if let Some(kind) = source.word("/run/systemd/container")? {
        let name = named(&kind, &KINDS);
        return Ok(Some(name.unwrap_or_else(|| UNKNOWN.to_owned())));
    }
    for (file, name) in FILES {
        if source.exists(file)? {
            return Ok(Some(name.to_owned()));
        }
    }
    Ok(None)
}

/// The first name whose word is part of a text.
fn named(text: &str, words: &[(&str, &str)]) -> Option<String> {
    let text = text.to_lowercase();
    let found = words.iter().find(|(word, _)| text.contains(word));
    found.map(|(_, name)| (*name).to_owned())
}
