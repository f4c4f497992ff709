//! A campaign on disk: every finished run, so that a reboot costs one visit.
//!
//! `campaign.jsonl` begins with the plan's identity. Then each calibration and each run is
//! appended and synced before the next one starts. To resume is to go through the same plan
//! again with the recorded answers: every decision (repeats, arms given up, the stop of a
//! sequential experiment) comes out as it did, until the record ends. A visit that it holds only
//! half of is void, and done again as a whole.
//!
//! Deliberately absent: what the runs mean, and any file but this one.

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

/// The file's name in the folder of the results.
pub const FILE: &str = "campaign.jsonl";

/// What to do with a campaign that is already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// Begin anew; refuse to lose an unfinished one.
    Fresh,
    /// Go on with it; begin where there is none.
    Resume,
}

/// Why a campaign cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// Beginning anew would lose what was measured.
    #[error(
        "{} holds an unfinished campaign of {runs} runs; the same command with --resume \
         finishes it, another --out (or removing the file) begins anew", path.display()
    )]
    Unfinished {
        /// The file.
        path: PathBuf,
        /// Runs in it.
        runs: usize,
    },
    /// What is there was measured by another plan.
    #[error(
        "{} is of another plan ({differences}); resume it with the command that began it, or \
         choose another --out", path.display()
    )]
    Different {
        /// The file.
        path: PathBuf,
        /// The first of them, as `name: there, here`.
        differences: String,
    },
    /// Another process writes there.
    #[error("{} is in use by another saiga; wait until it is done, or choose another --out", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Neither a power cut nor this program leaves it so.
    #[error(
        "{} is damaged in line {line}: {reason}; choose another --out, or remove the file to \
         begin anew", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// It cannot be read or written.
    #[error("cannot keep the state of the campaign in {}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// How many operations fill a run of an arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Calibrated {
    pub(crate) load: String,
    pub(crate) arm: String,
    pub(crate) operations: u64,
    /// Why attempts failed, in order.
    pub(crate) failures: Vec<String>,
}

/// A run as it ended, before its visit was judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ran {
    pub(crate) run: Run,
    /// Whether the arm failed, by the reason why the run is rejected.
    pub(crate) failed: bool,
}

/// Settings of servers by name.
type Settings = BTreeMap<String, String>;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Entry {
    Plan(Identity),
    Calibrated(Calibrated),
    Ran(Ran),
    /// What the servers of an arm said of their settings when it first ran.
    Settings {
        arm: String,
        settings: Settings,
    },
    /// What the workload says of itself once hooks have made what they make before the first run.
    Made {
        facts: Value,
    },
    /// What came after the load of the last run ended the experiment, and its visit with so many runs.
    Cut {
        runs: usize,
    },
    /// The last runs are half a visit and do not count.
    Void {
        runs: usize,
    },
    Finished {
        at: String,
    },
}

/// What another process left.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Of the plan.
    pub identity: Identity,
    /// Runs of visits that are done, rejected ones included.
    pub runs: Vec<Run>,
    /// Whether the plan was done.
    pub finished: bool,
}

/// The campaign of a folder, taken before anything is written there; no other process can take it
/// meanwhile. Dropped before it is that of a plan, it leaves what was there.
#[derive(Debug)]
pub struct Claim {
    dir: PathBuf,
    path: PathBuf,
    file: Locked,
    /// What an earlier process left that goes on; `None` when it begins.
    before: Option<Before>,
}

/// What an earlier process left.
#[derive(Debug)]
struct Before {
    identity: Identity,
    steps: Steps,
    /// Bytes of all whole lines.
    length: usize,
    /// Of the last whole line.
    check: u64,
}

