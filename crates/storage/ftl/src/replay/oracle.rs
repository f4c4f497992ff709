//! The oracle: a placement by the known death time of each written page.
//!
//! Rules do not know death times, so the oracle shows how much better rules could become. It is not
//! a bound; the bound is a write amplification of 1. Streams are ranges of remaining lifetimes,
//! divided in three ways under both isolations; the best result counts.

use super::classes::Class;
use super::footprint::Footprint;
use super::player::Player;
use super::{Case, Options, Placement, ReplayError, device};
use crate::config::{ConfigError, Isolation};
use crate::device::Device;
use crate::steady::{self, Report};
use crate::trace::Op;

/// Bins for each factor of two of lifetimes.
const STEPS: usize = 4;
/// Bins for lifetimes up to 2^40 page writes.
const BINS: usize = 40 * STEPS;

/// The division of lifetimes into streams.
#[derive(Debug, Clone, Copy)]
enum Cut {
    /// The same number of writes for each stream.
    Writes,
    /// The same number of live pages for each stream.
    Pages,
    /// Equal parts of the logarithm of lifetimes.
    Octaves,
}

/// Returns the best placement by known death times, and its result.
///
/// # Errors
/// The device is not valid, or `report` ended the run.
pub fn oracle(
    footprint: &Footprint,
    options: &Options,
    report: Report<'_>,
) -> Result<(Placement, Case), ReplayError> {
    let needed_bytes = Lives::bytes(footprint);
    if needed_bytes > options.memory_bytes {
        return Err(ConfigError::Memory {
            needed_bytes,
            available_bytes: options.memory_bytes,
        }
        .into());
    }
    let lives = Lives::of(footprint, options.trim);
    let mut best: Option<(Placement, Case)> = None;
    let mut refused = None;
    for cut in [Cut::Writes, Cut::Pages, Cut::Octaves] {
        for placement in [
            Placement::InitiallyIsolated,
            Placement::PersistentlyIsolated,
        ] {
            let case = match play(footprint, options, &lives, cut, placement, report) {
                Err(ReplayError::Config(error @ ConfigError::TooSmall { .. })) => {
                    refused = Some(error);
                    continue;
                }
                case => case?,
            };
            let is_better =
                |(_, known): &(Placement, Case)| case.outcome.waf() < known.outcome.waf();
            if best.as_ref().is_none_or(is_better) {
                best = Some((placement, case));
            }
        }
    }
    match (best, refused) {
        (Some(best), _) => Ok(best),
        (None, Some(error)) => Err(error.into()),
        (None, None) => Err(ReplayError::Interrupted),
    }
}

fn play(
    footprint: &Footprint,
    options: &Options,
    lives: &Lives,
    cut: Cut,
    placement: Placement,
    report: Report<'_>,
) -> Result<Case, ReplayError> {
    let isolation = match placement {
        Placement::PersistentlyIsolated => Isolation::Persistently,
        Placement::OneStream | Placement::InitiallyIsolated => Isolation::Initially,
    };
    let streams = options.handles;
    let config = device(footprint, options)?.with_streams(streams, isolation);
    let mut device = Device::new(config)?;
    let logical_pages = device.config().logical_pages;
    let stream_of = lives.cut(cut, streams);
    let mut player = Player::new(footprint, &|_| 0, options.trim, logical_pages);
    player.set_classes(lives.assignment(&stream_of));
    let outcome = steady::run(&mut device, &mut player, options.length, report);
    let mut written = vec![0; streams];
    for bin in &lives.of_write {
        written[usize::from(stream_of[usize::from(*bin)])] += 1;
    }
    let classes = written.iter().enumerate().map(|(stream, pages)| Class {
        name: format!("life {} of {streams}", stream + 1),
        stream,
        directory: None,
        written_pages: *pages,
    });
    Ok(Case {
        outcome: outcome.ok_or(ReplayError::Interrupted)?,
        classes: classes.collect(),
        streams: (0..streams).collect(),
        without_handle: Vec::new(),
        logical_pages,
    })
}

/// The lifetime of each page write of a repetition, in page writes, as bins.
#[derive(Debug)]
struct Lives {
    /// By page write, in order.
    of_write: Vec<u8>,
    /// By page, for data present at the start.
    of_present: Vec<u8>,
}

/// The stream of each page write of a repetition, and of each page present at the start.
#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) of_write: Vec<u8>,
    pub(super) of_present: Vec<u8>,
}

impl Lives {
    /// Returns the memory of the computation in bytes.
    fn bytes(footprint: &Footprint) -> u64 {
        u64::from(footprint.pages()) * 10 + footprint.totals().written_pages * 2
    }

