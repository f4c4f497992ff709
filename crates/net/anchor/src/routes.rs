//! Rules and routes that bring the replies of served ports to loopback, and their removal.
//!
//! [`Routes::up`] makes a TUN device, a table in which every destination is local, and one rule for
//! each served port. Hosts with connections from before keep the kernel's path by a `throw` route.
//! Link-local clients of IPv6 keep it because packets to them have a device already. A drop or
//! [`Routes::down`] removes everything. After kill -9 the device and the local routes are gone and
//! the rules have no effect; the next start, or [`remove_leftovers`], removes what is left.
//!
//! One thing remains: the kernel's route lookups stay slower by about 0.2 us in a network namespace
//! that has ever had a rule. While no server listens at a served port, a local program that gets
//! the port as its own for a connection to another host does not reach that host.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use netlink_sys::protocols::NETLINK_ROUTE;

use crate::connect::is_link_local;
use crate::existing;
use crate::netlink::Netlink;
use crate::rule::{self, Packets, Rule};
use crate::table::{self, Route, Target};
use crate::tun::{Tun, TunError};
use crate::watch::Watch;

const ALL_V4: IpNet = IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 0));
const ALL_V6: IpNet = IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 0));

/// The mark of the sockets whose connections to other hosts go through the gateway (`SO_MARK`).
pub const MARK: u32 = 79;

/// Names and numbers of a gateway on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Name of the TUN device, 1 to 15 characters.
    pub device: String,
    /// Number of the routing table, which no other program uses.
    pub table: u32,
    /// Preference of the rules: above 0, the kernel's rule of local addresses, and below 32766,
    /// that of the main table.
    pub preference: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            device: "saigal".to_owned(),
            table: 79,
            preference: 100,
        }
    }
}

/// Why rules and routes were not changed.
#[derive(Debug, thiserror::Error)]
pub enum RoutesError {
    /// The TUN device was not made.
    #[error(transparent)]
    Tun(#[from] TunError),
    /// An address that no gateway can serve.
    #[error("{served} cannot be served: give a unicast address of this host, and a port above 0")]
    Unfit {
        /// The address.
        served: SocketAddr,
    },
    /// A number that the kernel uses itself.
    #[error(
        "table {table} with preference {preference} cannot be used: configure a table above 0 \
         except 252 to 255, and a preference from 1 to 32765"
    )]
    Number {
        /// Number of the table.
        table: u32,
        /// Preference of the rules.
        preference: u32,
    },
    /// The table belongs to another gateway.
    #[error("another gateway uses routing table {table}: stop it, or configure another table")]
    Gateway {
        /// Number of the table.
        table: u32,
    },
    /// The table belongs to another program.
    #[error("routing table {table} has routes of another program: configure another table")]
    Foreign {
        /// Number of the table.
        table: u32,
    },
    /// Another program has removed the TUN device.
    #[error(
        "another program has removed the TUN device {device}, through which the replies of servers \
         reach the gateway: start the gateway again"
    )]
    Gone {
        /// Name of the device.
        device: String,
    },
    /// The kernel refused a change.
    #[error("cannot {action}: {source}")]
    System {
        /// What was attempted.
        action: String,
        /// The kernel's error.
        source: io::Error,
    },
}

/// Rules and routes of a gateway, which exist as long as this value.
pub struct Routes {
    netlink: Netlink,
    table: u32,
    preference: u32,
    rules: Vec<Rule>,
    /// Name of the TUN device.
    device: String,
    /// The local routes, which end with the device.
    locals: Vec<Route>,
    /// Routes without a device.
    throws: Vec<Route>,
    /// Dropped last, with its routes.
    tun: Tun,
}

