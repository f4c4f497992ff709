//! The samplers of this process: one beside a run, one between runs for whoever shows it.
//!
//! Never two at once, so that looking at the host costs the same however many look.

mod beside;
mod recording;
mod series;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use saiga_sampler::{Config, Sampler, Sink, Snapshot};

pub(crate) use beside::{BesideRuns, device};
pub(crate) use recording::{Recording, Seen};

/// What watches the host at this moment.
#[derive(Debug, Default)]
pub(crate) struct Host {
    watching: Mutex<Watching>,
}

#[derive(Debug, Default)]
enum Watching {
    #[default]
    Nothing,
    /// For the panel alone: no groups, no file.
    Between(Sampler),
    Run(Sampler),
    /// The load does, which is another process.
    Elsewhere,
    /// Nobody can: the reason was said where a run wanted it.
    Impossible,
}

impl Host {
    fn watching(&self) -> MutexGuard<'_, Watching> {
        self.watching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest row that has rates; between runs it begins to look by itself.
    pub(crate) fn latest(&self) -> Option<Arc<Snapshot>> {
        let mut watching = self.watching();
        if matches!(*watching, Watching::Nothing) {
            let sampler = Sampler::start(Config::default(), &Sink::default());
            *watching = sampler.map_or(Watching::Impossible, Watching::Between);
        }
        match &*watching {
            Watching::Between(sampler) | Watching::Run(sampler) => {
                Some(sampler.latest()).filter(|snapshot| snapshot.row > 0)
            }
            Watching::Nothing | Watching::Elsewhere | Watching::Impossible => None,
        }
    }

    /// The newest row of the run that is watched here, if one is.
    pub(crate) fn of_run(&self) -> Option<Arc<Snapshot>> {
        match &*self.watching() {
            Watching::Run(sampler) => Some(sampler.latest()).filter(|snapshot| snapshot.row > 0),
            Watching::Nothing
            | Watching::Between(_)
            | Watching::Elsewhere
            | Watching::Impossible => None,
        }
    }

    /// The load looks itself, until [`look_again`](Self::look_again).
    pub(crate) fn stand_back(&self) {
        *self.watching() = Watching::Elsewhere;
    }

    /// It has ended.
    pub(crate) fn look_again(&self) {
        let mut watching = self.watching();
        if matches!(*watching, Watching::Elsewhere) {
            *watching = Watching::Nothing;
        }
    }

    /// From now on the run is in the phase `name`.
    pub(crate) fn mark(&self, name: &str) {
        if let Watching::Run(sampler) = &*self.watching() {
            sampler.mark(name);
        }
    }
}
