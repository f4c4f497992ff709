//! The samplers of this process: one during a run, one between runs for the dashboard.
//!
//! Only one runs at a time, so that the cost of sampling does not depend on the number of users.

mod beside;
mod recording;
mod series;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use saiga_sampler::{Config, Sampler, Sink, Snapshot};

pub(crate) use beside::{BesideRuns, device};
pub(crate) use recording::{HostSamples, Recording};

/// The current sampler of the host.
#[derive(Debug, Default)]
pub(crate) struct Host {
    sampler: Mutex<SamplerState>,
}

#[derive(Debug, Default)]
enum SamplerState {
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
    fn sampler_state(&self) -> MutexGuard<'_, SamplerState> {
        self.sampler.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest row that has rates. Starts a sampler between runs.
    pub(crate) fn latest(&self) -> Option<Arc<Snapshot>> {
        let mut watching = self.sampler_state();
        if matches!(*watching, SamplerState::Nothing) {
            let sampler = Sampler::start(Config::default(), &Sink::default());
            *watching = sampler.map_or(SamplerState::Impossible, SamplerState::Between);
        }
        match &*watching {
            SamplerState::Between(sampler) | SamplerState::Run(sampler) => {
                Some(sampler.latest()).filter(|snapshot| snapshot.row > 0)
            }
            SamplerState::Nothing | SamplerState::Elsewhere | SamplerState::Impossible => None,
        }
    }

    /// The newest row of the run that is sampled here, if any.
    pub(crate) fn of_run(&self) -> Option<Arc<Snapshot>> {
        match &*self.sampler_state() {
            SamplerState::Run(sampler) => {
                Some(sampler.latest()).filter(|snapshot| snapshot.row > 0)
            }
            SamplerState::Nothing
            | SamplerState::Between(_)
            | SamplerState::Elsewhere
            | SamplerState::Impossible => None,
        }
    }

    /// Stops sampling here until [`resume`](Self::resume), because the load samples the
    /// host.
    pub(crate) fn pause(&self) {
        *self.sampler_state() = SamplerState::Elsewhere;
    }

    /// Allows sampling here again.
    pub(crate) fn resume(&self) {
        let mut watching = self.sampler_state();
        if matches!(*watching, SamplerState::Elsewhere) {
            *watching = SamplerState::Nothing;
        }
    }

    /// Marks the following rows with the phase `name`.
    pub(crate) fn mark(&self, name: &str) {
        if let SamplerState::Run(sampler) = &*self.sampler_state() {
            sampler.mark(name);
        }
    }
}
