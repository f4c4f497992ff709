//! The samplers of this process: one during a run, one between runs for the dashboard.
//!
//! Only one runs at a time, so that the cost of sampling does not depend on the number of users.

mod beside;
mod recording;
mod series;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use saiga_sampler::{Config, Sampler, Sink, Snapshot};

pub(crate) use beside::{BesideRuns, device};
pub(crate) use recording::{Recording, Seen};

/// The current sampler of the host.
#[derive(Debug, Default)]
pub(crate) struct Host {
    watching: Mutex<Watching>,
}

#[derive(Debug, Default)]
enum Watching {
    #[default]
    Nothing,
    /// For the panel only: without process groups, without a file.
    Between(Sampler),
    Run(Sampler),
    /// The load samples the host in its own process.
    Elsewhere,
    /// Sampling failed; the reason was reported at the run that needed it.
    Impossible,
}

impl Host {
    fn watching(&self) -> MutexGuard<'_, Watching> {
        self.watching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest row that has rates. Starts a sampler between runs.
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

    /// The newest row of the run that is sampled here, if any.
    pub(crate) fn of_run(&self) -> Option<Arc<Snapshot>> {
        match &*self.watching() {
            Watching::Run(sampler) => Some(sampler.latest()).filter(|snapshot| snapshot.row > 0),
            Watching::Nothing
            | Watching::Between(_)
            | Watching::Elsewhere
            | Watching::Impossible => None,
        }
    }

    /// Stops sampling here until [`look_again`](Self::look_again), because the load samples the
    /// host.
    pub(crate) fn stand_back(&self) {
        *self.watching() = Watching::Elsewhere;
    }

    /// Allows sampling here again.
    pub(crate) fn look_again(&self) {
        let mut watching = self.watching();
        if matches!(*watching, Watching::Elsewhere) {
            *watching = Watching::Nothing;
        }
    }

    /// Marks the following rows with the phase `name`.
    pub(crate) fn mark(&self, name: &str) {
        if let Watching::Run(sampler) = &*self.watching() {
            sampler.mark(name);
        }
    }
}
