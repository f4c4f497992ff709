//! Concludes from evidence how files are written, and the class of their lifetime.
//!
//! The limits are absolute (docs/ftl.md): rings and pages rewritten more than ten times an hour are
//! short, files that are appended to and deleted whole medium, 0.01 to 10 rewrites an hour long,
//! and fewer extreme.

use saiga_document::number;
use saiga_streams::Hint;

use super::{Age, Evidence};
use crate::format;

/// A page with more rewrites per hour is short; with fewer than [`SELDOM_PER_H`], extreme.
const OFTEN_PER_H: f64 = 10.0;
const SELDOM_PER_H: f64 = 0.01;
/// The time between rewrites at the rate [`OFTEN_PER_H`].
const SHORT_S: f64 = 3600.0 / OFTEN_PER_H;
/// Least shares of rewrites in turn and of forward requests for a ring. Random rewrites are in turn
/// with a probability of 0.2.
const RING_IN_TURN: f64 = 0.6;
const FORWARD: f64 = 0.5;
/// Most rewrites per page of an appended file, and fewest rewrites per page of a ring.
const APPENDED: f64 = 0.1;
const TURNED: f64 = 0.25;
/// Fewest advancing requests of a log.
const ADVANCES: u64 = 8;
/// Least share of deleted pages for a file that counts as deleted.
const DELETED: f64 = 0.05;
/// With fewer rewrites per page, their rate is uncertain.
const CERTAIN_REWRITES: f64 = 1.0;
/// The upper bound of the expected number of events if none was observed (95 %, Poisson).
const UNSEEN: f64 = 3.0;

/// The pattern of writes to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// From the first page to the last, and again.
    Ring,
    /// At the end.
    Appended,
    /// Rewrites of pages in any order.
    InPlace,
    /// Each page is written once.
    Once,
}

/// The conclusion about a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Conclusion {
    pub behaviour: Behaviour,
    pub is_deleted: bool,
    /// The class of its lifetime by absolute limits, named after hints. The suggested hint depends
    /// on the rank instead.
    pub hint: Hint,
    /// The other possible class, if the trace is too short to be certain.
    pub or: Option<Hint>,
    /// Mean rewrites of a page in the observed time.
    pub rewrites_per_page: f64,
    /// Mean rewrites of a page per hour.
    pub rewrites_per_h: f64,
}

/// Concludes from the evidence of `seen_s` seconds.
#[must_use]
pub fn conclude(evidence: &Evidence, seen_s: f64) -> Conclusion {
    // At least a second: rates of a shorter time would be extreme.
    let hours = seen_s.max(1.0) / 3600.0;
    let pages = evidence.pages.max(1) as f64;
    let is_log = evidence.advances >= ADVANCES;
    // Without advances, writes at the tip are rewrites, not a log whose last page fills.
    let tip = if is_log { 0 } else { evidence.at_tip };
    let rewrites_per_page = (evidence.rewritten + tip) as f64 / pages;
    let is_forward = share(evidence.forward, evidence.requests) >= FORWARD;
    let is_in_turn = share(evidence.in_turn, evidence.judged) >= RING_IN_TURN;
    let is_deleted = share(evidence.deleted, evidence.lifetimes.count()) >= DELETED;
    let behaviour = if is_forward && is_in_turn && rewrites_per_page >= TURNED {
        Behaviour::Ring
    } else if is_forward && is_log && rewrites_per_page <= APPENDED {
        Behaviour::Appended
    } else if rewrites_per_page > 0.0 {
        Behaviour::InPlace
    } else {
        Behaviour::Once
    };
    let rewrites_per_h = rewrites_per_page / hours;
    let (hint, or) = match behaviour {
        Behaviour::Ring => (Hint::Short, None),
        Behaviour::InPlace => in_place(rewrites_per_page, rewrites_per_h),
        Behaviour::Appended | Behaviour::Once if is_deleted => deleted(evidence),
        Behaviour::Appended => (Hint::Medium, Some(Hint::Extreme)),
        Behaviour::Once => {
            let is_certain = UNSEEN / (pages * hours) < SELDOM_PER_H && hours >= 1.0;
            (Hint::Extreme, (!is_certain).then_some(Hint::Long))
        }
    };
    Conclusion {
        behaviour,
        is_deleted,
        hint,
        or,
        rewrites_per_page,
        rewrites_per_h,
    }
}

