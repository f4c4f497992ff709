//! TCP headers and options.

use super::{checksums, ip, smoltcp_verifies};
use saiga_wire::Malformed;
use saiga_wire::ip::Addresses;
use saiga_wire::tcp::{self, Flags, Header, Segment};
use smoltcp::wire::{TcpControl, TcpPacket, TcpRepr};

pub(super) fn compare(addresses: &Addresses, bytes: &[u8]) {
    let (source, destination) = (ip(addresses.source()), ip(addresses.destination()));
    let packet = TcpPacket::new_checked(bytes);
    let theirs = packet.and_then(|packet| {
        let repr = TcpRepr::parse(&packet, &source, &destination, &checksums())?;
        Ok((repr, packet))
    });
    match (Segment::parse(bytes), theirs) {
        (Ok(ours), Ok((theirs, packet))) => {
            same(&ours, &theirs);
            assert_eq!(ours.header.urgent, packet.urg().then(|| packet.urgent_at()));
            assert_eq!(ours.header.flags.contains(Flags::ECE), packet.ece());
            assert_eq!(ours.header.flags.contains(Flags::CWR), packet.cwr());
            let right = packet.verify_checksum(&source, &destination);
            assert!(!smoltcp_verifies() || tcp::is_intact(addresses, bytes) == right);
        }
        (Err(reason), Ok((accepted, _))) => panic!("{reason}, but smoltcp accepts {accepted:?}"),
        (Ok(ours), Err(_)) => assert!(is_looser(&ours, bytes), "{ours:?}"),
        (Err(reason), Err(_)) => {
            assert!(matches!(
                reason,
                Malformed::TcpTruncated | Malformed::TcpDataOffset
            ));
        }
    }
}

fn same(ours: &Segment<'_>, theirs: &TcpRepr<'_>) {
    let header = ours.header;
    assert_eq!(header.ports.source, theirs.src_port);
    assert_eq!(header.ports.destination, theirs.dst_port);
    assert_eq!(header.seq.0.cast_signed(), theirs.seq_number.0);
    let ack = theirs.ack_number.map(|ack| ack.0);
    assert_eq!(header.ack.map(|ack| ack.0.cast_signed()), ack);
    assert_eq!(header.window, theirs.window_len);
    assert_eq!(control(&header), Some(theirs.control));
    let options = header.options;
    assert_eq!(options.mss, theirs.max_seg_size);
    assert_eq!(options.window_scale, theirs.window_scale);
    assert_eq!(options.sack_permitted, theirs.sack_permitted);
    let times = theirs.timestamp.map(|times| (times.tsval, times.tsecr));
    assert_eq!(
        options.timestamps.map(|times| (times.value, times.echo)),
        times
    );
    // smoltcp keeps three blocks.
    let mut blocks = options.sack.as_slice().iter();
    let blocks = [(); 3].map(|()| blocks.next().map(|block| (block.left.0, block.right.0)));
    assert_eq!(blocks, theirs.sack_ranges);
    assert_eq!(ours.payload, theirs.payload);
}

/// The flags as smoltcp represents them; `None` if smoltcp refuses them.
fn control(header: &Header) -> Option<TcpControl> {
    let [syn, fin, rst, psh] =
        [Flags::SYN, Flags::FIN, Flags::RST, Flags::PSH].map(|flag| header.flags.contains(flag));
    match (syn, fin, rst) {
        (false, false, false) if psh => Some(TcpControl::Psh),
        (false, false, false) => Some(TcpControl::None),
        (true, false, false) => Some(TcpControl::Syn),
        (false, true, false) => Some(TcpControl::Fin),
        (false, false, true) => Some(TcpControl::Rst),
        _ => None,
    }
}

/// Whether the segment has one of the faults for which smoltcp refuses it, and this crate does not:
/// port 0, SYN with FIN or RST, FIN with RST, and options of an illegal length, or known ones of
/// another length than theirs. The connection decides about ports and flags; Linux skips such
/// options, too.
fn is_looser(ours: &Segment<'_>, bytes: &[u8]) -> bool {
    let header = ours.header;
    header.ports.source == 0
        || header.ports.destination == 0
        || control(&header).is_none()
        || header.options.malformed
        || has_odd_option(&bytes[20..bytes.len() - ours.payload.len()])
}

fn has_odd_option(options: &[u8]) -> bool {
    let mut at = 0;
    while at < options.len() && options[at] != 0 {
        if options[at] == 1 {
            at += 1;
            continue;
        }
        let (kind, length) = (options[at], options[at + 1]);
        let right = match kind {
            2 => length == 4,
            3 => length == 3,
            4 => length == 2,
            5 => length >= 10 && length % 8 == 2,
            _ => true,
        };
        if !right {
            return true;
        }
        at += usize::from(length);
    }
    false
}
