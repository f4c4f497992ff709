//! The host while the load runs, for the curves beside its figures.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use saiga_experiment::file::HostMetrics;
use saiga_experiment::result::Detail;
use saiga_experiment::result::detail;
use saiga_sampler::series::{Bucket, Series};
use saiga_sampler::{Config, Device, Group, Sampler, Sink, StartError};

use crate::record::{Times, unix_s};

/// Points of a curve.
const POINTS: NonZeroUsize = NonZeroUsize::new(120).unwrap();
/// What everybody wants to see.
const COLUMNS: [&str; 6] = [
    "cpu_user_percent",
    "cpu_system_percent",
    "cpu_iowait_percent",
    "steal_percent",
    "server_cpu_percent",
    "client_cpu_percent",
];

/// A sampler at work.
pub(crate) struct Watch {
    sampler: Sampler,
    /// When its times begin, in seconds since 1970.
    began_s: f64,
    file: PathBuf,
    devices: Vec<String>,
}

impl Watch {
    /// Begins; the servers are `pids`, and rows go to a file in `dir`.
    pub(crate) fn start(
        metrics: &HostMetrics,
        pids: &[u32],
        dir: &Path,
    ) -> Result<Self, StartError> {
        let file = dir.join("host.csv");
        let server = Group {
            name: "server".to_owned(),
            pids: pids.to_vec(),
        };
        let config = Config {
            groups: vec![server, Group::named("client")],
            devices: metrics.devices.iter().map(|name| device(name)).collect(),
            ..Config::default()
        };
        let sink = Sink {
            series: Some(file.clone()),
            ..Sink::default()
        };
        Ok(Self {
            began_s: unix_s(SystemTime::now()),
            sampler: Sampler::start(config, &sink)?,
            file,
            devices: metrics.devices.clone(),
        })
    }

    /// The load is this process.
    pub(crate) fn client(&self, pid: u32) {
        // Such a group there is: it was named at the start.
        let _known = self.sampler.set_group("client", &[pid]);
    }

    /// Ends, and adds the curves to `detail`; a file that cannot be read adds none. Where the load says
    /// when it ran, times count from its start, and what lies outside of it is left out.
    pub(crate) fn stop(self, detail: &mut Detail, load: Option<&Times>) {
        let Self {
            sampler,
            began_s,
            file,
            devices,
        } = self;
        let _summary = sampler.stop();
        let of_device = |name: &str| {
            let belongs = |device: &String| {
                ["disk", "net"]
                    .iter()
                    .any(|kind| name.starts_with(&format!("{kind}_{device}_")))
            };
            devices.iter().any(belongs)
        };
        let wanted = |name: &str| COLUMNS.contains(&name) || of_device(name);
        let Ok(series) = Series::read_columns(&file, wanted) else {
            return;
        };
        let few = series.downsample(POINTS);
        let shown = match load {
            None => 0.0..f64::MAX,
            // The last whole second may end a little later.
            Some(load) => load.start_s - began_s..load.measured.end - began_s + 1.0,
        };
        let is_shown = |at_s: &&f64| shown.contains(*at_s);
        let skipped = few
            .times_s
            .iter()
            .take_while(|at_s| !is_shown(at_s))
            .count();
        let times = few.times_s.iter().skip(skipped).take_while(is_shown);
        let times_s: Vec<f64> = times.map(|at_s| at_s - shown.start).collect();
        for (name, column) in few.names.iter().zip(&few.columns) {
            let values = |of: fn(&Bucket) -> f64| {
                column
                    .iter()
                    .skip(skipped)
                    .take(times_s.len())
                    .map(|bucket| bucket.as_ref().map(of))
                    .collect()
            };
            detail.series.push(detail::Series {
                name: name.clone(),
                at_s: times_s.clone(),
                mean: values(|bucket| bucket.mean),
                low: values(|bucket| bucket.min),
                high: values(|bucket| bucket.max),
            });
        }
    }
}

fn device(name: &str) -> Device {
    if Path::new("/sys/class/net").join(name).exists() {
        Device::Network(name.to_owned())
    } else {
        Device::Disk(name.to_owned())
    }
}
