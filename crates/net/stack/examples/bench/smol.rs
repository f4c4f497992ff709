//! Two hosts of smoltcp.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Checksum, ChecksumCapabilities, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr};

use crate::pair::{Kind, Pair, REQUEST};

const SMALL: usize = 16 << 10;
const LARGE: usize = 1 << 20;
/// Buffers of connections when there are many.
const TINY: usize = 512;

/// Frames in one direction, and buffers that are free.
#[derive(Default)]
struct Wire {
    frames: VecDeque<Vec<u8>>,
    free: Vec<Vec<u8>>,
    count: u64,
}

/// A device that passes frames to the other host.
struct Port {
    incoming: Rc<RefCell<Wire>>,
    outgoing: Rc<RefCell<Wire>>,
    kind: Kind,
}

struct Received {
    frame: Vec<u8>,
    wire: Rc<RefCell<Wire>>,
}

struct Room(Rc<RefCell<Wire>>);

impl smoltcp::phy::RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        let result = read(&self.frame);
        self.wire.borrow_mut().free.push(self.frame);
        result
    }
}

impl smoltcp::phy::TxToken for Room {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut frame = self.0.borrow_mut().free.pop().unwrap_or_default();
        frame.resize(length, 0);
        let result = write(&mut frame);
        let mut wire = self.0.borrow_mut();
        wire.frames.push_back(frame);
        wire.count += 1;
        result
    }
}

impl Device for Port {
    type RxToken<'a> = Received;
    type TxToken<'a> = Room;

    fn receive(&mut self, _now: Instant) -> Option<(Received, Room)> {
        let frame = self.incoming.borrow_mut().frames.pop_front()?;
        let wire = Rc::clone(&self.incoming);
        Some((Received { frame, wire }, Room(Rc::clone(&self.outgoing))))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Room> {
        Some(Room(Rc::clone(&self.outgoing)))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        match self.kind {
            Kind::Segments => {
                capabilities.max_transmission_unit = 1514;
                let mut checksum = ChecksumCapabilities::default();
                checksum.tcp = Checksum::Both;
                capabilities.checksum = checksum;
            }
            Kind::SuperSegments => {
                capabilities.max_transmission_unit = 65_535;
                capabilities.checksum = ChecksumCapabilities::ignored();
            }
        }
        capabilities
    }
}

struct Host {
    interface: Interface,
    device: Port,
    sockets: SocketSet<'static>,
}

impl Host {
    fn new(number: u8, device: Port) -> Self {
        let mut device = device;
        let address = EthernetAddress([2, 0, 0, 0, 0, number]);
        let config = Config::new(address.into());
        let mut interface = Interface::new(config, &mut device, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            let own = IpCidr::new(IpAddress::v4(10, 0, 0, number), 24);
            addresses.push(own).unwrap();
        });
        Self {
            interface,
            device,
            sockets: SocketSet::new(Vec::new()),
        }
    }

    fn add(&mut self, bytes: usize) -> SocketHandle {
        let buffer = || SocketBuffer::new(vec![0; bytes]);
        self.sockets.add(Socket::new(buffer(), buffer()))
    }

    fn socket(&mut self, handle: SocketHandle) -> &mut Socket<'static> {
        self.sockets.get_mut(handle)
    }

    fn poll(&mut self, now: Instant) {
        self.interface
            .poll(now, &mut self.device, &mut self.sockets);
    }
}

pub(crate) struct Smol {
    client: Host,
    server: Host,
    wires: [Rc<RefCell<Wire>>; 2],
    now: Instant,
    kind: Kind,
    connections: Vec<(SocketHandle, SocketHandle)>,
    scratch: Vec<u8>,
    next_port: u16,
}

impl Smol {
    pub(crate) fn new(kind: Kind) -> Self {
        let wires: [Rc<RefCell<Wire>>; 2] = Default::default();
        let port = |incoming: usize, outgoing: usize| Port {
            incoming: Rc::clone(&wires[incoming]),
            outgoing: Rc::clone(&wires[outgoing]),
            kind,
        };
        Self {
            client: Host::new(1, port(1, 0)),
            server: Host::new(2, port(0, 1)),
            now: Instant::from_secs(1),
            kind,
            connections: Vec::new(),
            scratch: vec![0; LARGE],
            next_port: 0,
            wires,
        }
    }

