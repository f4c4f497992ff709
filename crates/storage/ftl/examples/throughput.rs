//! Measures simulated host page writes per second of CPU time, and memory per page.
//!
//! `cargo run --release -p saiga-ftl --example throughput [PAGES..] [VICTIMS..]`; docs/ftl.md has
//! figures.

use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use saiga_ftl::workload::{Part, Random, Workload as _};
use saiga_ftl::{Config, ConfigError, Device, GcFrontier, Isolation, Policy};

/// Timed host writes, in multiples of the logical size.
const TIMED: u64 = 4;

/// Name, victims, over-provisioning; whether a tenth of the pages gets most writes and is a stream.
const CASES: [(&str, Policy, f64, bool); 6] = [
    ("greedy", Policy::Greedy, 0.07, false),
    ("greedy", Policy::Greedy, 0.28, false),
    ("greedy-pi", Policy::Greedy, 0.28, true),
    ("fifo", Policy::Fifo, 0.28, false),
    (
        "choice",
        Policy::Choice(NonZeroU32::MIN.saturating_add(9)),
        0.28,
        false,
    ),
    ("cost-benefit", Policy::CostBenefit, 0.28, false),
];

fn main() -> ExitCode {
    let (mut sizes, mut names) = (Vec::new(), Vec::new());
    for word in std::env::args().skip(1) {
        match word.parse() {
            Ok(pages) => sizes.push(pages),
            Err(_) if CASES.iter().any(|case| case.0 == word) => names.push(word),
            Err(_) => {
                let known: Vec<&str> = CASES.iter().map(|case| case.0).collect();
                eprintln!(
                    "{word}: name numbers of logical pages, or {}",
                    known.join(", ")
                );
                return ExitCode::from(2);
            }
        }
    }
    if sizes.is_empty() {
        sizes = vec![1 << 18, 1 << 20, 1 << 22, 1 << 24];
    }
    println!(
        "policy        workload   OP    pages     WAF    host pages/s  all pages/s  bytes/page"
    );
    for pages in sizes {
        for (name, policy, over_provisioning, is_hot) in CASES {
            if !names.is_empty() && !names.iter().any(|wanted| wanted == name) {
                continue;
            }
            let config = Config {
                policy,
                gc: GcFrontier::Own,
                ..Config::plain(pages, over_provisioning, 256)
            };
            if let Err(error) = measure(name, config, is_hot) {
                eprintln!("{pages} pages: {error}");
                return ExitCode::from(2);
            }
        }
    }
    ExitCode::SUCCESS
}

fn measure(name: &str, config: Config, is_hot: bool) -> Result<(), ConfigError> {
    let (pages, over_provisioning) = (config.logical_pages, config.over_provisioning);
    let config = if is_hot {
        config.with_streams(2, Isolation::Persistently)
    } else {
        config
    };
    let hot = if is_hot { pages / 10 } else { pages };
    let parts = [(hot, 0.9, 0), (pages - hot, 0.1, 1)].map(|(pages, writes, class)| Part {
        pages,
        writes,
        class,
    });
    let mut workload = Random::new(&parts, 1);
    let mut device = Device::new(config)?;
    workload.fill(&mut device);
    // First to the steady state: the first writes are faster because of erased units.
    workload.advance(&mut device, 2 * u64::from(pages));
    let before = device.counters().clone();
    let start = cpu_time();
    workload.advance(&mut device, TIMED * u64::from(pages));
    let seconds = (cpu_time() - start).as_secs_f64();
    let done = device.counters().since(&before);
    let host = done.host_pages() as f64;
    println!(
        "{name:12}  {:9}  {over_provisioning:.2}  {pages:8}  {:5.3}  {:7.1} M     {:7.1} M    {:6.2}",
        if is_hot { "90/10" } else { "uniform" },
        done.waf().unwrap_or(1.0),
        host / seconds / 1e6,
        (host + done.moved_pages() as f64) / seconds / 1e6,
        device.heap_bytes() as f64 / f64::from(pages),
    );
    Ok(())
}

/// Returns the CPU time of this thread, which other programs do not affect.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
