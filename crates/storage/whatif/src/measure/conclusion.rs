//! From what was seen of files to what they are, and to the class of their lifetime.
//!
//! The limits are of lifetimes in general (docs/ftl.md): rings and what is rewritten more than ten times an hour is short,
//! what is appended and deleted whole medium, from 0.01 to 10 rewrites an hour long, never extreme.

use saiga_document::number;
use saiga_streams::Hint;

use super::{Age, Evidence};
use crate::words;

/// Rewrites of a page in an hour above which it is short, and below which it is extreme.
const OFTEN_PER_H: f64 = 10.0;
const SELDOM_PER_H: f64 = 0.01;
/// A life that is as long as the time between rewrites that are often.
const SHORT_S: f64 = 3600.0 / OFTEN_PER_H;
/// Shares of rewrites that came in turn, and of requests that went on where the one before was, for a ring; by chance
/// rewrites of random pages come in turn with a probability of 0.2.
const RING_IN_TURN: f64 = 0.6;
const FORWARD: f64 = 0.5;
/// Rewrites for each page below which a file is appended to, and above which a ring is one.
const APPENDED: f64 = 0.1;
const TURNED: f64 = 0.25;
/// A log has gone forward so many times.
const ADVANCES: u64 = 8;
/// The share of the pages that must have died for a file of which pages are deleted.
const DELETED: f64 = 0.05;
/// With fewer rewrites for each page in all, their rate is not known.
const TOLD_REWRITES: f64 = 1.0;
/// Of something that was not seen once, there are less than three (with 95 %, Poisson).
const UNSEEN: f64 = 3.0;

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// From its first page to its last, and again.
    Ring,
    /// At its end.
    Appended,
    /// Pages anywhere, again and again.
    InPlace,
    /// Each page once.
    Once,
}

/// What a file is.
#[derive(Debug, Clone, PartialEq)]
pub struct Conclusion {
    /// How it is written.
    pub behaviour: Behaviour,
    /// Whether its data were deleted.
    pub is_deleted: bool,
    /// The class of its lifetime by absolute limits, named after hints. Which hint files get is
    /// decided by rank.
    pub hint: Hint,
    /// The other class that would fit: the trace is too short to tell.
    pub or: Option<Hint>,
    /// Rewrites of a page in the time that was seen, in the mean.
    pub rewrites_per_page: f64,
    /// Rewrites of a page in an hour, in the mean.
    pub rewrites_per_h: f64,
}

/// Concludes from what was seen for so many seconds.
#[must_use]
pub fn conclude(evidence: &Evidence, seen_s: f64) -> Conclusion {
    // Rates of what was seen for less than a second would only amaze.
    let hours = seen_s.max(1.0) / 3600.0;
    let pages = evidence.pages.max(1) as f64;
    let is_log = evidence.advances >= ADVANCES;
    // What does not go forward is not a log whose last page fills: it is rewritten.
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
            let is_told = UNSEEN / (pages * hours) < SELDOM_PER_H && hours >= 1.0;
            (Hint::Extreme, (!is_told).then_some(Hint::Long))
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
    let is_told = rewrites_per_page >= TOLD_REWRITES;
    let (hint, or) = if rewrites_per_h > OFTEN_PER_H {
        (Hint::Short, Hint::Long)
    } else if rewrites_per_h >= SELDOM_PER_H {
        (Hint::Long, Hint::Extreme)
    } else {
        (Hint::Extreme, Hint::Long)
    };
    (hint, (!is_told).then_some(or))
}

/// What is deleted whole: temporary if it goes soon.
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
    /// How it is written, in two or three words.
    #[must_use]
    pub fn words(&self) -> &'static str {
        match (self.behaviour, self.is_deleted) {
            (Behaviour::Ring, _) => "a ring",
            (Behaviour::Appended, true) => "appended, deleted whole",
            (Behaviour::Appended, false) => "appended",
            (Behaviour::InPlace, _) => "in place",
            (Behaviour::Once, true) => "written once, deleted",
            (Behaviour::Once, false) => "written once",
        }
    }

    /// `seen 0.30 rewrites per page in 10 min 00 s: a long or extreme life, not told apart`; `None` when it is certain.
    #[must_use]
    pub fn doubt(&self, seen_s: f64) -> Option<String> {
        let or = self.or?;
        let what = match self.behaviour {
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
            "seen {what} in {}: a {one} or {other} life, not told apart",
            words::length(seen_s)
        ))
    }

    /// All that was seen, in a sentence.
    #[must_use]
    pub fn why(&self, evidence: &Evidence, files: usize, seen_s: f64) -> String {
        let lives = &evidence.lifetimes;
        let age = |share| lives.quantile(share).map_or("-".to_owned(), words::age);
        let mut text = format!(
            "{}: {} written in {}, {} files; pages live {} in the median (quartiles {} and {})",
            self.words(),
            number::bytes(evidence.written_bytes),
            words::length(seen_s),
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
