//! The stack of a worker.

use std::io;

use saiga_netdev::Info;
use saiga_stack::{Config, Listen, Offload, Presence, Resolver, Secrets, Segmentation, Stack};

use super::network::Plan;
use super::{ServiceError, system};
use crate::random;
use crate::settings::Settings;
use crate::worker::Clock;

/// Neighbours of a stack that takes them from the kernel, whose own limit is smaller
/// (`gc_thresh3`).
const MOST_NEIGHBOURS: u32 = 65_536;

/// What a stack is made of.
pub(super) struct Parts<'a> {
    pub(super) settings: &'a Settings,
    pub(super) plan: &'a Plan,
    /// The worker's first queue.
    pub(super) info: &'a Info,
    pub(super) resolver: Resolver,
    pub(super) presence: Presence,
    /// The number of workers, which share the connections evenly.
    pub(super) workers: usize,
    pub(super) clock: Clock,
}

/// A stack with the addresses of the plan and a listener for each served port.
pub(super) fn stack(parts: &Parts<'_>) -> Result<Stack, ServiceError> {
    let Parts {
        settings,
        plan,
        info,
        clock,
        ..
    } = parts;
    let secrets = secrets().map_err(system("no random numbers"))?;
    let mut stack = Stack::new(config(parts), secrets, clock.now());
    let configured = stack.configure(plan.network.clone(), clock.now());
    configured.map_err(|source| ServiceError::Network {
        interface: info.name.clone(),
        source,
    })?;
    for &(interface, address, mac) in &plan.neighbours {
        // A neighbour for which there is no room is resolved when it is needed.
        let _has_room = stack.set_neighbour(interface, address, mac, clock.now());
    }
    for serve in &settings.serve {
        for port in &serve.ports {
            stack.listen(Listen {
                address: serve.address,
                port: *port,
                backlog: serve.backlog,
                has_cookies: true,
                buffer: settings.tcp.buffer.get(),
            })?;
        }
    }
    Ok(stack)
}

fn config(parts: &Parts<'_>) -> Config {
    let Parts {
        settings,
        resolver,
        presence,
        ..
    } = *parts;
    let default = Config::default();
    let offload = &parts.info.offload;
    let workers = u32::try_from(parts.workers).unwrap_or(u32::MAX);
    Config {
        tcp: saiga_tcp::Config {
            congestion: settings.tcp.congestion,
            ..default.tcp
        },
        most_connections: settings.tcp.connections.div_ceil(workers),
        most_neighbours: match resolver {
            Resolver::Stack => default.most_neighbours,
            Resolver::Owner => MOST_NEIGHBOURS,
        },
        resolver,
        presence,
        offload: Offload {
            checksum: offload.checksum,
            segmentation: offload.segmentation.map(|one| Segmentation {
                checksum: one.checksum,
                most_bytes: one.most_bytes,
            }),
        },
        ..default
    }
}

fn secrets() -> io::Result<Secrets> {
    Ok(Secrets {
        flows: random::key()?,
        sequence_numbers: random::key()?,
        cookies: random::key()?,
    })
}
