//! A campaign on disk: every finished run, so that a reboot loses at most one visit.
//!
//! `campaign.jsonl` begins with the identity of the plan. Each calibration and each run is appended
//! and synced before the next one starts. Resuming executes the same plan with the recorded
//! results: every decision (repeats, arms given up, the end of a sequential experiment) is the same
//! until the record ends. A visit of which only a part is recorded is void and is repeated as a
//! whole.
//!
//! Deliberately absent: conclusions (`analysis`), and any other file.

mod identity;
mod lines;
mod lock;

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::result::Run;

pub use identity::{Identity, contents};
use lines::Damage;
use lock::{Locked, locked};

/// Name of the file in the folder of results.
pub const FILE: &str = "campaign.jsonl";

/// The action if the folder already contains a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// Begins a new campaign; fails if this would lose an unfinished one.
    Fresh,
    /// Resumes the campaign; begins a new one if there is none.
    Resume,
}

/// A campaign cannot be begun or resumed.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// A new campaign would overwrite the runs of an unfinished one.
    #[error(
        "{} holds an unfinished campaign of {runs} runs; use --resume to finish it, or choose \
         another --out (or remove the file) to begin a new one", path.display()
    )]
    Unfinished {
        path: PathBuf,
        /// Number of runs in the file.
        runs: usize,
    },
    /// The runs in the file belong to another plan.
    #[error(
        "{} belongs to another plan ({differences}); resume it with the command that began it, or \
         choose another --out", path.display()
    )]
    Different {
        path: PathBuf,
        /// The first differences, as `name: VALUE there, VALUE here`.
        differences: String,
    },
    /// Another process has locked the file.
    #[error("{} is in use by another saiga; wait until it is done, or choose another --out", path.display())]
    InUse { path: PathBuf },
    /// The file has damage that neither a power failure nor this program causes.
    #[error(
        "{} is damaged in line {line}: {reason}; choose another --out, or remove the file to \
         begin a new campaign", path.display()
    )]
    Damaged {
        path: PathBuf,
        /// Line number from 1.
        line: usize,
        reason: String,
    },
    #[error("cannot keep the state of the campaign in {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

/// The calibrated number of operations of an arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Calibrated {
    pub(crate) load: String,
    pub(crate) arm: String,
    pub(crate) operations: u64,
    /// Reasons of failed attempts, in order.
    pub(crate) failures: Vec<String>,
}

/// A run as it ended, before the engine decided about its visit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ran {
    pub(crate) run: Run,
    /// Whether the run is a failure of the arm; false for runs that were only disturbed.
    pub(crate) failed: bool,
}

type Settings = BTreeMap<String, String>;

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Entry {
    Plan(Identity),
    Calibrated(Calibrated),
    Ran(Ran),
    /// The settings of an arm's servers, from the arm's first run.
    Settings {
        arm: String,
        settings: Settings,
    },
    /// The fingerprint of the workload after the hooks before the first run, if the hooks changed
    /// it.
    Made {
        facts: Value,
    },
    /// A step after the load of the last run ended the experiment; the visit ends with this number
    /// of runs.
    Cut {
        runs: usize,
    },
    /// The last runs are a part of a visit and are void.
    Void {
        runs: usize,
    },
    Finished {
        at: String,
    },
}

/// The contents of a campaign that another process wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    pub identity: Identity,
    /// Recorded runs, including rejected ones.
    pub runs: Vec<Run>,
    /// Whether the plan is complete.
    pub finished: bool,
}

/// The locked campaign of a folder, before its plan is known. If it is dropped before
/// [`of`](Self::of), the file is left unchanged.
#[derive(Debug)]
pub struct Claim {
    dir: PathBuf,
    path: PathBuf,
    file: Locked,
    /// The campaign to resume; `None` for a new campaign.
    before: Option<Before>,
}

/// The state of a campaign to resume.
#[derive(Debug)]
struct Before {
    identity: Identity,
    steps: Steps,
    /// Length of all complete lines in bytes.
    length: usize,
    /// Check value of the last complete line.
    check: u64,
}

/// A campaign that this process has locked and writes to.
#[derive(Debug)]
pub struct Campaign {
    path: PathBuf,
    file: Locked,
    /// Check value of the last line.
    check: u64,
    /// Recorded entries that are not replayed yet, with their line numbers.
    replay: VecDeque<(usize, Entry)>,
    recorded: Vec<Run>,
    /// Recorded settings of servers, by arm.
    settings: BTreeMap<String, Settings>,
    /// The fingerprint of the workload when this process opened the campaign.
    fingerprint: Value,
    /// The last recorded fingerprint after hooks.
    made: Option<Value>,
    finished: bool,
}

