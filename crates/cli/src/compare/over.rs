//! `--over`: server and client on two hosts, which are network namespaces of this machine.

use anyhow::bail;
use clap::ValueEnum;
use saiga_experiment::arm::ArmKind;
use saiga_program::library;
use saiga_redis::{RedisArm, Topology, Wire};

use super::options::ArmName;

/// The wire between the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WireName {
    /// A veth pair; the gateway serves it by AF_XDP
    Veth,
    /// A TAP device of the gateway; the kernel arm uses a veth pair
    Tap,
}

impl WireName {
    fn wire(self) -> Wire {
        match self {
            Self::Veth => Wire::Veth,
            Self::Tap => Wire::Tap,
        }
    }

    /// The arms over this wire.
    pub(super) fn arms(
        self,
        names: &[ArmName],
        topology: Topology,
    ) -> anyhow::Result<Vec<RedisArm>> {
        if topology != Topology::Standalone {
            bail!("--over needs --topology standalone, not {topology}");
        }
        if names.len() < 2 {
            bail!("--arms needs two arms with --over: kernel,gateway");
        }
        let kinds: Vec<ArmKind> = names.iter().map(kind).collect::<Result<_, _>>()?;
        let arms = RedisArm::named(&kinds).into_iter();
        Ok(arms.map(|arm| arm.over(self.wire())).collect())
    }
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