/// A campaign that this process works on; no other can meanwhile.
#[derive(Debug)]
pub struct Campaign {
    path: PathBuf,
    file: Locked,
    /// Of the last line.
    check: u64,
    /// Lines that were read, and where the next one to go through stands.
    replay: VecDeque<(usize, Entry)>,
    recorded: Vec<Run>,
    /// What servers said of their settings, by arm.
    settings: BTreeMap<String, Settings>,
    /// What the workload said of itself when this process took the campaign.
    facts: Value,
    /// What it said last of what hooks have made.
    made: Option<Value>,
    finished: bool,
}

/// Reads what is in `dir` and changes nothing; `None` when there is no campaign.
///
/// # Errors
/// [`CampaignError::Damaged`] and [`CampaignError::Io`].
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
    /// Takes the campaign in `dir`, which exists.
    ///
    /// # Errors
    /// [`CampaignError`], but for [`CampaignError::Different`]; nothing is changed then.
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
                    // Nothing is lost.
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
            // Not even the first line was whole.
            _ => None,
        };
        Ok(Self {
            dir: dir.to_owned(),
            path,
            file,
            before,
        })
    }

    /// The file of the campaign, when it goes on with what an earlier process began.
    #[must_use]
    pub fn goes_on(&self) -> Option<&Path> {
        self.before.as_ref().map(|_| self.path.as_path())
    }

    /// It as that of a plan with this identity.
    ///
    /// # Errors
    /// [`CampaignError::Different`], when nothing is changed, and [`CampaignError::Io`].
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
            return Campaign::anew(path.clone(), file, &dir, identity).map_err(io(path));
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
            facts: identity.of_workload().clone(),
            made: steps.made,
            finished: steps.finished,
            file,
        };
        campaign.cut_torn(length).map_err(io(path))?;
        Ok(campaign)
    }
}

impl Campaign {
    /// Takes the campaign in `dir`, which exists, for a plan with this identity.
    ///
    /// # Errors
    /// [`CampaignError`]; nothing is changed then.
    pub fn open(dir: &Path, identity: &Identity, begin: Begin) -> Result<Self, CampaignError> {
        Claim::take(dir, begin)?.of(identity)
    }

    fn anew(path: PathBuf, file: Locked, dir: &Path, identity: &Identity) -> io::Result<Self> {
        let mut made = Self {
            path,
            file,
            check: lines::START,
            replay: VecDeque::new(),
            recorded: Vec::new(),
            settings: BTreeMap::new(),
            facts: identity.of_workload().clone(),
            made: None,
            finished: false,
        };
        made.cut_torn(0)?;
        made.write(&Entry::Plan(identity.clone()))?;
        // The name must survive a power cut as well.
        File::open(dir)?.sync_all()?;
        Ok(made)
    }

    /// A line that was cut off in the middle goes: only `length` bytes stay.
    fn cut_torn(&self, length: usize) -> io::Result<()> {
        let mut file = &self.file.file;
        file.set_len(u64::try_from(length).unwrap_or(u64::MAX))?;
        file.seek(SeekFrom::End(0)).map(drop)
    }

    /// Runs of visits that an earlier process finished.
    #[must_use]
    pub fn recorded(&self) -> &[Run] {
        &self.recorded
    }

    /// Whether the plan was already done when the campaign was taken.
    #[must_use]
    pub fn was_finished(&self) -> bool {
        self.finished
    }

    /// Whether answers still come from the record.
    pub(crate) fn replays(&self) -> bool {
        !self.replay.is_empty()
    }

