//! The gateway without root: its user, its capabilities and its system calls while it serves.
//!
//! The adversary is a remote client or a local process that takes the gateway over by a fault of
//! its code. The process then is a user without files, with the rights that anchors need and no
//! others. It can execute no program and trace no process. Sources: `man 7 capabilities`,
//! `man 2 seccomp`, kernel security/commoncap.c.
//!
//! Linux keeps user, capabilities and filter for each thread. So the process has one thread when it
//! gives up its rights, and later threads inherit that. The thread of DPDK, which began before,
//! gives up its own. Deliberately absent: namespaces and file
//! systems of the process, which the systemd unit sets (`packaging/saiga-gateway.service`).

mod filter;

use std::fs;
use std::io;

use rustix::process::{
    DumpableBehavior, Gid, Uid, geteuid, parent_process_death_signal, set_dumpable_behavior,
    set_parent_process_death_signal,
};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, capabilities_secure_bits,
    capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits,
    set_keep_capabilities, set_no_new_privs, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};
use saiga_process::account::Account;

use crate::settings::{Capability, Device, Kind, Requirement, Runtime, Settings};

/// What anchors, rules and routes need (`saiga-anchor`): transparent sockets, sockets with a
/// client's port below 1024, and netlink.
const KEPT: CapabilitySet = CapabilitySet::NET_ADMIN.union(CapabilitySet::NET_BIND_SERVICE);
/// The number that the kernel shows for users that a namespace does not have. The library upgrades
/// no connection of this user.
const OVERFLOW: u32 = 65_534;

/// How a gateway gives up its rights.
#[derive(Debug, Clone)]
pub struct Confinement {
    /// The user that the process becomes; `None` if it is one without rights already.
    account: Option<Account>,
    uses: Uses,
}

/// What needs rights while the gateway serves.
#[derive(Debug, Clone, Copy, Default)]
struct Uses {
    has_bpf: bool,
    has_dpdk: bool,
    has_memif: bool,
}

/// Why a gateway cannot give up its rights, or lacks some.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// The user does not exist.
    #[error(
        "/etc/passwd has no user {user} for the gateway: make it (useradd --system \
         --no-create-home --shell /usr/sbin/nologin {user}), or name another one in `runtime.user`"
    )]
    NoUser {
        /// The name.
        user: String,
    },
    /// The user, or its group, is root.
    #[error("`runtime.user`: {user} has the user or group number 0; name a user without rights")]
    Root {
        /// The name.
        user: String,
    },
    /// The user is the one that the kernel shows for unknown ones.
    #[error(
        "`runtime.user`: {user} has the number 65534, which the kernel shows for unknown \
         users, so the library would not accelerate the gateway's connections; make a user for \
         the gateway"
    )]
    Unknown {
        /// The name.
        user: String,
    },
    /// The process cannot become the user.
    #[error(
        "only root can become the user {user} of `runtime.user`: start the gateway as root or as \
         {user}, or remove the key"
    )]
    OtherUser {
        /// The name.
        user: String,
    },
    /// The process lacks capabilities.
    #[error(
        "this process lacks {}: give them to it (root has them outside of containers), or start the \
         gateway by a unit with AmbientCapabilities=",
        list(.capabilities)
    )]
    Lacks {
        /// What it lacks.
        capabilities: Vec<Capability>,
    },
    /// Other threads would keep their rights.
    #[error(
        "{threads} threads run before the gateway has given up its rights: a fault of Saiga, or a \
         driver of DPDK that starts threads of its own"
    )]
    Threads {
        /// The number of threads.
        threads: usize,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What failed.
        what: &'static str,
        /// Its error.
        source: io::Error,
    },
}

impl Confinement {
    /// Finds the user, and whether the process has the rights that the settings need. Changes
    /// nothing.
    ///
    /// # Errors
    /// What is missing.
    pub fn plan(settings: &Settings) -> Result<Self, ConfineError> {
        let account = account(&settings.runtime.user)?;
        let held = held()?;
        let needs = settings.needs();
        let is_memif = |device: &Device| matches!(device.kind, Kind::Memif { .. });
        let mut uses = Uses {
            has_memif: settings.devices.iter().any(is_memif),
            ..Uses::default()
        };
        let mut lacking = Vec::new();
        if account.is_some() {
            let other_user = [Capability::SetUid, Capability::SetGid];
            lacking.extend(
                other_user
                    .into_iter()
                    .filter(|one| !held.contains(set_of(*one))),
            );
        }
        for need in &needs {
            uses.has_dpdk |= need.requirement == Requirement::DpdkPlugin;
            if let Requirement::Capability(capability) = need.requirement {
                uses.has_bpf |= capability == Capability::Bpf;
                if !held.contains(set_of(capability)) {
                    lacking.push(capability);
                }
            }
        }
        if !lacking.is_empty() {
            return Err(ConfineError::Lacks {
                capabilities: lacking,
            });
        }
        Ok(Self { account, uses })
    }