impl Routes {
    /// Brings replies from the addresses `served` to loopback. IPv4-mapped addresses are IPv4.
    ///
    /// # Errors
    /// A [`RoutesError`]; what was changed is undone.
    pub fn up(config: &Config, served: &[SocketAddr]) -> Result<Self, RoutesError> {
        let Config {
            ref device,
            table,
            preference,
        } = *config;
        let served = served.iter().map(|&one| fit(one));
        let served: BTreeSet<SocketAddr> = served.collect::<Result<_, _>>()?;
        // 252 to 255 are the kernel's tables (linux/rtnetlink.h), and 0 and 32766 rules of its own.
        if matches!(table, 0 | 252..=255) || !(1..32_766).contains(&preference) {
            return Err(RoutesError::Number { table, preference });
        }
        let mut netlink = open()?;
        let tun = Tun::make(device, &mut netlink)?;
        claim(&mut netlink, table)?;
        let mut routes = Self {
            netlink,
            table,
            preference,
            rules: Vec::new(),
            device: device.clone(),
            locals: Vec::new(),
            throws: Vec::new(),
            tun,
        };
        for served in served {
            routes.add(served)?;
        }
        Ok(routes)
    }

    /// Brings replies from one more address to loopback. Does nothing if that is the case. Hosts
    /// with connections to it are left to the kernel.
    ///
    /// There is no way back but [`Routes::down`]: without its rule, the replies of an anchor would
    /// reach the client's host, which knows nothing of the anchor.
    ///
    /// # Errors
    /// [`RoutesError::Unfit`], or [`RoutesError::System`] with the kernel's answer; the address
    /// then has no rule.
    pub fn add(&mut self, served: SocketAddr) -> Result<(), RoutesError> {
        let served = fit(served)?;
        if self.served().any(|known| known == served) {
            return Ok(());
        }
        let all = if served.is_ipv4() { ALL_V4 } else { ALL_V6 };
        if self.locals.iter().all(|route| route.network != all) {
            self.add_route(all, Target::Local(self.tun.index))?;
        }
        self.spare(served)?;
        self.serve(served)?;
        // Connections that began before the rule was there.
        let spared = self.spare(served);
        if spared.is_err() {
            // Otherwise these connections would be cut.
            self.end(served)?;
        }
        spared
    }

    /// Brings the packets of sockets with [`MARK`] to loopback, if they go to these networks. The
    /// address beside a network, one of this host, is that of sockets without one.
    ///
    /// # Errors
    /// [`RoutesError::System`] with the kernel's answer: EINVAL if this host does not have an
    /// address.
    pub fn bring(&mut self, networks: &[(IpNet, IpAddr)]) -> Result<(), RoutesError> {
        for &(network, source) in networks {
            // As two halves, everything comes before the route of served ports.
            let halves = network.subnets(network.prefix_len().max(1));
            for part in halves.into_iter().flatten() {
                self.add_route(part, Target::LocalFrom(self.tun.index, source))?;
            }
        }
        for is_v6 in [false, true] {
            if networks
                .iter()
                .any(|(one, _)| one.addr().is_ipv6() == is_v6)
            {
                self.add_rule(Packets::Marked { mark: MARK, is_v6 })?;
            }
        }
        Ok(())
    }

    /// The TUN device: its index, and its file, from which the packets are read that were
    /// redirected to the device.
    ///
    /// # Errors
    /// The errors of `dup(2)`.
    pub fn device(&self) -> io::Result<(u32, File)> {
        Ok((self.tun.index, self.tun.file.try_clone()?))
    }

    /// Hosts whose packets the kernel keeps, because they have connections from before or were
    /// given to [`Routes::leave`]. No anchor of such a host is possible.
    pub fn left(&self) -> impl Iterator<Item = IpAddr> {
        self.throws.iter().map(|route| route.network.addr())
    }

    /// Leaves `host` to the kernel until [`Routes::take_over`]: its connections to served ports are
    /// then the kernel's own. Does nothing if that is the case.
    ///
    /// # Errors
    /// [`RoutesError::System`] with the kernel's answer.
    pub fn leave(&mut self, host: IpAddr) -> Result<(), RoutesError> {
        let network = IpNet::from(host.to_canonical());
        if self.throws.iter().all(|route| route.network != network) {
            self.add_route(network, Target::Throw)?;
        }
        Ok(())
    }