    /// The recorded calibration, which must be this one; `None` when the record has ended.
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
            Some((line, _)) => Err(self.unexpected(line, &format!("the pace of {arm} in {load}"))),
        }
    }

    /// A visit of this many runs begins: what the record holds of it is void unless it is whole, or
    /// was cut; of a visit that was cut the answer says how many runs it has.
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

    /// The visit ends with its run that was kept last, because that ended the experiment.
    pub(crate) fn cut_visit(&mut self, runs: usize) -> Result<(), CampaignError> {
        self.append(&Entry::Cut { runs })
    }

    /// The recorded run, which must be this one; `None` when the record has ended.
    pub(crate) fn ran(
        &mut self,
        cell: &str,
        arm: &str,
        pair: u32,
    ) -> Result<Option<Ran>, CampaignError> {
        let is_it =
            |run: &Run| (run.cell.as_str(), run.arm.as_str(), run.pair) == (cell, arm, pair);
        match self.replay.pop_front() {
            None => Ok(None),
            Some((_, Entry::Ran(ran))) if is_it(&ran.run) => Ok(Some(ran)),
            Some((line, _)) => {
                let wanted = format!("pair {} of {arm} in {cell}", u64::from(pair) + 1);
                Err(self.unexpected(line, &wanted))
            }
        }
    }

    /// Keeps a calibration.
    pub(crate) fn add_calibrated(&mut self, one: Calibrated) -> Result<(), CampaignError> {
        self.append(&Entry::Calibrated(one))
    }

    /// Keeps a run.
    pub(crate) fn add_run(&mut self, run: &Run, failed: bool) -> Result<(), CampaignError> {
        let run = run.clone();
        self.append(&Entry::Ran(Ran { run, failed }))
    }

    /// What the servers of `arm` said of their settings.
    pub(crate) fn settings(&self, arm: &str) -> Option<&BTreeMap<String, String>> {
        self.settings.get(arm)
    }

    /// Keeps what the servers of an arm say of their settings.
    pub(crate) fn add_settings(&mut self, arm: &str, said: &Settings) -> Result<(), CampaignError> {
        let (arm, settings) = (arm.to_owned(), said.clone());
        self.settings.insert(arm.clone(), settings.clone());
        self.append(&Entry::Settings { arm, settings })
    }

    /// Keeps what the workload says of itself now that hooks have made what they make before the first
    /// run, if they have changed any of it.
    pub(crate) fn keep_facts(
        &mut self,
        now: &BTreeMap<String, Value>,
    ) -> Result<(), CampaignError> {
        let facts = json!(now);
        let is_known = facts == self.facts || self.made.as_ref() == Some(&facts);
        if self.finished || is_known {
            return Ok(());
        }
        self.made = Some(facts.clone());
        self.append(&Entry::Made { facts })
    }

    /// The plan is done: the record holds nothing beyond it.
    pub(crate) fn check_end(&mut self) -> Result<(), CampaignError> {
        match self.replay.front() {
            Some((line, _)) => Err(self.unexpected(*line, "the end of the plan")),
            None => Ok(()),
        }
    }

    /// The plan is done and its result is on the disk: from now on the runs may be written over.
    ///
    /// # Errors
    /// [`CampaignError::Io`].
    pub fn finish(&mut self, at: String) -> Result<(), CampaignError> {
        if self.finished {
            return Ok(());
        }
        self.append(&Entry::Finished { at })?;
        self.finished = true;
        Ok(())
    }

    fn unexpected(&self, line: usize, wanted: &str) -> CampaignError {
        let reason = format!("it is not {wanted}, which the plan has there");
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

/// Lines behind the plan, without those that are void.
#[derive(Debug)]
struct Steps {
    replay: VecDeque<(usize, Entry)>,
    /// They belong to no place in the order.
    settings: BTreeMap<String, Settings>,
    /// Nor does this.
    made: Option<Value>,
    finished: bool,
}

fn steps(entries: Vec<Entry>) -> Result<Steps, Damage> {
    let mut replay: VecDeque<(usize, Entry)> = VecDeque::new();
    let mut settings = BTreeMap::new();
    let mut made = None;
    let mut finished = false;
    for (index, entry) in entries.into_iter().enumerate() {
        // The plan is line 1.
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
                settings: said,
            } => drop(settings.insert(arm, said)),
            Entry::Made { facts } => made = Some(facts),
            Entry::Void { runs } => {
                for _ in 0..runs {
                    let Some((_, Entry::Ran(_))) = replay.pop_back() else {
                        return Err(wrong("it voids more runs than there are"));
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
