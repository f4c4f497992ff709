//! Captures written by hand and taken of real servers: what they hold must be what comes out.

mod bounds;
mod clocks;
mod files;
mod losses;
mod mixed;
mod protocols;
mod servers;
mod tcp;
mod tcpdump;
mod tshark;
mod wire;

use saiga_capture::{Options, Server, Traffic, read};
use wire::Wire;

/// Reads a capture that must be readable.
fn traffic(file: &[u8]) -> Traffic {
    read(file, &Options::default()).expect("a capture")
}

/// The only server of a capture without any mark.
fn only_server(wire: &Wire) -> Server {
    let traffic = traffic(&wire.pcap());
    assert_eq!(traffic.marks, [], "{:#?}", traffic.servers);
    sole(traffic)
}

/// The only server of a capture.
fn sole(traffic: Traffic) -> Server {
    let mut servers = traffic.servers.into_values();
    let server = servers.next().expect("a server");
    assert!(servers.next().is_none(), "a second server");
    server
}