    /// Ends [`Routes::leave`]. The kernel's connections of `host` to served ports are cut, so call
    /// it when [`existing::hosts`] no longer has the host.
    ///
    /// # Errors
    /// [`RoutesError::System`] with the kernel's answer.
    pub fn take_over(&mut self, host: IpAddr) -> Result<(), RoutesError> {
        let network = IpNet::from(host.to_canonical());
        let is_hosts = |route: &&Route| route.network == network;
        let Some(route) = self.throws.iter().find(is_hosts).copied() else {
            return Ok(());
        };
        removed(route.remove(&mut self.netlink), &route)?;
        self.throws.retain(|other| *other != route);
        Ok(())
    }

    /// Notices that other programs change rules, routes or the TUN device.
    ///
    /// # Errors
    /// The errors of netlink.
    pub fn watch(&self) -> io::Result<Watch> {
        Watch::open(self.table, self.tun.index)
    }

    /// Puts back what other programs have removed or changed, and adds it to `missing` in the words
    /// of ip(8). Goes on after an error, and returns the first.
    ///
    /// # Errors
    /// [`RoutesError::Gone`] if the TUN device was removed, or [`RoutesError::System`] with the
    /// kernel's answer: a later call can succeed.
    pub fn repair(&mut self, missing: &mut Vec<String>) -> Result<(), RoutesError> {
        let Self {
            netlink,
            table,
            rules,
            device,
            locals,
            throws,
            tun,
            ..
        } = self;
        match tun.set_up(netlink) {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {
                let device = device.clone();
                return Err(RoutesError::Gone { device });
            }
            done => done.map_err(|source| system(format!("set {device} up"), source))?,
        }
        let mut first = Ok(());
        // Routes before rules, so that a rule never leads to a table without its exceptions.
        let there = read(netlink, *table)?.ours;
        for route in throws.iter().chain(&*locals) {
            if !there.contains(route) {
                let done = route.put_back(netlink);
                first = first.and(restored(done, route, missing));
            }
        }
        let there = list_rules(netlink)?;
        for rule in rules.iter().filter(|rule| !there.contains(rule)) {
            let done = rule.add(netlink);
            first = first.and(restored(done, rule, missing));
        }
        first
    }

    /// Removes rules, routes and device. Goes on after an error, and returns the first.
    ///
    /// # Errors
    /// [`RoutesError::System`] with the kernel's answer.
    pub fn down(mut self) -> Result<(), RoutesError> {
        self.undo()
    }

    /// The addresses of all served ports.
    pub(crate) fn served(&self) -> impl Iterator<Item = SocketAddr> {
        self.rules.iter().filter_map(|rule| match rule.packets {
            Packets::Replies(server) => Some(server),
            Packets::Marked { .. } => None,
        })
    }

    /// Adds the rule of `served`.
    pub(crate) fn serve(&mut self, served: SocketAddr) -> Result<(), RoutesError> {
        self.add_rule(Packets::Replies(served))
    }

    fn add_rule(&mut self, packets: Packets) -> Result<(), RoutesError> {
        let rule = Rule {
            packets,
            table: self.table,
            preference: self.preference,
        };
        let added = rule.add(&mut self.netlink);
        added.map_err(|source| system(format!("add {rule}"), source))?;
        self.rules.push(rule);
        Ok(())
    }

    /// Removes the rule of `served`.
    pub(crate) fn end(&mut self, served: SocketAddr) -> Result<(), RoutesError> {
        let is_port = |rule: &&Rule| rule.packets == Packets::Replies(served);
        let Some(rule) = self.rules.iter().find(is_port).copied() else {
            return Ok(());
        };
        removed(rule.remove(&mut self.netlink), &rule)?;
        self.rules.retain(|other| *other != rule);
        Ok(())
    }

    /// Leaves all hosts to the kernel that have connections to `served`.
    fn spare(&mut self, served: SocketAddr) -> Result<(), RoutesError> {
        let hosts = existing::hosts(served);
        let hosts = hosts.map_err(|source| system("list TCP connections".to_owned(), source))?;
        hosts.into_iter().try_for_each(|host| self.leave(host))
    }

    fn add_route(&mut self, network: IpNet, target: Target) -> Result<(), RoutesError> {
        let route = Route {
            network,
            target,
            table: self.table,
        };
        let added = route.add(&mut self.netlink);
        added.map_err(|source| system(format!("add {route}"), source))?;
        match target {
            Target::Throw => self.throws.push(route),
            Target::Local(_) | Target::LocalFrom(..) => self.locals.push(route),
        }
        Ok(())
    }

