//! The options that select a goal: engine, role, and the division of cores.

use clap::ValueEnum;
use saiga_topology::machine::Machine;
use saiga_tune::cores::interrupts;
use saiga_tune::cores::partition::{self, Partition, PartitionError, Spread};
use saiga_tune::goal::{Engine, Placement, Role};

/// Options of a goal.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct GoalArgs {
    /// The database for which the host is set up; with `none`, the plan has only the placement of
    /// interrupts and packets, and what --set names
    #[arg(long, value_enum, default_value = "none")]
    pub(super) engine: EngineName,
    /// What runs on this host
    #[arg(long, value_enum, default_value = "server")]
    pub(super) role: RoleName,
    /// Leave the interrupts and the packet steering of network devices as they are
    #[arg(long)]
    no_interrupts: bool,
    /// Cores of the server, all nodes together; the rest is for interrupts and the client
    #[arg(long, value_name = "N", conflicts_with = "no_interrupts")]
    server_cores: Option<usize>,
    /// Cores for interrupts, all nodes together (default: an eighth of a server's cores, three
    /// eighths of a client's, and at most one for each queue)
    #[arg(long, value_name = "N", conflicts_with = "no_interrupts")]
    interrupt_cores: Option<usize>,
    /// Queues that each network device is to have; changing them cuts its traffic for a moment
    #[arg(long, value_name = "N", conflicts_with = "no_interrupts")]
    queues: Option<usize>,
    /// Use only cores of the nodes of the network devices for interrupts
    #[arg(long, conflicts_with = "no_interrupts")]
    near_device: bool,
    /// Network devices whose interrupts are placed (default: all that are up)
    #[arg(long = "device", value_name = "NAME", conflicts_with = "no_interrupts")]
    devices: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum EngineName {
    Mysql,
    Mariadb,
    Postgres,
    Opengauss,
    Redis,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum RoleName {
    Server,
    Client,
    Both,
}

impl EngineName {
    pub(super) fn engine(self) -> Engine {
        match self {
            Self::Mysql | Self::Mariadb => Engine::Mysql,
            Self::Postgres => Engine::Postgres,
            Self::Opengauss => Engine::OpenGauss,
            Self::Redis => Engine::Redis,
            Self::None => Engine::None,
        }
    }
}

impl RoleName {
    pub(super) fn role(self) -> Role {
        match self {
            Self::Server => Role::Server,
            Self::Client => Role::Client,
            Self::Both => Role::Both,
        }
    }
}

impl GoalArgs {
    fn goal(&self) -> partition::Goal {
        partition::Goal {
            role: self.role.role(),
            spread: if self.near_device {
                Spread::NearDevice
            } else {
                Spread::AllNodes
            },
            server_cores: self.server_cores,
            interrupt_cores: self.interrupt_cores,
            queues: self.queues,
            devices: self.devices.clone(),
        }
    }

    /// Divides the cores of a machine.
    pub(super) fn partition(&self, machine: &Machine) -> Result<Partition, PartitionError> {
        partition::divide(machine, &self.goal())
    }

    /// The placement of interrupts; empty with --no-interrupts.
    pub(super) fn placement(
        &self,
        machine: &Machine,
        partition: &Partition,
    ) -> Result<Placement, PartitionError> {
        if self.no_interrupts {
            return Ok(Placement::default());
        }
        interrupts::placement(machine, &self.goal(), partition)
    }
}
