//! A naive TCP server for one connection, as a reference: it sends one segment at a time, repeats
//! it every 300 ms, takes only what is next, acknowledges every segment, and knows no option.

use saiga_stack::{Instant, Micros};
use saiga_wire::SeqNum;
use saiga_wire::ethernet::{self, EtherType, Mac, Tags};
use saiga_wire::frame::{Content, Frame, Network, Packet, Transport, Writer};
use saiga_wire::ip::{Ports, Protocol, TrafficClass};
use saiga_wire::ipv4;
use saiga_wire::offload::{ChecksumState, Fill};
use saiga_wire::tcp::{Flags, Header, Options, Segment};

use crate::application::{byte, streams};

const REPEAT: Micros = Micros::from_millis(300);
const SEGMENT: u64 = 536;
const WINDOW: u16 = 4_000;
const ISS: SeqNum = SeqNum(0xffff_f000);

#[derive(Debug)]
pub(crate) struct Naive {
    total: u64,
    conversation: Option<Conversation>,
    outgoing: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Conversation {
    ports: Ports,
    irs: SeqNum,
    /// Bytes received, and whether the FIN was, too.
    pub(crate) received: u64,
    is_finished: bool,
    /// What was acknowledged: the SYN, bytes, and the FIN.
    acked: u64,
    window: u64,
    repeat_at: Instant,
    is_over: bool,
}

impl Naive {
    pub(crate) fn new(total: u64) -> Self {
        Self {
            total,
            conversation: None,
            outgoing: Vec::new(),
        }
    }

    /// Bytes that have come, if the connection has ended.
    pub(crate) fn result(&self) -> Option<u64> {
        let conversation = self.conversation.as_ref()?;
        conversation.is_over.then_some(conversation.received)
    }

    pub(crate) fn frames(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.outgoing)
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let conversation = self.conversation.as_ref()?;
        (!conversation.is_over).then_some(conversation.repeat_at)
    }

    pub(crate) fn on_timeout(&mut self, now: Instant) {
        if self.next_timeout().is_some_and(|at| at <= now) {
            self.send(now);
        }
    }

    pub(crate) fn on_frame(&mut self, frame: &[u8], now: Instant) {
        let Ok(Frame {
            content:
                Content::Ip(Packet {
                    transport: Transport::Tcp(segment),
                    ..
                }),
            ..
        }) = Frame::parse(frame, ChecksumState::Verify)
        else {
            return;
        };
        if segment.header.flags.contains(Flags::RST) {
            if let Some(conversation) = &mut self.conversation {
                conversation.is_over = true;
            }
            return;
        }
        self.on_segment(&segment, now);
    }

    fn on_segment(&mut self, segment: &Segment<'_>, now: Instant) {
        let header = &segment.header;
        let is_syn = header.flags.contains(Flags::SYN);
        if is_syn && self.conversation.is_none() {
            self.conversation = Some(Conversation {
                ports: header.ports.reversed(),
                irs: header.seq,
                received: 0,
                is_finished: false,
                acked: 0,
                window: u64::from(header.window),
                repeat_at: now,
                is_over: false,
            });
        }
        let total = self.total;
        let Some(conversation) = &mut self.conversation else {
            return;
        };
        conversation.take(segment);
        if let Some(ack) = header.ack {
            // The difference from the initial number counts the SYN, bytes and the FIN.
            let acked = u64::from((ack - ISS.0).0);
            if acked <= total + 2 {
                conversation.acked = conversation.acked.max(acked);
                conversation.window = u64::from(header.window);
            }
        }
        if conversation.acked == total + 2 && conversation.is_finished {
            conversation.is_over = true;
        }
        let has_more = !segment.payload.is_empty() || header.flags.contains(Flags::FIN);
        if is_syn || has_more || conversation.acked < total + 2 {
            self.send(now);
        }
    }

    /// Sends what comes next, or the present acknowledgement.
    fn send(&mut self, now: Instant) {
        let total = self.total;
        let Some(conversation) = &mut self.conversation else {
            return;
        };
        conversation.repeat_at = now + REPEAT;
        let (from, mut flags) = (conversation.acked, Flags::NONE);
        let mut payload = Vec::new();
        if from == 0 {
            flags = Flags::SYN;
        } else if from <= total {
            // A closed window is probed with one byte.
            let end = (from + SEGMENT.min(conversation.window.max(1))).min(total + 1);
            let (_, stream) = streams(conversation.ports.destination);
            payload = (from - 1..end - 1).map(|at| byte(stream, at)).collect();
        } else if from == total + 1 {
            flags = Flags::FIN;
        }
        let header = Header {
            ports: conversation.ports,
            seq: ISS + u32::try_from(from).unwrap(),
            ack: Some(conversation.expected()),
            flags,
            window: WINDOW,
            urgent: None,
            options: Options::NONE,
        };
        self.outgoing.push(frame(&header, &payload));
    }
}

impl Conversation {
    /// The next sequence number of the peer.
    fn expected(&self) -> SeqNum {
        let received = u32::try_from(self.received).unwrap();
        self.irs + 1 + received + u32::from(self.is_finished)
    }

    /// Takes a segment if it is the next one, and checks its bytes.
    fn take(&mut self, segment: &Segment<'_>) {
        let header = &segment.header;
        if header.flags.contains(Flags::SYN) || header.seq != self.expected() || self.is_finished {
            return;
        }
        let (stream, _) = streams(self.ports.destination);
        for found in segment.payload {
            assert_eq!(
                *found,
                byte(stream, self.received),
                "byte {}",
                self.received
            );
            self.received += 1;
        }
        self.is_finished = header.flags.contains(Flags::FIN);
    }
}

/// A frame from host 2 to host 1.
fn frame(header: &Header, payload: &[u8]) -> Vec<u8> {
    let link = ethernet::Header {
        destination: Mac([2, 0, 0, 0, 0, 1]),
        source: Mac([2, 0, 0, 0, 0, 2]),
        tags: Tags::None,
        ether_type: EtherType::IPV4,
    };
    let network = Network::V4(ipv4::Header {
        source: [10, 0, 0, 2].into(),
        destination: [10, 0, 0, 1].into(),
        protocol: Protocol::TCP,
        traffic_class: TrafficClass(0),
        ttl: 64,
        id: 0,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
    });
    let mut frame = vec![0; 1_600];
    let mut writer = Writer {
        link: Some(&link),
        buffer: &mut frame,
    };
    let length = writer
        .tcp(&network, header, &[payload], Fill::Checksum)
        .unwrap();
    frame.truncate(length);
    frame
}