    /// Removes rules before routes, so that a rule never leads to a table without its exceptions.
    fn undo(&mut self) -> Result<(), RoutesError> {
        let mut first = Ok(());
        for rule in self.rules.drain(..) {
            first = first.and(removed(rule.remove(&mut self.netlink), &rule));
        }
        for route in self.throws.drain(..) {
            first = first.and(removed(route.remove(&mut self.netlink), &route));
        }
        first
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        // `down` reports errors. What remains, the next start removes.
        let _left = self.undo();
    }
}

/// Removes what a killed gateway has left: its rules, and the routes of their tables and of
/// `table` that have no device. Returns what was removed in the words of ip(8). A gateway that runs
/// keeps what it has.
///
/// # Errors
/// [`RoutesError::System`] with the kernel's answer.
pub fn remove_leftovers(table: u32) -> Result<Vec<String>, RoutesError> {
    clean(&mut open()?, table)
}

fn clean(netlink: &mut Netlink, table: u32) -> Result<Vec<String>, RoutesError> {
    let rules = list_rules(netlink)?;
    let mut tables: BTreeSet<u32> = rules.iter().map(|rule| rule.table).collect();
    tables.insert(table);
    let mut gone = Vec::new();
    for table in tables {
        let contents = read(netlink, table)?;
        if contents.has_gateway() {
            continue;
        }
        for rule in rules.iter().filter(|rule| rule.table == table) {
            removed(rule.remove(netlink), rule)?;
            gone.push(rule.to_string());
        }
        for route in &contents.ours {
            removed(route.remove(netlink), route)?;
            gone.push(route.to_string());
        }
    }
    Ok(gone)
}

/// Makes sure that `table` belongs to no other program, and is empty.
fn claim(netlink: &mut Netlink, table: u32) -> Result<(), RoutesError> {
    let contents = read(netlink, table)?;
    if contents.has_gateway() {
        return Err(RoutesError::Gateway { table });
    }
    if contents.foreign > 0 {
        return Err(RoutesError::Foreign { table });
    }
    clean(netlink, table).map(drop)
}

fn read(netlink: &mut Netlink, table: u32) -> Result<table::Contents, RoutesError> {
    let contents = table::read(netlink, table);
    contents.map_err(|source| system(format!("read routing table {table}"), source))
}

fn list_rules(netlink: &mut Netlink) -> Result<Vec<Rule>, RoutesError> {
    let rules = rule::made_by_gateways(netlink);
    rules.map_err(|source| system("list routing rules".to_owned(), source))
}

/// The address in its plain form.
fn fit(served: SocketAddr) -> Result<SocketAddr, RoutesError> {
    let address = served.ip().to_canonical();
    let is_unfit = served.port() == 0
        || address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || address == IpAddr::V4(Ipv4Addr::BROADCAST)
        || is_link_local(address);
    if is_unfit {
        return Err(RoutesError::Unfit { served });
    }
    Ok(SocketAddr::new(address, served.port()))
}

fn open() -> Result<Netlink, RoutesError> {
    let opened = Netlink::open(NETLINK_ROUTE).and_then(|netlink| {
        netlink.filter_dumps()?;
        Ok(netlink)
    });
    opened.map_err(|source| system("open a netlink socket".to_owned(), source))
}

/// What has been removed before is not an error.
fn removed(done: io::Result<()>, what: &impl std::fmt::Display) -> Result<(), RoutesError> {
    match done {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)) => Ok(()),
        done => done.map_err(|source| system(format!("remove {what}"), source)),
    }
}

/// Adds what was put back to `missing`.
fn restored(
    done: io::Result<()>,
    what: &impl std::fmt::Display,
    missing: &mut Vec<String>,
) -> Result<(), RoutesError> {
    done.map_err(|source| system(format!("put back {what}"), source))?;
    missing.push(what.to_string());
    Ok(())
}

fn system(action: String, source: io::Error) -> RoutesError {
    RoutesError::System { action, source }
}