    /// The user and the group that the process becomes. What the gateway removes at its end belongs
    /// to them, such as the folder of its socket. `None` if the process keeps its own.
    #[must_use]
    pub fn owner(&self) -> Option<(u32, u32)> {
        let account = self.account.as_ref();
        account.map(|account| (account.uid, account.gid))
    }

    /// The number of the user that the process is when it serves.
    pub(crate) fn user(&self) -> u32 {
        self.owner().map_or(geteuid().as_raw(), |(user, _)| user)
    }

    /// Gives up all rights that serving does not need. Devices, rules, routes and listeners are
    /// open, and no thread but this one has started, except for `others`, which have called
    /// [`Self::confine_thread`].
    ///
    /// # Errors
    /// [`ConfineError::Threads`] and [`ConfineError::System`]. The process then may have lost the
    /// rights that removing rules and routes needs: `saiga gateway down` removes them.
    pub fn enter(&self, others: usize) -> Result<(), ConfineError> {
        no_threads_but(others)?;
        self.confine_thread()
    }

    /// Gives up the rights of the calling thread.
    ///
    /// # Errors
    /// [`ConfineError::System`].
    pub fn confine_thread(&self) -> Result<(), ConfineError> {
        if let Some(account) = &self.account {
            become_user(account)?;
        }
        let kept = if self.uses.has_bpf {
            // Before Linux 5.19, the maps of BPF programs cannot be changed without it.
            KEPT | CapabilitySet::BPF
        } else {
            KEPT
        };
        shed_capabilities(kept)?;
        // Neither a core file nor another process of the user gets the bytes of clients.
        set_dumpable_behavior(DumpableBehavior::NotDumpable)
            .map_err(system("cannot forbid core files"))?;
        set_no_new_privs(true).map_err(system("cannot set no_new_privs"))?;
        filter::enter(self.uses).map_err(|source| ConfineError::System {
            what: "cannot install the filter of system calls (seccomp)",
            source,
        })
    }
}

/// The account to become; `None` if the process is not root.
fn account(user: &str) -> Result<Option<Account>, ConfineError> {
    let own = geteuid();
    let name = || user.to_owned();
    if !own.is_root() {
        if own.as_raw() == OVERFLOW {
            return Err(ConfineError::Unknown { user: name() });
        }
        let is_own = Account::of_uid(own.as_raw()).is_some_and(|account| account.name == user);
        if !is_own && user != Runtime::default().user {
            return Err(ConfineError::OtherUser { user: name() });
        }
        return Ok(None);
    }
    match Account::named(user) {
        None => Err(ConfineError::NoUser { user: name() }),
        Some(account) if account.uid == 0 || account.gid == 0 => {
            Err(ConfineError::Root { user: name() })
        }
        Some(account) if account.uid == OVERFLOW => Err(ConfineError::Unknown { user: name() }),
        Some(account) => Ok(Some(account)),
    }
}

/// Whether the process can become the user, or has no rights that it would have to give up.
pub(crate) fn check_user(user: &str) -> Result<(), ConfineError> {
    match account(user)? {
        None => Ok(()),
        Some(_) => [Capability::SetUid, Capability::SetGid]
            .into_iter()
            .try_for_each(check_capability),
    }
}

/// Whether the process has a right.
pub(crate) fn check_capability(capability: Capability) -> Result<(), ConfineError> {
    if held()?.contains(set_of(capability)) {
        return Ok(());
    }
    Err(ConfineError::Lacks {
        capabilities: vec![capability],
    })
}

fn held() -> Result<CapabilitySet, ConfineError> {
    let sets = capabilities(None).map_err(system("cannot read the capabilities"))?;
    Ok(sets.effective)
}

