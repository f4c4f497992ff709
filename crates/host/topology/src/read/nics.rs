//! Network devices of `/sys/class/net` with hardware behind them.

use crate::machine::Nic;
use crate::read::ReadError;
use crate::read::device::Device;
use crate::source::Source;

const NET: &str = "/sys/class/net";
/// `IFF_UP` of `include/uapi/linux/if.h`.
const UP: u32 = 1;

/// Loopback, bridges, bonds, tunnels and veth have no link `device`, and are left out.
pub(super) fn read(source: &Source) -> Result<Vec<Nic>, ReadError> {
    let mut nics = Vec::new();
    for name in source.names(NET)? {
        if let Some(device) = Device::at(source, &format!("{NET}/{name}/device"))? {
            nics.push(nic(source, name, device)?);
        }
    }
    Ok(nics)
}

fn nic(source: &Source, name: String, device: Device) -> Result<Nic, ReadError> {
    let file = |file: &str| format!("{NET}/{name}/{file}");
    let queues = file("queues");
    let count = |kind| {
        source
            .numbered(&queues, kind)
            .map(|names| amount(names.len()))
    };
    Ok(Nic {
        is_up: is_up(source, &name)?,
        // -1 means unknown.
        speed_mbit_s: source
            .number::<i64>(&file("speed"))?
            .and_then(|speed| u64::try_from(speed).ok())
            .filter(|speed| *speed > 0),
        mtu: source.number(&file("mtu"))?,
        rx_queues: count("rx-")?,
        tx_queues: count("tx-")?,
        driver: device.driver,
        device: device.name,
        node: device.node,
        irqs: device.irqs,
        name,
    })
}

/// Whether the device passes packets. Drivers that do not tell (`unknown`) are up if switched on.
fn is_up(source: &Source, name: &str) -> Result<bool, ReadError> {
    let state = source.word(&format!("{NET}/{name}/operstate"))?;
    if let Some(state) = state.filter(|state| state != "unknown") {
        return Ok(state == "up");
    }
    let file = format!("{NET}/{name}/flags");
    let Some(text) = source.word(&file)? else {
        return Ok(false);
    };
    let flags = text
        .strip_prefix("0x")
        .and_then(|hex| u32::from_str_radix(hex, 16).ok());
    let flags = flags.ok_or_else(|| source.damaged(&file, &text, "a number such as 0x1003"))?;
    Ok(flags & UP != 0)
}

pub(super) fn amount(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
