//! The section with the assumptions of the simulation.

use saiga_ftl::{Counting, GcFrontier};

use super::{Block, Content, Section, Visibility};

/// Assumptions for every device.
const ALWAYS: [&str; 6] = [
    "The size of the drive follows from the pages of the trace: units, spare space and data are scaled \
     down together. The drive holds no other data.",
    "The whole trace is repeated until the device has settled, and again for the measurement. Each \
     repetition writes the same pages in the same order, which makes a short trace look better than \
     it is.",
    "Initially isolated: streams are separate until garbage collection moves their pages into shared \
     units. Persistently isolated: moved pages stay separate, too. A drive does one of the two (NVMe \
     TP4146); ask its vendor.",
    "Every file has its stream from its first byte on, as if it were labelled before.",
    "Omitted: time, channels, wear levelling, SLC caches, write buffers, parity, partially cached \
     mappings, garbage collection in idle time. Most of these increase the write amplification of a \
     real drive.",
    "Differences of less than a few percent are not significant: they change with the size of the \
     units.",
];

pub(super) fn section(content: &Content<'_>) -> Option<Section> {
    let device = content.device;
    let own = [
        match device.counting {
            Counting::WholeDevice => {
                "Open units and the reserve are part of the spare space, so that each stream takes some \
                 of it."
            }
            Counting::ClosedUnits => {
                "Open units and the reserve are in addition to the spare space, as in theory."
            }
        },
        match device.gc {
            GcFrontier::Own => "Moved pages are written to open units of their own.",
            GcFrontier::WithHost => "Moved pages are written to the open units of the host.",
        },
        "The drive receives the discards of the trace. A file that is deleted without a discard counts \
         as data until its pages are written again. Under \"no discards\" it receives none, as on a \
         file system that is mounted without discards.",
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