/// Reads the campaign in `dir` without locking or changing it; `None` if there is none.
///
/// # Errors
/// Returns [`CampaignError::Damaged`] or [`CampaignError::Io`].
pub fn recorded(dir: &Path) -> Result<Option<Recorded>, CampaignError> {
    let path = dir.join(FILE);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CampaignError::Io { path, error }),
    };
    let contents = lines::read(&bytes).map_err(|damage| damaged(&path, damage))?;
    let mut entries = contents.entries.into_iter();
    let Some(Entry::Plan(identity)) = entries.next() else {
        return Ok(None);
    };
    let steps = steps(entries.collect()).map_err(|damage| damaged(&path, damage))?;
    Ok(Some(Recorded {
        identity,
        runs: runs_of(&steps.replay),
        finished: steps.finished,
    }))
}

impl Claim {
    /// Locks the campaign in `dir`, which must exist.
    ///
    /// # Errors
    /// Returns all errors but [`CampaignError::Different`]; the file is then unchanged.
    pub fn take(dir: &Path, begin: Begin) -> Result<Self, CampaignError> {
        let path = dir.join(FILE);
        let mut file = locked(&path)?;
        let mut bytes = Vec::new();
        if let Err(error) = file.file.read_to_end(&mut bytes) {
            return Err(CampaignError::Io { path, error });
        }
        let contents = lines::read(&bytes).map_err(|damage| damaged(&path, damage))?;
        let mut entries = contents.entries.into_iter();
        let before = match entries.next() {
            Some(Entry::Plan(identity)) => {
                let steps = steps(entries.collect()).map_err(|damage| damaged(&path, damage))?;
                let runs = runs_of(&steps.replay).len();
                match begin {
                    // No run would be lost.
                    Begin::Fresh if steps.finished || runs == 0 => None,
                    Begin::Fresh => return Err(CampaignError::Unfinished { path, runs }),
                    Begin::Resume => Some(Before {
                        identity,
                        steps,
                        length: contents.length,
                        check: contents.check,
                    }),
                }
            }
            // Not even the first line is complete.
            _ => None,
        };
        Ok(Self {
            dir: dir.to_owned(),
            path,
            file,
            before,
        })
    }

    /// The path of the file if the campaign is resumed.
    #[must_use]
    pub fn resumed_file(&self) -> Option<&Path> {
        self.before.as_ref().map(|_| self.path.as_path())
    }

    /// Opens the campaign for a plan with this identity.
    ///
    /// # Errors
    /// Returns [`CampaignError::Different`], with the file unchanged, or [`CampaignError::Io`].
    pub fn of(self, identity: &Identity) -> Result<Campaign, CampaignError> {
        let Self {
            dir,
            path,
            file,
            before,
        } = self;
        let io = |path: PathBuf| move |error| CampaignError::Io { path, error };
        let Some(Before {
            identity: there,
            steps,
            length,
            check,
        }) = before
        else {
            return Campaign::begin(path.clone(), file, &dir, identity).map_err(io(path));
        };
        if let Some(differences) = there.differences(steps.made.as_ref(), identity) {
            return Err(CampaignError::Different { path, differences });
        }
        let campaign = Campaign {
            path: path.clone(),
            check,
            recorded: runs_of(&steps.replay),
            replay: steps.replay,
            settings: steps.settings,
            fingerprint: identity.of_workload().clone(),
            made: steps.made,
            finished: steps.finished,
            file,
        };
        campaign.cut_torn(length).map_err(io(path))?;
        Ok(campaign)
    }
}

impl Campaign {
    /// Locks and opens the campaign in `dir`, which must exist, for a plan with this identity.
    ///
    /// # Errors
    /// On an error the file is unchanged.
    pub fn open(dir: &Path, identity: &Identity, begin: Begin) -> Result<Self, CampaignError> {
        Claim::take(dir, begin)?.of(identity)
    }

    fn begin(path: PathBuf, file: Locked, dir: &Path, identity: &Identity) -> io::Result<Self> {
        let mut made = Self {
            path,
            file,
            check: lines::START,
            replay: VecDeque::new(),
            recorded: Vec::new(),
            settings: BTreeMap::new(),
            fingerprint: identity.of_workload().clone(),
            made: None,
            finished: false,
        };
        made.cut_torn(0)?;
        made.write(&Entry::Plan(identity.clone()))?;
        // The directory entry must survive a power failure as well.
        File::open(dir)?.sync_all()?;
        Ok(made)
    }

