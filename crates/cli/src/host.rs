//! The samplers of this process: one beside a run, one between runs for whoever shows it.
//!
//! Never two at once, so that looking at the host costs the same however many look.

mod beside;
mod recording;
mod series;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use saiga_sampler::{Config, Sampler, Sink, Snapshot};

pub(crate) use beside::BesideRuns;
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
            Watching::Nothing | Watching::Impossible => None,
        }
    }

    /// From now on the run is in the phase `name`.
    pub(crate) fn mark(&self, name: &str) {
        if let Watching::Run(sampler) = &*self.watching() {
            sampler.mark(name);
        }
    }
}