    /// Walks two repetitions backwards: the deaths of the first one's pages may be in the second.
    fn of(footprint: &Footprint, trim: bool) -> Self {
        const NEVER: u64 = u64::MAX;
        let period = footprint.totals().written_pages;
        let mut of_write = vec![0; usize::try_from(period).unwrap_or(0)];
        let mut next = vec![NEVER; footprint.pages() as usize];
        let mut now = 2 * period;
        for _ in 0..2 {
            for request in footprint.requests.iter().rev() {
                let pages = request.first as usize..(request.first + request.pages) as usize;
                match request.op() {
                    Op::Write => {
                        for page in pages.rev() {
                            now -= 1;
                            let death = std::mem::replace(&mut next[page], now);
                            let at = usize::try_from(now % period).unwrap_or(0);
                            of_write[at] = bin(death.saturating_sub(now));
                        }
                    }
                    Op::Discard if trim => next[pages].fill(now),
                    Op::Discard | Op::Present => {}
                }
            }
        }
        Self {
            of_write,
            of_present: next.into_iter().map(bin).collect(),
        }
    }

    /// Returns the stream of each bin.
    fn cut(&self, cut: Cut, streams: usize) -> Vec<u8> {
        let mut counts = [0.0; BINS];
        for bin in &self.of_write {
            counts[usize::from(*bin)] += 1.0;
        }
        let first = counts.iter().position(|count| *count > 0.0).unwrap_or(0);
        let last = counts.iter().rposition(|count| *count > 0.0).unwrap_or(0);
        let weight = |bin: usize| match cut {
            Cut::Writes => counts[bin],
            Cut::Pages => counts[bin] * 2_f64.powf(bin as f64 / STEPS as f64),
            Cut::Octaves => f64::from(u8::from((first..=last).contains(&bin))),
        };
        let all: f64 = (0..BINS).map(weight).sum();
        let mut sum = 0.0;
        let stream = |bin: usize| {
            let middle = sum + weight(bin) / 2.0;
            sum += weight(bin);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of the streams, of which there are at most 128"
            )]
            let stream = (middle / all * streams as f64) as usize;
            u8::try_from(stream.min(streams - 1)).unwrap_or(0)
        };
        (0..BINS).map(stream).collect()
    }

    fn assignment(&self, stream_of: &[u8]) -> Assignment {
        let streams = |bins: &[u8]| {
            let stream = |bin: &u8| stream_of[usize::from(*bin)];
            bins.iter().map(stream).collect()
        };
        Assignment {
            of_write: streams(&self.of_write),
            of_present: streams(&self.of_present),
        }
    }
}

/// Returns the bin of a lifetime.
fn bin(life: u64) -> u8 {
    let life = life.max(1);
    let octave = life.ilog2() as usize;
    let step = usize::try_from((u128::from(life) << 2 >> octave) & 3).unwrap_or(0);
    u8::try_from((octave * STEPS + step).min(BINS - 1)).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Row, Trace};

    fn footprint(rows: &[(Op, u64, u64)]) -> Footprint {
        let row = |&(op, first, pages): &(Op, u64, u64)| Row {
            t_ns: 0,
            lba: first * 4096,
            len: pages * 4096,
            op,
            file: None,
        };
        let trace = Trace {
            rows: rows.iter().map(row).collect(),
            ..Trace::default()
        };
        Footprint::of(&trace, 4096).unwrap()
    }

    /// Page 0 is written twice, page 1 discarded, page 2 lives for a repetition, page 3 forever.
    #[test]
    fn lives_are_until_the_next_write_or_discard() {
        let footprint = footprint(&[
            (Op::Present, 3, 1),
            (Op::Write, 0, 2),
            (Op::Write, 0, 1),
            (Op::Discard, 1, 1),
            (Op::Write, 2, 1),
        ]);
        let lives = Lives::of(&footprint, true);
        assert_eq!(lives.of_write, [bin(2), bin(2), bin(2), bin(4)]);
        let last = u8::try_from(BINS - 1).unwrap();
        assert_eq!(lives.of_present, [bin(1), bin(1), bin(3), last]);
        // Without discards page 1 lives until it is written in the next repetition.
        let untold = Lives::of(&footprint, false);
        assert_eq!(untold.of_write, [bin(2), bin(4), bin(2), bin(4)]);
    }

    #[test]
    fn bins_are_quarters_of_octaves() {
        for (life, expected) in [(0, 0), (1, 0), (2, 4), (3, 6), (4, 8), (7, 11), (8, 12)] {
            assert_eq!(bin(life), expected, "{life}");
        }
        assert_eq!(usize::from(bin(u64::MAX)), BINS - 1);
    }

    #[test]
    fn cuts_use_every_stream_in_order() {
        let lives = Lives {
            of_write: (0..100).collect(),
            of_present: Vec::new(),
        };
        for cut in [Cut::Writes, Cut::Pages, Cut::Octaves] {
            let streams = lives.cut(cut, 4);
            assert!(streams.is_sorted(), "{cut:?}");
            assert_eq!((streams[0], streams[99]), (0, 3), "{cut:?}");
        }
        let halves = lives.cut(Cut::Writes, 2);
        assert_eq!((halves[49], halves[50]), (0, 1));
    }
}