    /// Truncates the file to `length` bytes, which removes an incomplete last line.
    fn cut_torn(&self, length: usize) -> io::Result<()> {
        let mut file = &self.file.file;
        file.set_len(u64::try_from(length).unwrap_or(u64::MAX))?;
        file.seek(SeekFrom::End(0)).map(drop)
    }

    /// Runs of visits that earlier processes finished.
    #[must_use]
    pub fn recorded(&self) -> &[Run] {
        &self.recorded
    }

    /// Whether the plan was already complete when the campaign was opened.
    #[must_use]
    pub fn was_finished(&self) -> bool {
        self.finished
    }

    /// Whether results still come from the record.
    pub(crate) fn replays(&self) -> bool {
        !self.replay.is_empty()
    }

    /// The next recorded entry, which must be this calibration; `None` if the record has ended.
    pub(crate) fn calibrated(
        &mut self,
        load: &str,
        arm: &str,
    ) -> Result<Option<Calibrated>, CampaignError> {
        match self.replay.pop_front() {
            None => Ok(None),
            Some((_, Entry::Calibrated(one))) if one.load == load && one.arm == arm => {
                Ok(Some(one))
            }
            Some((line, _)) => {
                Err(self.unexpected(line, &format!("the calibration of {arm} in {load}")))
            }
        }
    }

    /// Begins a visit of `runs` runs. If the record contains only a part of the visit, this part
    /// becomes void. If the visit was cut short by a failure, returns its number of runs.
    pub(crate) fn begin_visit(&mut self, runs: usize) -> Result<Option<usize>, CampaignError> {
        let is_run = |(_, entry): &(usize, Entry)| matches!(entry, Entry::Ran(_));
        let end = self.replay.iter().position(|step| !is_run(step));
        if let Some((_, Entry::Cut { runs: made })) = end.and_then(|end| self.replay.get(end))
            && end == Some(*made)
        {
            let made = *made;
            self.replay.remove(made);
            return Ok(Some(made));
        }
        let left = self.replay.len();
        if left == 0 || left >= runs {
            return Ok(None);
        }
        if let Some((line, _)) = self.replay.iter().find(|step| !is_run(step)) {
            return Err(self.unexpected(*line, "a run"));
        }
        self.replay.clear();
        self.append(&Entry::Void { runs: left })?;
        Ok(None)
    }

    /// Records that the visit ends with its last recorded run, because the experiment ended.
    pub(crate) fn cut_visit(&mut self, runs: usize) -> Result<(), CampaignError> {
        self.append(&Entry::Cut { runs })
    }

    /// The next recorded entry, which must be this run; `None` if the record has ended.
    pub(crate) fn ran(
        &mut self,
        cell: &str,
        arm: &str,
        pair: u32,
    ) -> Result<Option<Ran>, CampaignError> {
        let is_same =
            |run: &Run| (run.cell.as_str(), run.arm.as_str(), run.pair) == (cell, arm, pair);
        match self.replay.pop_front() {
            None => Ok(None),
            Some((_, Entry::Ran(ran))) if is_same(&ran.run) => Ok(Some(ran)),
            Some((line, _)) => {
                let wanted = format!("pair {} of {arm} in {cell}", u64::from(pair) + 1);
                Err(self.unexpected(line, &wanted))
            }
        }
    }

    pub(crate) fn add_calibrated(&mut self, one: Calibrated) -> Result<(), CampaignError> {
        self.append(&Entry::Calibrated(one))
    }

    /// Records a run as it ended; `failed` counts towards giving up its arm.
    pub(crate) fn add_run(&mut self, run: &Run, failed: bool) -> Result<(), CampaignError> {
        let run = run.clone();
        self.append(&Entry::Ran(Ran { run, failed }))
    }

    /// The recorded settings of the servers of `arm`.
    pub(crate) fn settings(&self, arm: &str) -> Option<&BTreeMap<String, String>> {
        self.settings.get(arm)
    }

    /// Records the settings of the servers of `arm`.
    pub(crate) fn add_settings(
        &mut self,
        arm: &str,
        settings: &Settings,
    ) -> Result<(), CampaignError> {
        let (arm, settings) = (arm.to_owned(), settings.clone());
        self.settings.insert(arm.clone(), settings.clone());
        self.append(&Entry::Settings { arm, settings })
    }