    fn connect(&mut self, handle: SocketHandle) {
        let port = 40_000 + self.next_port % 20_000;
        self.next_port = self.next_port.wrapping_add(1);
        let Host {
            interface, sockets, ..
        } = &mut self.client;
        let socket = sockets.get_mut::<Socket<'_>>(handle);
        socket
            .connect(interface.context(), (IpAddress::v4(10, 0, 0, 2), 80), port)
            .unwrap();
    }

    /// Lets both hosts send and receive until no frame is left.
    fn pump(&mut self) {
        loop {
            let before = self.segments();
            self.client.poll(self.now);
            self.server.poll(self.now);
            if self.segments() == before {
                return;
            }
        }
    }

    fn pass_time(&mut self, micros: u64) {
        self.now += smoltcp::time::Duration::from_micros(micros);
    }
}

impl Pair for Smol {
    fn open(&mut self, count: usize) {
        let bytes = match self.kind {
            Kind::Segments if count > 100 => TINY,
            Kind::Segments => SMALL,
            Kind::SuperSegments => LARGE,
        };
        while self.connections.len() < count {
            let (own, peer) = (self.client.add(bytes), self.server.add(bytes));
            self.server.socket(peer).listen(80).unwrap();
            self.connect(own);
            self.connections.push((own, peer));
            // The hosts look at all sockets each time: not after every one.
            let opened = self.connections.len();
            if opened.is_multiple_of(1_000) || opened == count {
                self.pump();
            }
            self.pass_time(1);
        }
        for (own, _) in &self.connections {
            assert_eq!(self.client.socket(*own).state(), State::Established);
        }
    }

    fn exchange(&mut self, connections: &[usize]) {
        for connection in connections {
            let (own, _) = self.connections[*connection];
            let sent = self.client.socket(own).send_slice(&self.scratch[..REQUEST]);
            assert_eq!(sent, Ok(REQUEST));
        }
        let mut responses = 0;
        while responses < connections.len() {
            self.client.poll(self.now);
            self.server.poll(self.now);
            for connection in connections {
                let (own, peer) = self.connections[*connection];
                let server = self.server.socket(peer);
                if server.recv_queue() >= REQUEST {
                    server.recv_slice(&mut self.scratch[..REQUEST]).unwrap();
                    server.send_slice(&self.scratch[..REQUEST]).unwrap();
                }
                let client = self.client.socket(own);
                if client.recv_queue() >= REQUEST {
                    client.recv_slice(&mut self.scratch[..REQUEST]).unwrap();
                    responses += 1;
                }
            }
        }
        self.pass_time(connections.len() as u64);
    }

    fn stream(&mut self, bytes: usize) {
        let (own, peer) = self.connections[0];
        let (mut written, mut read) = (0, 0);
        while read < bytes {
            let some = (bytes - written).min(self.scratch.len());
            let client = self.client.socket(own);
            written += client.send_slice(&self.scratch[..some]).unwrap();
            self.client.poll(self.now);
            self.server.poll(self.now);
            let server = self.server.socket(peer);
            while server.can_recv() {
                read += server.recv_slice(&mut self.scratch).unwrap();
            }
            self.pass_time(10);
        }
    }

    fn churn(&mut self, count: usize) -> u64 {
        let (own, peer) = (self.client.add(TINY), self.server.add(TINY));
        for _ in 0..count {
            self.server.socket(peer).listen(80).unwrap();
            self.connect(own);
            self.pump();
            self.client.socket(own).close();
            self.pump();
            self.server.socket(peer).close();
            self.pump();
            // TIME-WAIT holds the socket; smoltcp's lasts 10 s.
            self.pass_time(11_000_000);
            self.pump();
            assert_eq!(self.client.socket(own).state(), State::Closed);
        }
        self.client.sockets.remove(own);
        self.server.sockets.remove(peer);
        count as u64
    }

    fn segments(&self) -> u64 {
        let counts = self.wires.iter().map(|wire| wire.borrow().count);
        2 * counts.sum::<u64>()
    }
}
