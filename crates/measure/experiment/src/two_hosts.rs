//! Server and client on two hosts: the [`Wire`] between them, and the metrics and warnings that all
//! such runs have.
//!
//! In: the CPU time of a run. Out: the CPU time of the server's host, which is the machine without
//! the client, and that of the gateway. Deliberately absent: the hosts themselves (`saiga_hosts`).

use std::collections::BTreeMap;
use std::time::Duration;

use saiga_process::cpu::Used;

use crate::arm::ArmKind;
use crate::result::{Better, Metric, Warning};

/// CPU time of the machine without the client, per operation.
pub const SERVER_HOST_CPU: &str = "server_host_cpu_us_per_op";
/// The part of `server_cpu_us_per_op` that a gateway used.
pub const GATEWAY_CPU: &str = "gateway_cpu_us_per_op";

/// The wire between the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// A veth pair (`man 4 veth`). A gateway serves its end by AF_XDP.
    Veth,
    /// A TAP device of the gateway, whose other end belongs to the client's host. Without a gateway
    /// no program owns such a device, so the wire is a veth pair.
    Tap,
    /// Memory that gateways on both hosts share (memif). Without them, the wire is a veth pair.
    Memif,
}

impl Wire {
    pub const ALL: [Self; 3] = [Self::Veth, Self::Tap, Self::Memif];

    /// The name on the command line and in experiment files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Veth => "veth",
            Self::Tap => "tap",
            Self::Memif => "memif",
        }
    }

    /// Whether the client of an arm with a gateway runs under Saiga: where its host has a gateway,
    /// too.
    #[must_use]
    pub fn accelerates_client(self) -> bool {
        self == Self::Memif
    }

    /// Environment variables for the client of an arm. A gateway on its host accelerates it, too.
    #[must_use]
    pub fn client_env(self, kind: &ArmKind) -> BTreeMap<String, String> {
        match self {
            Self::Veth | Self::Tap => kind.client_env(),
            Self::Memif => kind.env(),
        }
    }

    /// Warnings about figures over this wire.
    #[must_use]
    pub fn caveats(self) -> Vec<Warning> {
        let shared = Warning::caveat(
            "Both hosts are network namespaces of this machine: they share its CPUs and its \
             kernel, and no network card is involved. The CPU time of the server's host is that of \
             the whole machine without the load generator. It contains the servers, saiga gateway, \
             the interrupts of both hosts, kernel threads and all other processes of this machine.",
            "Compare it between arms. Between two machines, measure the CPU time of the server's \
             machine.",
        );
        let of_tap = || {
            Warning::caveat(
                "The kernel arm uses a veth pair, because a TAP device needs a program that owns \
                 it. The ratio therefore contains the difference between the two devices.",
                "Use the wire veth (--over veth) for the same device in both arms.",
            )
        };
        let of_memif = || {
            Warning::caveat(
                "The kernel arm uses a veth pair. In the gateway arm, frames go through memory that \
                 two gateways share, and the kernel only wakes a gateway that sleeps: it shows what a \
                 network card without a driver in the kernel would save, except its own time.",
                "Compare it with a measurement between two machines.",
            )
        };
        match self {
            Self::Veth => vec![shared],
            Self::Tap => vec![shared, of_tap()],
            Self::Memif => vec![shared, of_memif()],
        }
    }
}

/// The metric of runs on two hosts, besides the standard metrics.
#[must_use]
pub fn metric() -> Metric {
    Metric {
        name: SERVER_HOST_CPU.to_owned(),
        unit: "µs/op".to_owned(),
        better: Better::Lower,
        decides: false,
    }
}

/// CPU seconds of a run by the name of the metric per operation. `client` is the CPU time of the
/// client and of its gateway, `gateway` that of the gateway if the run has a gateway.
#[must_use]
pub fn cpu_seconds(
    used: &Used,
    client: Duration,
    gateway: Option<Duration>,
) -> Vec<(&'static str, f64)> {
    // The interrupts of both hosts are part of it; the client's share of them is not known.
    let host_s = (used.busy_s - client.as_secs_f64()).max(0.0);
    let gateway_s = gateway.map(|cpu| used.with_interrupts(cpu).as_secs_f64());
    std::iter::once((SERVER_HOST_CPU, host_s))
        .chain(gateway_s.map(|seconds| (GATEWAY_CPU, seconds)))
        .collect()
}