    /// Records the fingerprint after the hooks before the first run, if the hooks changed it.
    pub(crate) fn keep_fingerprint(
        &mut self,
        now: &BTreeMap<String, Value>,
    ) -> Result<(), CampaignError> {
        let fingerprint = json!(now);
        let is_known = fingerprint == self.fingerprint || self.made.as_ref() == Some(&fingerprint);
        if self.finished || is_known {
            return Ok(());
        }
        self.made = Some(fingerprint.clone());
        self.append(&Entry::Made { facts: fingerprint })
    }

    /// Checks at the end of the plan that the record has no further entries.
    pub(crate) fn check_end(&mut self) -> Result<(), CampaignError> {
        match self.replay.front() {
            Some((line, _)) => Err(self.unexpected(*line, "the end of the plan")),
            None => Ok(()),
        }
    }

    /// Records that the plan is complete and its result is on disk. A new campaign may overwrite
    /// the runs from then on.
    ///
    /// # Errors
    /// Returns [`CampaignError::Io`].
    pub fn finish(&mut self, at: String) -> Result<(), CampaignError> {
        if self.finished {
            return Ok(());
        }
        self.append(&Entry::Finished { at })?;
        self.finished = true;
        Ok(())
    }

    fn unexpected(&self, line: usize, wanted: &str) -> CampaignError {
        let reason = format!("the plan expects {wanted} here");
        damaged(&self.path, Damage { line, reason })
    }

    fn append(&mut self, entry: &Entry) -> Result<(), CampaignError> {
        self.write(entry).map_err(|error| CampaignError::Io {
            path: self.path.clone(),
            error,
        })
    }

    fn write(&mut self, entry: &Entry) -> io::Result<()> {
        let (line, check) = lines::line(entry, self.check)?;
        self.file.unused = None;
        self.file.file.write_all(line.as_bytes())?;
        self.file.file.sync_data()?;
        self.check = check;
        Ok(())
    }
}

/// The entries after the identity, without void runs.
#[derive(Debug)]
struct Steps {
    replay: VecDeque<(usize, Entry)>,
    /// These have no position in the replay.
    settings: BTreeMap<String, Settings>,
    made: Option<Value>,
    finished: bool,
}

fn steps(entries: Vec<Entry>) -> Result<Steps, Damage> {
    let mut replay: VecDeque<(usize, Entry)> = VecDeque::new();
    let mut settings = BTreeMap::new();
    let mut made = None;
    let mut finished = false;
    for (index, entry) in entries.into_iter().enumerate() {
        // Line 1 is the identity of the plan.
        let line = index + 2;
        let wrong = |reason: &str| Damage {
            line,
            reason: reason.to_owned(),
        };
        if finished {
            return Err(wrong("it follows the end of the campaign"));
        }
        match entry {
            Entry::Plan(_) => return Err(wrong("a second plan")),
            Entry::Finished { .. } => finished = true,
            Entry::Settings {
                arm,
                settings: of_arm,
            } => drop(settings.insert(arm, of_arm)),
            Entry::Made { facts } => made = Some(facts),
            Entry::Void { runs } => {
                for _ in 0..runs {
                    let Some((_, Entry::Ran(_))) = replay.pop_back() else {
                        return Err(wrong("it makes more runs void than were recorded"));
                    };
                }
            }
            step @ (Entry::Ran(_) | Entry::Calibrated(_) | Entry::Cut { .. }) => {
                replay.push_back((line, step))
            }
        }
    }
    Ok(Steps {
        replay,
        settings,
        made,
        finished,
    })
}

fn runs_of(replay: &VecDeque<(usize, Entry)>) -> Vec<Run> {
    let run = |(_, entry): &(usize, Entry)| match entry {
        Entry::Ran(ran) => Some(ran.run.clone()),
        Entry::Plan(_)
        | Entry::Calibrated(_)
        | Entry::Settings { .. }
        | Entry::Made { .. }
        | Entry::Cut { .. }
        | Entry::Void { .. }
        | Entry::Finished { .. } => None,
    };
    replay.iter().filter_map(run).collect()
}

fn damaged(path: &Path, Damage { line, reason }: Damage) -> CampaignError {
    CampaignError::Damaged {
        path: path.to_owned(),
        line,
        reason,
    }
}

#[cfg(test)]
mod tests;
