//! When a segment or a state of the kernel is the one of the script.

use saiga_wire::tcp::Flags;

use crate::parse::Segment;

/// Whether `found` is what the script expects; or which field differs.
///
/// Flags, numbers, lengths, acknowledgements, urgent pointers and selective acknowledgements must
/// be equal, as on the engine. The options of a SYN and timestamps are compared if the script names
/// them. The kernel sizes its windows by its memory, so that only their being zero is compared. Its
/// clock runs, so that a timestamp may be larger. It puts selective acknowledgements into all
/// segments.
pub(crate) fn agree(expected: &Segment, found: &Segment) -> Result<(), &'static str> {
    let is_syn = found.flags.contains(Flags::SYN);
    let rules = [
        ("flags", flags_agree(expected, found)),
        ("number", expected.seq == found.seq),
        ("length", expected.length == found.length),
        ("acknowledgement", expected.ack == found.ack),
        ("urgent pointer", expected.urgent == found.urgent),
        (
            "selective acknowledgements",
            expected.sack == found.sack || has_more(found) && expected.sack.is_empty(),
        ),
        ("window", windows_agree(expected, found)),
        ("timestamps", timestamps_agree(expected, found)),
        (
            "ECN capability",
            expected.is_ecn_capable.is_none() || expected.is_ecn_capable == found.is_ecn_capable,
        ),
        (
            "segment size",
            is_syn && expected.mss.is_none() || expected.mss == found.mss,
        ),
        (
            "window scale",
            match expected.scale {
                Some(_) => found.scale.is_some(),
                None => is_syn || found.scale.is_none(),
            },
        ),
        (
            "SACK-permitted",
            is_syn && !expected.has_sack_permitted
                || expected.has_sack_permitted == found.has_sack_permitted,
        ),
    ];
    if found.clone().check_absent(&expected.absent).is_err() {
        return Err("option that is not there");
    }
    match rules.into_iter().find(|(_, holds)| !holds) {
        None => Ok(()),
        Some((field, _)) => Err(field),
    }
}

/// Whether a segment is more than an acknowledgement.
fn has_more(segment: &Segment) -> bool {
    segment.length > 0 || segment.flags.intersects(Flags::FIN | Flags::RST)
}

/// The kernel sets PSH on each batch of segments that it hands to the device, so that it may be on
/// segments on which the script does not have it.
fn flags_agree(expected: &Segment, found: &Segment) -> bool {
    if found.length == 0 {
        return expected.flags == found.flags;
    }
    found.flags == expected.flags || found.flags == expected.flags | Flags::PSH
}

/// The window of a reset means nothing.
fn windows_agree(expected: &Segment, found: &Segment) -> bool {
    let is_reset = found.flags.contains(Flags::RST);
    let is_zero = |window: u16| (window == 0) == (found.window == Some(0));
    is_reset || expected.window.is_none_or(is_zero)
}

fn timestamps_agree(expected: &Segment, found: &Segment) -> bool {
    match (expected.timestamps, found.timestamps) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some([value, echo]), Some([found_value, found_echo])) => {
            let later_ms = found_value.wrapping_sub(value).cast_signed();
            echo == found_echo && later_ms >= -25
        }
    }
}

/// Whether the kernel is in the state that the script names. A socket that the script has closed
/// tells no reason; nor does one that ended in order.
pub(crate) fn states_agree(expected: &str, found: &str) -> bool {
    match (expected.split_once(' '), found.split_once(' ')) {
        (Some((state, reason)), Some((found_state, found_reason))) => {
            state == found_state && (found_reason.is_empty() || reason == found_reason)
        }
        // The kernel leaves CLOSE-WAIT at a close, before it has sent the FIN.
        _ => expected == found || (expected, found) == ("CLOSE-WAIT", "LAST-ACK"),
    }
}
