//! Writes a `[[device]]` as TOML.

use saiga_process::numbers::ranges;

use super::{
    Addresses, COPYING, Copying, Device, FRAMES_PER_DESCRIPTOR, Kind, MODES, Mode, Port, RING,
    ROLES, word,
};
use crate::settings::output::Output;

/// Writes a `[[device]]`.
pub(in crate::settings) fn write(device: &Device, out: &mut Output) {
    let Device {
        kind,
        cpus,
        ring,
        frames,
        vlan,
        mtu,
        addresses,
    } = device;
    out.tables("device");
    write_kind(kind, out);
    if !cpus.is_empty() {
        out.text("cpus", ranges(cpus));
    }
    if *ring != RING {
        out.key("ring", ring);
    }
    if *frames != ring * FRAMES_PER_DESCRIPTOR {
        out.key("frames", frames);
    }
    match addresses {
        Addresses::Kernel if matches!(kind, Kind::Xdp { .. }) => {}
        Addresses::Kernel => out.text("addresses", "kernel"),
        Addresses::Own { addresses, routes } => {
            out.texts("addresses", addresses);
            out.texts("routes", routes);
        }
    }
    for (key, value) in [("vlan", vlan), ("mtu", mtu)] {
        if let Some(value) = value {
            out.key(key, value);
        }
    }
}

fn write_kind(kind: &Kind, out: &mut Output) {
    match kind {
        Kind::Xdp {
            interface,
            queues,
            mode,
            copy,
        } => {
            out.text("kind", "xdp");
            out.text("interface", interface);
            if let Some(queues) = queues {
                out.key("queues", queues);
            }
            if *mode != Mode::Auto {
                out.text("mode", word(&MODES, *mode));
            }
            if *copy != Copying::Auto {
                out.text("copy", word(&COPYING, *copy));
            }
        }
        Kind::Tap { interface, queues } => {
            out.text("kind", "tap");
            out.text("interface", interface);
            if let Some(queues) = queues {
                out.key("queues", queues);
            }
        }
        Kind::Dpdk {
            port,
            interface,
            queues,
        } => {
            out.text("kind", "dpdk");
            match port {
                Port::Pci(address) => out.text("pci", address),
                Port::Mac(address) => out.text("mac", address),
                Port::Vdev(arguments) => out.text("vdev", arguments),
            }
            if let Some(interface) = interface {
                out.text("interface", interface);
            }
            if let Some(queues) = queues {
                out.key("queues", queues);
            }
        }
        Kind::Memif {
            socket,
            role,
            id,
            interface,
        } => {
            out.text("kind", "memif");
            out.text("socket", socket.display());
            out.text("role", word(&ROLES, *role));
            if *id != 0 {
                out.key("id", id);
            }
            if let Some(interface) = interface {
                out.text("interface", interface);
            }
        }
    }
}
