//! What the kernel knows about a network interface, and how it changes: link, VLANs, addresses,
//! routes and neighbours.
//!
//! Source: rtnetlink(7), netlink(7). A gateway that shares an interface with the kernel by AF_XDP
//! takes its configuration from here, and leaves ARP and neighbour discovery to the kernel.
//! [`Snapshot`] is the state, [`Follower`] tells of changes, [`network`] turns a snapshot into the
//! network of a stack, and [`Resolver`] asks the kernel for neighbours. [`Configuration`] sets up
//! an interface of the process's own.
//!
//! The messages are read here, not by netlink-packet-route: that crate rejects a whole message for
//! one attribute that it cannot read, such as a name that is not UTF-8. Deliberately absent:
//! other changes to interfaces, addresses and routes; rules; tables other than main and local.

#![forbid(unsafe_code)]

mod address;
mod configuration;
mod family;
mod follower;
mod link;
mod message;
mod neighbour;
mod netlink;
mod resolver;
mod route;
mod snapshot;
mod translation;

pub use address::{Address, AddressFlags, Scope};
pub use configuration::Configuration;
pub use follower::{Cause, Changes, Follower};
pub use link::{Link, Vlan};
pub use neighbour::{Neighbour, NeighbourState};
pub use netlink::NetlinkError;
pub use resolver::Resolver;
pub use route::{NextHop, Route, RouteKind};
pub use snapshot::{Interface, Snapshot, SnapshotError};
pub use translation::{LeftOut, Reason, Translation, What, network};