fn in_place(rewrites_per_page: f64, rewrites_per_h: f64) -> (Hint, Option<Hint>) {
    let is_certain = rewrites_per_page >= CERTAIN_REWRITES;
    let (hint, or) = if rewrites_per_h > OFTEN_PER_H {
        (Hint::Short, Hint::Long)
    } else if rewrites_per_h >= SELDOM_PER_H {
        (Hint::Long, Hint::Extreme)
    } else {
        (Hint::Extreme, Hint::Long)
    };
    (hint, (!is_certain).then_some(or))
}

/// Returns the class of files that are deleted whole: short if they are deleted soon.
fn deleted(evidence: &Evidence) -> (Hint, Option<Hint>) {
    match evidence.lifetimes.quantile(0.5) {
        Some(Age::Known(seconds)) if seconds < SHORT_S => (Hint::Short, None),
        Some(Age::MoreThan(seconds)) if seconds < SHORT_S => (Hint::Medium, Some(Hint::Short)),
        _ => (Hint::Medium, None),
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

impl Conclusion {
    /// Describes the behaviour in a few words.
    #[must_use]
    pub fn description(&self) -> &'static str {
        match (self.behaviour, self.is_deleted) {
            (Behaviour::Ring, _) => "a ring",
            (Behaviour::Appended, true) => "appended, deleted whole",
            (Behaviour::Appended, false) => "appended",
            (Behaviour::InPlace, _) => "in place",
            (Behaviour::Once, true) => "written once, deleted",
            (Behaviour::Once, false) => "written once",
        }
    }

    /// Describes the uncertainty: `seen 0.30 rewrites per page in 10 min 00 s: the life may be long
    /// or extreme`. `None` if the class is certain.
    #[must_use]
    pub fn doubt(&self, seen_s: f64) -> Option<String> {
        let or = self.or?;
        let observed = match self.behaviour {
            Behaviour::Appended | Behaviour::Once => "no end of half of its pages".to_owned(),
            Behaviour::Ring | Behaviour::InPlace => {
                format!(
                    "{} rewrites per page",
                    number::two_figures(self.rewrites_per_page)
                )
            }
        };
        let [one, other] = if self.hint < or {
            [self.hint, or]
        } else {
            [or, self.hint]
        };
        Some(format!(
            "seen {observed} in {}: the life may be {one} or {other}",
            format::length(seen_s)
        ))
    }

    /// Summarises the evidence in a sentence.
    #[must_use]
    pub fn why(&self, evidence: &Evidence, files: usize, seen_s: f64) -> String {
        let lives = &evidence.lifetimes;
        let age = |share| lives.quantile(share).map_or("-".to_owned(), format::age);
        let mut text = format!(
            "{}: {} written in {}, {} files; pages live {} in the median (quartiles {} and {})",
            self.description(),
            number::bytes(evidence.written_bytes),
            format::length(seen_s),
            files,
            age(0.5),
            age(0.25),
            age(0.75),
        );
        if self.behaviour == Behaviour::InPlace {
            let rate = number::two_figures(self.rewrites_per_h);
            text.push_str(&format!(", {rate} rewrites of a page in an hour"));
        }
        if let Some(doubt) = self.doubt(seen_s) {
            text.push_str(&format!("; {doubt}"));
        }
        if files == 1 {
            text = text.replace(", 1 files;", ", 1 file;");
        }
        text
    }
}
