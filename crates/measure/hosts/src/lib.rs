//! Two hosts on this machine for one run: network namespaces of a server and of a client, with a
//! wire between them.
//!
//! A [`Layout`] describes the hosts and lists the commands that make them; [`Hosts`] are made by
//! these commands. At the server's end of the wire is the kernel or `saiga gateway`
//! (docs/gateway.md); at the client's end is the kernel, or a gateway if the wire is shared memory.
//! Each run has hosts of its own, because the
//! rules of a gateway make later route lookups of its namespace slower.
//!
//! Deliberately absent: servers and loads, and network cards.

mod hosts;
mod layout;

pub use hosts::{Hosts, HostsError};
pub use layout::{CLIENT, Gateway, Layout, Over, Places, SERVER};
pub use saiga_experiment::two_hosts::Wire;
