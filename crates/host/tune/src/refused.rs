//! What is never done, whatever is asked, and what to do instead.

/// A step of the procedures that harms others or opens the host.
#[derive(Debug, Clone, Copy)]
pub struct Refused {
    pub id: &'static str,
    /// Other names for it.
    pub names: &'static [&'static str],
    pub reason: &'static str,
    pub instead: &'static str,
}

pub const REFUSED: [Refused; 7] = [
    Refused {
        id: "ipcrm",
        names: &["ipcs"],
        reason: "it removes shared memory of other databases",
        instead: "remove single segments of your own user that no process is attached to \
                  (ipcs -m -p; ipcrm -m ID)",
    },
    Refused {
        id: "mkfs",
        names: &["mkfs.xfs", "mkfs.ext4", "format"],
        reason: "it destroys the data on the disk",
        instead: "make the file system yourself, on a disk that lsblk -f shows as empty",
    },
    Refused {
        id: "firewall",
        names: &["firewalld", "iptables", "nftables"],
        reason: "without a firewall, every port is open to the network",
        instead: "open the port of the database only; measure with and without a rule for it",
    },
    Refused {
        id: "root@%",
        names: &["root", "user"],
        reason: "the administrator of the database could log in from every host",
        instead: "create an account for the benchmark, with a password and for its host only",
    },
    Refused {
        id: "skip-grant-tables",
        names: &["protected-mode"],
        reason: "every client becomes administrator of the database",
        instead: "create an account for the benchmark",
    },
    Refused {
        id: "audit",
        names: &[
            "audit-enabled",
            "auditd",
            "security-policy",
            "enable-security-policy",
        ],
        reason: "changes of data are no longer recorded",
        instead: "measure with the audit rules that production has",
    },
    Refused {
        id: "tls",
        names: &["ssl", "require-secure-transport", "skip-ssl"],
        reason: "passwords and data would cross the network in the clear",
        instead: "use a Unix socket on the same host, or a cipher with hardware support",
    },
];

#[must_use]
pub fn find(name: &str) -> Option<&'static Refused> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let mut all = REFUSED.iter();
    all.find(|refused| refused.id == name || refused.names.contains(&name.as_str()))
}
