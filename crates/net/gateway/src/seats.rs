//! How many connections a `[[serve]]` admits at a time, in all and of one client.
//!
//! The adversary is a client that opens connections until the server or the gateway has no
//! descriptors left. Limits of a firewall (connlimit) do not see the SYNs of served ports. A client
//! is an address of IPv4 or a network of 64 bits of IPv6, in which a host chooses its addresses.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex};

use crate::service::locked;
use crate::settings::Serve;

/// The connections of a `[[serve]]`, which all workers count.
#[derive(Debug)]
pub(crate) struct Seats {
    most: u32,
    most_of_client: u32,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: u32,
    by_client: HashMap<IpAddr, u32>,
}

/// A connection that counts until this is dropped.
#[derive(Debug)]
pub struct Seat {
    seats: Arc<Seats>,
    client: IpAddr,
}

/// A limit that is reached: its key and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it would exceed `serve.{key}`, {most}")]
pub(crate) struct Full {
    key: &'static str,
    most: u32,
}

impl Seats {
    /// `None` without limits.
    pub(crate) fn of(serve: &Serve) -> Option<Arc<Self>> {
        if serve.connections.is_none() && serve.connections_per_client.is_none() {
            return None;
        }
        Some(Arc::new(Self {
            most: serve.connections.unwrap_or(u32::MAX),
            most_of_client: serve.connections_per_client.unwrap_or(u32::MAX),
            taken: Mutex::default(),
        }))
    }

    /// Counts a connection of a client.
    pub(crate) fn take(self: &Arc<Self>, client: IpAddr) -> Result<Seat, Full> {
        let client = network(client);
        let mut taken = locked(&self.taken);
        let of_client = taken.by_client.get(&client).copied().unwrap_or_default();
        for (key, most, count) in [
            ("connections", self.most, taken.all),
            ("connections_per_client", self.most_of_client, of_client),
        ] {
            if count >= most {
                return Err(Full { key, most });
            }
        }
        taken.all += 1;
        taken.by_client.insert(client, of_client + 1);
        Ok(Seat {
            seats: Arc::clone(self),
            client,
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = locked(&self.seats.taken);
        taken.all -= 1;
        match taken.by_client.get_mut(&self.client) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) | None => drop(taken.by_client.remove(&self.client)),
        }
    }
}

/// What counts as one client.
fn network(client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V4(_) => client,
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seats(connections: Option<u32>, connections_per_client: Option<u32>) -> Arc<Seats> {
        let serve = Serve {
            connections,
            connections_per_client,
            ..Serve::plain(vec![6379])
        };
        Seats::of(&serve).unwrap()
    }

    fn taken(seats: &Arc<Seats>, client: &str) -> Result<Seat, &'static str> {
        let seat = seats.take(client.parse().unwrap());
        seat.map_err(|full| full.key)
    }

    #[test]
    fn connections_are_limited_and_their_ends_make_room() {
        let seats = seats(Some(2), None);
        let first = taken(&seats, "10.0.0.1").unwrap();
        let _second = taken(&seats, "10.0.0.1").unwrap();
        assert_eq!(taken(&seats, "10.0.0.2").unwrap_err(), "connections");
        drop(first);
        let _third = taken(&seats, "10.0.0.2").unwrap();
        assert_eq!(taken(&seats, "10.0.0.3").unwrap_err(), "connections");
    }

    #[test]
    fn a_client_does_not_take_the_room_of_others() {
        let seats = seats(Some(100), Some(1));
        let of_v4 = taken(&seats, "10.0.0.1").unwrap();
        let full = "connections_per_client";
        assert_eq!(taken(&seats, "10.0.0.1").unwrap_err(), full);
        let _other = taken(&seats, "10.0.0.2").unwrap();
        let _of_v6 = taken(&seats, "2001:db8::1").unwrap();
        assert_eq!(taken(&seats, "2001:db8::ffff:1").unwrap_err(), full);
        let _of_another_network = taken(&seats, "2001:db8:0:1::1").unwrap();
        drop(of_v4);
        let _again = taken(&seats, "10.0.0.1").unwrap();
        assert_eq!(locked(&seats.taken).by_client.len(), 4);
    }
}
