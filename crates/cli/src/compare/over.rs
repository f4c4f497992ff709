//! `--over`: server and client on two hosts, which are network namespaces of this machine.

use anyhow::bail;
use clap::ValueEnum;
use saiga_experiment::arm::ArmKind;
use saiga_hosts::{Over, Wire};
use saiga_program::library;
use saiga_redis::{RedisArm, Topology};

use super::options::ArmName;
use super::plan::this_tool;

/// The wire between the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WireName {
    /// A veth pair; the gateway serves it by AF_XDP
    #[value(alias = "xdp")]
    Veth,
    /// A TAP device of the gateway; the kernel arm uses a veth pair
    Tap,
    /// Memory that gateways on both hosts share (memif); the kernel arm uses a veth pair
    Memif,
}

impl WireName {
    pub(super) fn wire(self) -> Wire {
        match self {
            Self::Veth => Wire::Veth,
            Self::Tap => Wire::Tap,
            Self::Memif => Wire::Memif,
        }
    }

    /// The arms of Redis over this wire.
    pub(super) fn arms(
        self,
        names: &[ArmName],
        topology: Topology,
    ) -> anyhow::Result<Vec<RedisArm>> {
        if topology != Topology::Standalone {
            bail!("--over needs --topology standalone, not {topology}");
        }
        let arms = RedisArm::named(&kinds(names)?).into_iter();
        Ok(arms.map(|arm| arm.over(self.wire())).collect())
    }

    /// Two hosts with this wire; the gateway is this program.
    pub(super) fn over(self) -> anyhow::Result<Over> {
        Ok(Over {
            wire: self.wire(),
            tool: this_tool()?,
        })
    }
}

/// The names of the arms on two hosts: those given, or kernel and gateway.
pub(super) fn arm_names(given: &[ArmName]) -> &[ArmName] {
    match given {
        [] => &[ArmName::Kernel, ArmName::Gateway],
        given => given,
    }
}

/// The transports of the arms on two hosts.
pub(super) fn kinds(names: &[ArmName]) -> anyhow::Result<Vec<ArmKind>> {
    if names.len() < 2 {
        bail!("--arms needs two arms with --over: kernel,gateway");
    }
    names.iter().map(kind).collect()
}

fn kind(name: &ArmName) -> anyhow::Result<ArmKind> {
    match name {
        ArmName::Kernel => Ok(ArmKind::Kernel),
        ArmName::Gateway => Ok(ArmKind::Gateway(library::find()?)),
        ArmName::Unix | ArmName::Saiga => {
            bail!("--arms: with --over, server and client are on two hosts; give kernel or gateway")
        }
    }
}

/// Checks the right to create network namespaces.
pub(super) fn check_rights() -> anyhow::Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("--over needs root, because it creates network namespaces: use sudo");
    }
    Ok(())
}
