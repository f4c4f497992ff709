//! Rules between tables: values that are valid alone, but not together.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use saiga_process::numbers::ranges;
use saiga_stack::{MAX_ADDRESSES, MAX_INTERFACES, MAX_LISTENERS, MAX_ROUTES};

use super::device::{Addresses, Device, Kind, Port, Role};
use super::reader::Table;
use super::serve::Serve;
use super::{Settings, Workers};

/// Reports all conflicts. `settings` has the tables that exist once.
pub(super) fn check(
    root: &Table<'_>,
    devices: &[(Table<'_>, Device)],
    serve: &[(Table<'_>, Serve)],
    settings: &Settings,
) {
    presence(root, settings);
    same_devices(devices);
    same_addresses(devices);
    cpus(devices, &settings.workers, &root.table("workers"));
    ports(serve, settings, &root.table("metrics"));
    limits(root, devices, serve, settings);
    // A device with a mistake is not among `devices`, and these rules are about all of them.
    if root.tables("device").len() == devices.len() {
        idle_cpus(devices, &settings.workers, &root.table("workers"));
        served_addresses(devices, serve);
        unused_dpdk(root, devices);
    }
}

fn presence(root: &Table<'_>, settings: &Settings) {
    root.require("device", "add [[device]] with interface = \"NAME\"");
    if settings.outgoing.prefixes.is_empty() {
        root.require("serve", "add [[serve]] with port = NUMBER");
    }
}

fn unused_dpdk(root: &Table<'_>, devices: &[(Table<'_>, Device)]) {
    if root.has("dpdk") && !devices.iter().any(|(_, device)| device.is_dpdk()) {
        root.problem("dpdk", "no device has kind = \"dpdk\"; remove this table");
    }
}

fn same_devices(devices: &[(Table<'_>, Device)]) {
    for (index, (table, device)) in devices.iter().enumerate() {
        let before = &devices[..index];
        let has_interface = |(_, other): &&(Table<'_>, Device)| {
            device.interface().is_some() && device.interface() == other.interface()
        };
        let has_port = |(_, other): &&(Table<'_>, Device)| {
            port(device).is_some() && port(device) == port(other)
        };
        let port_key = match port(device) {
            Some(Port::Pci(_)) | None => "pci",
            Some(Port::Mac(_)) => "mac",
            Some(Port::Vdev(_)) => "vdev",
        };
        let has_socket = |(_, other): &&(Table<'_>, Device)| is_same_memif(device, other);
        for (key, other) in [
            ("interface", before.iter().find(has_interface)),
            (port_key, before.iter().find(has_port)),
            ("socket", before.iter().find(has_socket)),
        ] {
            if let Some((other, _)) = other {
                let what = format!("the device of line {} has it already", other.line());
                table.problem(key, &what);
            }
        }
    }
}

fn port(device: &Device) -> Option<&Port> {
    match &device.kind {
        Kind::Xdp { .. } | Kind::Tap { .. } | Kind::Memif { .. } => None,
        Kind::Dpdk { port, .. } => Some(port),
    }
}

/// Whether two devices use the same interface of the same socket, or one of them has the socket.
fn is_same_memif(device: &Device, other: &Device) -> bool {
    let of = |device: &Device| match &device.kind {
        Kind::Memif {
            socket, role, id, ..
        } => Some((socket.clone(), *role, *id)),
        Kind::Xdp { .. } | Kind::Tap { .. } | Kind::Dpdk { .. } => None,
    };
    let (Some((socket, role, id)), Some((its_socket, its_role, its_id))) = (of(device), of(other))
    else {
        return false;
    };
    let is_owned = role == Role::Server || its_role == Role::Server;
    socket == its_socket && (is_owned || id == its_id)
}

fn same_addresses(devices: &[(Table<'_>, Device)]) {
    let mut known: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for (table, device) in devices {
        let line = table.line();
        for own in device.addresses.own() {
            if let Some(other) = known.insert(own.addr(), line) {
                let what = format!("the device of line {other} has {} already", own.addr());
                table.problem("addresses", &what);
            }
        }
    }
}

/// The CPUs of a device are those of workers, and each of these has a queue.
fn cpus(devices: &[(Table<'_>, Device)], workers: &Workers, table_of_workers: &Table<'_>) {
    let is_wrong = workers.cpus.is_empty() && table_of_workers.has("cpus");
    for (table, device) in devices {
        let is_foreign = |cpu: &&usize| !is_wrong && !workers.cpus.contains(cpu);
        if let Some(cpu) = device.cpus.iter().find(is_foreign) {
            let what = format!("workers.cpus has no CPU {cpu}; add it there, or remove it here");
            table.problem("cpus", &what);
        }
        let count = cpus_of(device, workers).len().max(1);
        if device.queues().is_some_and(|queues| queues < count) {
            let (key, advice) = match device.kind {
                Kind::Memif { .. } => ("kind", "a memif device has one; write one CPU in cpus"),
                Kind::Xdp { .. } | Kind::Tap { .. } | Kind::Dpdk { .. } => {
                    ("queues", "write more queues or fewer cpus")
                }
            };
            let what =
                format!("{count} workers serve the device, and each needs a queue; {advice}");
            table.problem(key, &what);
        }
    }
}

fn cpus_of<'a>(device: &'a Device, workers: &'a Workers) -> &'a [usize] {
    if device.cpus.is_empty() {
        &workers.cpus
    } else {
        &device.cpus
    }
}

/// Each worker has a device.
fn idle_cpus(devices: &[(Table<'_>, Device)], workers: &Workers, table: &Table<'_>) {
    let used: BTreeSet<usize> = devices
        .iter()
        .flat_map(|(_, device)| cpus_of(device, workers))
        .copied()
        .collect();
    let is_idle = |cpu: &usize| !used.contains(cpu);
    let idle: Vec<usize> = workers.cpus.iter().copied().filter(is_idle).collect();
    if !devices.is_empty() && !idle.is_empty() {
        let what = format!("CPU {} serves no device; add it to a device", ranges(&idle));
        table.problem("cpus", &what);
    }
}

/// Each port is claimed once at each address, by the metrics, too.
fn ports(serve: &[(Table<'_>, Serve)], settings: &Settings, metrics: &Table<'_>) {
    let mut claims: BTreeMap<u16, Vec<(Option<IpAddr>, usize)>> = BTreeMap::new();
    for (table, Serve { address, ports, .. }) in serve {
        let own_line = table.line();
        for port in ports {
            let claims = claims.entry(*port).or_default();
            let is_same = |(other, _): &&(Option<IpAddr>, usize)| overlap(*other, *address);
            if let Some((other, line)) = claims.iter().find(is_same) {
                let at = other.map_or("all addresses".to_owned(), |other| other.to_string());
                let what = format!("line {line} serves port {port} at {at}; remove one of them");
                table.problem("port", &what);
            }
            claims.push((*address, own_line));
        }
    }
    let Some(listen) = settings.metrics.listen else {
        return;
    };
    let address = Some(listen.ip()).filter(|address| !address.is_unspecified());
    let mut claims = claims.get(&listen.port()).into_iter().flatten();
    if let Some((_, line)) = claims.find(|(other, _)| overlap(*other, address)) {
        let what = format!("line {line} serves this port; write another one");
        metrics.problem("listen", &what);
    }
}

fn overlap(one: Option<IpAddr>, other: Option<IpAddr>) -> bool {
    one.is_none() || other.is_none() || one == other
}

/// A served address is one of a device, unless a device has those of the kernel.
fn served_addresses(devices: &[(Table<'_>, Device)], serve: &[(Table<'_>, Serve)]) {
    let is_kernel = |(_, device): &(Table<'_>, Device)| device.addresses == Addresses::Kernel;
    if devices.is_empty() || devices.iter().any(is_kernel) {
        return;
    }
    let own: Vec<IpAddr> = devices
        .iter()
        .flat_map(|(_, device)| device.addresses.own())
        .map(ipnet::IpNet::addr)
        .collect();
    for (table, serve) in serve {
        if serve.address.is_some_and(|address| !own.contains(&address)) {
            table.problem(
                "address",
                "no device has this address; write one of device.addresses",
            );
        }
    }
}

/// The limits of the stack, and those of a listener within those of the gateway.
fn limits(
    root: &Table<'_>,
    devices: &[(Table<'_>, Device)],
    serve: &[(Table<'_>, Serve)],
    settings: &Settings,
) {
    let most = settings.tcp.connections;
    for (table, serve) in serve {
        if serve
            .connections
            .is_some_and(|connections| connections > most)
        {
            let what = format!("write at most {most}, as in tcp.connections, or raise that");
            table.problem("connections", &what);
        }
    }
    let networks = devices.iter().map(|(_, device)| match &device.addresses {
        Addresses::Kernel => (0, 0),
        Addresses::Own { addresses, routes } => (addresses.len(), routes.len()),
    });
    let (addresses, routes) = networks.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let ports: usize = serve.iter().map(|(_, serve)| serve.ports.len()).sum();
    for (key, what, count, limit) in [
        ("device", "devices", devices.len(), MAX_INTERFACES),
        ("device", "addresses", addresses, MAX_ADDRESSES),
        ("device", "routes", routes, MAX_ROUTES),
        ("serve", "ports", ports, MAX_LISTENERS),
    ] {
        if count > limit {
            let what = format!("{count} {what} exceed the limit of {limit}");
            root.problem(key, &what);
        }
    }
}
