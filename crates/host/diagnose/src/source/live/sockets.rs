//! The TCP sockets of this network namespace, by INET_DIAG (`man 7 sock_diag`).

use std::io;
use std::net::SocketAddr;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags,
};
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_SOCK_DIAG;

/// Size of a reply to a dump, at most: `NLMSG_GOODSIZE` and the largest attributes.
const REPLY_BYTES: usize = 64 * 1024;

/// A TCP socket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Entry {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    pub(super) state: State,
    /// Received bytes that the program has not read; of a listener the waiting connections.
    pub(super) received_bytes: u32,
    /// Sent bytes that are not acknowledged; of a listener the backlog.
    pub(super) sent_bytes: u32,
    /// Inode in `/proc/PID/fd`; 0 without a process.
    pub(super) inode: u64,
    /// Whether this end has received more recently than it has sent, or has bytes to read: a
    /// request is in progress. Known for established connections.
    pub(super) is_active: bool,
    /// Whether the kernel holds back less than a segment until the data in flight is acknowledged:
    /// Nagle's algorithm (RFC 896). Known for established connections.
    pub(super) is_held_back: bool,
    /// Segment size of this end's sends in bytes; 0 if unknown.
    pub(super) segment_bytes: u32,
}

/// States of a socket, as far as they are told apart here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Established,
    /// SYN-SENT or SYN-RECEIVED.
    Opening,
    TimeWait,
    Listen,
    /// FIN-WAIT, CLOSE-WAIT, LAST-ACK, CLOSING, CLOSED.
    Closing,
}

/// Established connections with their activity.
pub(super) fn established() -> io::Result<Vec<Entry>> {
    dump(StateFlags::ESTABLISHED, ExtensionFlags::INFO)
}

/// All sockets.
pub(super) fn all() -> io::Result<Vec<Entry>> {
    dump(StateFlags::all(), ExtensionFlags::empty())
}

fn dump(states: StateFlags, extensions: ExtensionFlags) -> io::Result<Vec<Entry>> {
    let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.bind_auto()?;
    socket.connect(&netlink_sys::SocketAddr::new(0, 0))?;
    let mut entries = Vec::new();
    for (family, socket_id) in [
        (AF_INET, SocketId::new_v4()),
        (AF_INET6, SocketId::new_v6()),
    ] {
        let request = InetRequest {
            family,
            protocol: IPPROTO_TCP,
            extensions: extensions.clone(),
            states: states.clone(),
            socket_id,
        };
        ask(&socket, request)?;
        receive(&socket, &mut entries)?;
    }
    Ok(entries)
}

fn ask(socket: &Socket, request: InetRequest) -> io::Result<()> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let request = SockDiagMessage::InetRequest(request);
    let mut message = NetlinkMessage::new(header, request.into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    Ok(())
}

/// Receives the replies to one request.
fn receive(socket: &Socket, entries: &mut Vec<Entry>) -> io::Result<()> {
    let mut buffer = vec![0u8; REPLY_BYTES];
    loop {
        let length = socket.recv(&mut &mut buffer[..], 0)?;
        let mut rest = buffer.get(..length).unwrap_or_default();
        while !rest.is_empty() {
            let message =
                NetlinkMessage::<SockDiagMessage>::deserialize(rest).map_err(io::Error::other)?;
            // The lengths of messages are multiples of four bytes.
            let used = (message.header.length as usize).next_multiple_of(4);
            rest = rest.get(used.max(4)..).unwrap_or_default();
            if let NetlinkPayload::Done(_) = message.payload {
                return Ok(());
            }
            if let NetlinkPayload::Error(error) = &message.payload {
                return Err(error.to_io());
            }
            if let NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) =
                message.payload
            {
                entries.push(entry(&response));
            }
        }
    }
}

fn entry(response: &InetResponse) -> Entry {
    let header = &response.header;
    let id = &header.socket_id;
    let info = response.nlas.iter().find_map(|nla| {
        let Nla::TcpInfo(info) = nla else { return None };
        Some(info)
    });
    let is_active =
        header.recv_queue > 0 || info.is_some_and(|info| info.last_data_recv < info.last_data_sent);
    Entry {
        local: SocketAddr::new(id.source_address.to_canonical(), id.source_port),
        remote: SocketAddr::new(id.destination_address.to_canonical(), id.destination_port),
        state: state(header.state),
        received_bytes: header.recv_queue,
        sent_bytes: header.send_queue,
        inode: u64::from(header.inode),
        is_active,
        is_held_back: info.is_some_and(|info| {
            info.unacked > 0 && (1..info.snd_mss).contains(&info.notsent_bytes)
        }),
        segment_bytes: info.map_or(0, |info| info.snd_mss),
    }
}

/// Values of `include/net/tcp_states.h`.
fn state(number: u8) -> State {
    match number {
        1 => State::Established,
        2 | 3 | 12 => State::Opening,
        6 => State::TimeWait,
        10 => State::Listen,
        _ => State::Closing,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[track_caller]
    fn one(entries: &[Entry], wanted: impl Fn(&&Entry) -> bool) -> Entry {
        let found: Vec<&Entry> = entries.iter().filter(wanted).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        *found[0]
    }

    #[test]
    fn a_request_in_progress_and_a_waiting_connection_are_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        let served = |entry: &&Entry| entry.local == address && entry.state == State::Established;
        client.write_all(b"request").unwrap();
        let all = all().unwrap();
        let listening = one(&all, |entry| {
            entry.local == address && entry.state == State::Listen
        });
        assert_eq!(
            listening.received_bytes, 1,
            "one connection waits for accept"
        );
        let (mut server, _) = listener.accept().unwrap();
        assert!(one(&established().unwrap(), served).is_active);
        server.read_exact(&mut [0; 7]).unwrap();
        server.write_all(b"response").unwrap();
        client.read_exact(&mut [0; 8]).unwrap();
        assert!(!one(&established().unwrap(), served).is_active);
    }

    #[test]
    fn the_side_that_closes_first_is_in_time_wait() {
        let listener = TcpListener::bind("[::1]:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).unwrap();
        let from = client.local_addr().unwrap();
        let (mut server, _) = listener.accept().unwrap();
        drop(client);
        assert_eq!(server.read(&mut [0; 1]).unwrap(), 0);
        drop(server);
        let mut last = State::Closing;
        // The last acknowledgement is handled before close(2) returns on loopback.
        for entry in all().unwrap().iter().filter(|entry| entry.local == from) {
            last = entry.state;
        }
        assert_eq!(last, State::TimeWait);
    }
}
