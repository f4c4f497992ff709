//! How the connection begins.

use saiga_tcp::{Arrival, Config, Connection, Context, CookieSecret, Counters, Instant, Start};
use saiga_wire::SeqNum;
use saiga_wire::ip::Ports;
use saiga_wire::tcp::{Flags, Header, Options, Timestamps};

use super::bytes::Bytes;
use super::host::Host;
use super::peer::{Peer, Segment};
use super::receive::{Note, Receive};

/// Near the wrap of sequence numbers.
const ISS: SeqNum = SeqNum(u32::MAX - 5000);
const IRS: SeqNum = SeqNum(u32::MAX - 300);

/// How the connection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    Connect,
    Accept,
    /// An open that the peer has answered.
    Established,
    Accepted,
    Cookie,
}

impl Host {
    pub(crate) fn new(
        config: Config,
        buffer: u32,
        most: u32,
        begin: Begin,
        bytes: &mut Bytes<'_>,
    ) -> Self {
        let mut peer = Peer {
            nxt: IRS,
            una: ISS,
            end: ISS + 1,
            timestamp: 0,
            clock: 1_000_000,
        };
        let start = Start {
            iss: ISS,
            timestamp_offset: 77,
            buffer,
        };
        let mut counters = Counters::default();
        let mut context = Context {
            now: Instant(1_000_000),
            config: &config,
            counters: &mut counters,
        };
        let syn = bare(&peer, Flags::SYN, None, peer.options_of_syn(bytes));
        let connection = match begin {
            Begin::Connect | Begin::Established => Connection::connect(start, &mut context),
            Begin::Accept | Begin::Accepted => Connection::accept(start, &syn, &mut context),
            Begin::Cookie => {
                let (answer, connection) = with_cookie(start, &syn, &mut peer, &mut context);
                peer.una = answer;
                connection
            }
        };
        let mut host = Self {
            connection,
            now: context.now,
            config,
            counters,
            most,
            iss: peer.una,
            peer,
            written: 0,
            acked: 0,
            is_shut: false,
            receive: Receive {
                size: buffer,
                ..Receive::default()
            },
            is_closed: false,
            edge: 0,
            shift: syn.options.window_scale.unwrap_or(0).min(14),
            last_ack: None,
        };
        host.note_window(&syn);
        host.shake_hands(begin, &syn);
        host
    }

    /// The rest of the handshake, as the peer would go on.
    fn shake_hands(&mut self, begin: Begin, syn: &Header) {
        self.pump();
        let ack = Some(self.iss + 1);
        let answer = match begin {
            Begin::Established => Header { ack, ..*syn },
            Begin::Accepted => {
                let options = Options {
                    timestamps: syn.options.timestamps,
                    ..Options::NONE
                };
                bare(&self.peer, Flags::NONE, ack, options)
            }
            Begin::Connect | Begin::Accept | Begin::Cookie => return,
        };
        self.deliver(&Segment {
            header: answer,
            length: 0,
            is_congested: false,
        });
    }
}

/// A segment without data.
fn bare(peer: &Peer, flags: Flags, ack: Option<SeqNum>, options: Options) -> Header {
    Header {
        ports: Ports {
            source: 0,
            destination: 0,
        },
        seq: peer.nxt,
        ack,
        flags,
        window: u16::MAX,
        urgent: None,
        options,
    }
}

/// Answers a SYN with a cookie, and makes a connection of the acknowledgement. Returns this side's
/// initial number.
fn with_cookie(
    start: Start,
    syn: &Header,
    peer: &mut Peer,
    context: &mut Context<'_>,
) -> (SeqNum, Connection) {
    let secret = CookieSecret::new([1, 2], context.now);
    let answer = secret.syn_ack(b"flow", &start, syn, context);
    let timestamps = answer.options.timestamps.map(|one| Timestamps {
        value: peer.clock,
        echo: one.value,
    });
    peer.nxt = syn.seq + 1;
    peer.end = answer.seq + 1;
    let options = Options {
        timestamps,
        ..Options::NONE
    };
    let ack = bare(peer, Flags::NONE, Some(answer.seq + 1), options);
    let arrival = Arrival {
        header: &ack,
        length: 0,
        is_congested: false,
    };
    let mut receive = Receive::default();
    let mut nowhere = Note {
        receive: &mut receive,
        length: 0,
    };
    let cookie = (&secret, b"flow".as_slice());
    let made = Connection::from_cookie(cookie, start, &arrival, &mut nowhere, context);
    let (connection, _events) = made.expect("the cookie is valid");
    (answer.seq, connection)
}
