//! What comes from a stranger on a control name: any bytes give a refusal or a sane proposal.

#![no_main]

use libfuzzer_sys::fuzz_target;
use saiga_channel::layout::{PROTOCOL, SLOTS, START_SHIFT, STRIDE_SHIFT};
use saiga_channel::rendezvous::Proposal;

fuzz_target!(|bytes: &[u8]| {
    let Ok(proposal) = Proposal::decode(bytes) else {
        return;
    };
    assert_eq!(proposal.protocol, PROTOCOL);
    assert!((proposal.slot as usize) < SLOTS);
    assert!((START_SHIFT..=STRIDE_SHIFT).contains(&proposal.max_shift));
    assert_eq!(
        proposal.encode(),
        bytes,
        "it says all that was in the message"
    );
});
