//! The connections of local programs to other hosts, as the settings ask for them.

use std::net::IpAddr;

use ipnet::IpNet;
use saiga_anchor::{Routes, own_addresses};
use saiga_outgoing::{Destinations, Outgoing};

use super::attached::Attached;
use super::{ServiceError, system};
use crate::settings::Settings;
use crate::worker::Opener;

/// Begins to hold connections to the configured networks, except those of the gateway's `user`;
/// `None` if there are none.
pub(super) fn open(
    settings: &Settings,
    routes: &mut Routes,
    attached: &[Attached],
    user: u32,
) -> Result<Option<Opener>, ServiceError> {
    let prefixes = &settings.outgoing.prefixes;
    let (Some(device), false) = (attached.first(), prefixes.is_empty()) else {
        return Ok(None);
    };
    let networks = prefixes.iter().map(|&network| {
        let source = source(network, device);
        let source = source.ok_or(ServiceError::NoSource { network })?;
        Ok((network, source))
    });
    let own = own_addresses().map_err(system("cannot list the addresses of this host"))?;
    let destinations = Destinations {
        networks: networks.collect::<Result<_, ServiceError>>()?,
        own: own
            .into_iter()
            .filter(|own| prefixes.iter().any(|one| one.contains(own)))
            .collect(),
        user,
    };
    let outgoing = Outgoing::up(routes, &destinations)?;
    let steering = device.opened.steering.as_ref();
    let flows = steering.and_then(saiga_netdev::xdp::Interface::flows);
    Ok(Some(Opener::new(outgoing, flows)))
}

/// The address of the device for connections to a network: one of that network, or the first one.
fn source(network: IpNet, device: &Attached) -> Option<IpAddr> {
    let interfaces = device.plan.network.interfaces.iter();
    let addresses = interfaces.flat_map(|one| &one.addresses);
    let mut addresses = addresses.filter(|own| own.addr().is_ipv4() == network.addr().is_ipv4());
    let near = addresses.clone().find(|own| own.contains(&network.addr()));
    near.or_else(|| addresses.next()).map(IpNet::addr)
}
