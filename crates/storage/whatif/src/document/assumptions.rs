//! What the figures rest on, in plain words.

use saiga_ftl::{Counting, GcFrontier};

use super::{Block, Content, Section, Visibility};

/// What holds for every device.
const ALWAYS: [&str; 6] = [
    "The drive is as large as the trace's own pages make it: units, spare space and data are scaled down together. Nothing else \
     is on it.",
    "The trace is repeated, whole, until the device has settled, and again for the measurement. Each repetition writes the same \
     pages in the same order, which makes a short trace look better than it is.",
    "Initially isolated: streams are apart until garbage collection moves their pages into units that all share. Persistently \
     isolated: moved pages stay apart, too. A drive is one of the two (NVMe TP4146); its maker knows which.",
    "Every file has its stream from its first byte on, as if the labels were there before it.",
    "Left out: time, channels, wear levelling, SLC caches, write buffers, parity, a mapping that is cached in part, collection \
     in idle time. Most of these make the write amplification of a real drive higher.",
    "Differences of less than a few percent mean nothing: they change with the size of the units.",
];

pub(super) fn section(content: &Content<'_>) -> Option<Section> {
    let device = content.device;
    let own = [
        match device.counting {
            Counting::WholeDevice => {
                "Open units and the reserve are part of the spare space, so that each stream costs some of it."
            }
            Counting::ClosedUnits => {
                "Open units and the reserve come on top of the spare space, as in theory."
            }
        },
        match device.gc {
            GcFrontier::Own => "Moved pages go into open units of their own.",
            GcFrontier::WithHost => "Moved pages go into the open units of the host.",
        },
        "The drive is told of discards where the trace has some; a file that is deleted without one is data to the drive until its \
         place is written again. Under \"no discards\" it is told of none, as on a file system that is mounted without them.",
    ];
    let all = ALWAYS.iter().copied().chain(own).map(str::to_owned);
    Some(Section {
        id: "assumptions",
        title: "What this assumes".to_owned(),
        visibility: Visibility::Detail,
        blocks: vec![
            Block::List(all.collect()),
            Block::Facts(content.facts.to_vec()),
        ],
    })
}