fn set_of(capability: Capability) -> CapabilitySet {
    match capability {
        Capability::NetAdmin => CapabilitySet::NET_ADMIN,
        Capability::NetBindService => CapabilitySet::NET_BIND_SERVICE,
        Capability::NetRaw => CapabilitySet::NET_RAW,
        Capability::Bpf => CapabilitySet::BPF,
        Capability::SetUid => CapabilitySet::SETUID,
        Capability::SetGid => CapabilitySet::SETGID,
    }
}

/// Besides the calling thread, there are only these.
fn no_threads_but(others: usize) -> Result<(), ConfineError> {
    let tasks = fs::read_dir("/proc/self/task").map_err(|source| ConfineError::System {
        what: "cannot count the threads of this process",
        source,
    })?;
    match tasks.count() {
        threads if threads == 1 + others => Ok(()),
        threads => Err(ConfineError::Threads { threads }),
    }
}

/// Becomes a user with its group and no others. The permitted capabilities stay.
fn become_user(account: &Account) -> Result<(), ConfineError> {
    let (user, group) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
    let failed = "cannot become the user of `runtime.user`";
    // The kernel forgets it when the user changes: then `saiga compare` could leave a gateway.
    let signal = parent_process_death_signal().map_err(system(failed))?;
    set_keep_capabilities(true).map_err(system(failed))?;
    set_thread_groups(&[]).map_err(system(failed))?;
    set_thread_res_gid(group, group, group).map_err(system(failed))?;
    set_thread_res_uid(user, user, user).map_err(system(failed))?;
    set_keep_capabilities(false).map_err(system(failed))?;
    set_parent_process_death_signal(signal).map_err(system(failed))
}

/// Keeps these capabilities and no others. Changes of the bounding set and the secure bits need
/// CAP_SETPCAP, which the process may lack. They matter only to a process that executes programs.
fn shed_capabilities(kept: CapabilitySet) -> Result<(), ConfineError> {
    let failed = "cannot give up capabilities";
    let sets = capabilities(None).map_err(system(failed))?;
    let setpcap = sets.permitted & CapabilitySet::SETPCAP;
    clear_ambient_capability_set().map_err(system(failed))?;
    keep_only(kept | setpcap)?;
    if setpcap.is_empty() {
        return Ok(());
    }
    empty_bounding_set(kept)?;
    let bits = capabilities_secure_bits().map_err(system(failed))?;
    set_capabilities_secure_bits(bits | locked_bits()).map_err(system(failed))?;
    keep_only(kept)
}

fn keep_only(kept: CapabilitySet) -> Result<(), ConfineError> {
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets).map_err(system("cannot give up capabilities"))
}

/// User 0 never gets capabilities again.
fn locked_bits() -> CapabilitiesSecureBits {
    CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED
}

/// Removes all capabilities but these from the bounding set.
fn empty_bounding_set(kept: CapabilitySet) -> Result<(), ConfineError> {
    for number in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << number);
        // The kernel does not know the numbers behind its last one.
        let Ok(is_there) = capability_is_in_bounding_set(one) else {
            return Ok(());
        };
        if is_there && !kept.contains(one) {
            remove_capability_from_bounding_set(one)
                .map_err(system("cannot give up capabilities"))?;
        }
    }
    Ok(())
}

fn system(what: &'static str) -> impl FnOnce(rustix::io::Errno) -> ConfineError {
    move |error| ConfineError::System {
        what,
        source: error.into(),
    }
}

fn list(capabilities: &[Capability]) -> String {
    let shown: Vec<String> = capabilities.iter().map(ToString::to_string).collect();
    shown.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests run as root.
    #[test]
    fn a_user_must_exist_and_have_no_rights() {
        let text = |user: &str| account(user).map(drop).unwrap_err().to_string();
        let missing = text("saiga-none");
        assert!(missing.contains("useradd --system"), "{missing}");
        assert!(missing.ends_with("in `runtime.user`"), "{missing}");
        assert!(text("root").contains("number 0"));
        assert!(text("nobody").contains("65534"));
        let daemon = account("daemon").unwrap().unwrap();
        assert_eq!(daemon.name, "daemon");
    }

    #[test]
    fn lacking_capabilities_are_named_with_their_use() {
        let error = ConfineError::Lacks {
            capabilities: vec![Capability::NetAdmin, Capability::Bpf],
        };
        assert_eq!(
            error.to_string(),
            "this process lacks CAP_NET_ADMIN, for rules, routes, devices and anchors; CAP_BPF, \
             for BPF programs: give them to it (root has them outside of containers), or start \
             the gateway by a unit with AmbientCapabilities="
        );
    }
}
