//! Options that `saiga streams simulate` and `saiga streams suggest` share: the device, and how a
//! recorded trace is replayed on it.

use std::num::NonZeroU32;

use saiga_ftl::Policy;

/// The default maximum of simulations to search for streams.
const SIMULATIONS: u32 = 300;

/// The simulated device.
#[derive(Debug, clap::Args)]
pub(super) struct DeviceOptions {
    /// Spare space as a share of the logical pages; for a trace several values, such as 0.07,0.28
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0.07",
        value_delimiter = ','
    )]
    pub(super) op: Vec<f64>,
    /// Which unit is collected: greedy, fifo, cost-benefit, or choice:D for the best of D random
    /// units; for a trace several values
    #[arg(long, value_name = "POLICY", default_value = "greedy", value_parser = policy, value_delimiter = ',')]
    pub(super) policy: Vec<Policy>,
    /// Seed of the random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
}

/// The names of all options in [`TraceOptions`]. (With clap's group of that name, an error would
/// list all of them instead of the option that is there.)
pub(super) const TRACE: [&str; 4] = ["page_bytes", "handles", "no_trim", "simulations"];

/// The replay of a recorded trace.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options for a trace")]
pub(super) struct TraceOptions {
    /// Size of a page in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 4096)]
    pub(super) page_bytes: u64,
    /// Number of streams that the device keeps apart; all further ones share the first
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(super) handles: usize,
    /// Ignore discards; otherwise both cases are simulated if the trace has discards
    #[arg(long)]
    pub(super) no_trim: bool,
    /// Maximum number of simulations to search for streams; with 0, they follow from lifetimes only
    #[arg(long, value_name = "N", default_value_t = SIMULATIONS)]
    pub(super) simulations: u32,
}

fn policy(text: &str) -> Result<Policy, String> {
    let samples = |text: &str| {
        let number = text.parse().ok();
        number.filter(|number: &NonZeroU32| number.get() <= 10_000)
    };
    let found = match text.split_once(':') {
        None if text == "greedy" => Some(Policy::Greedy),
        None if text == "fifo" => Some(Policy::Fifo),
        None if text == "cost-benefit" => Some(Policy::CostBenefit),
        Some(("choice", text)) => samples(text).map(Policy::Choice),
        _ => None,
    };
    let message = "give greedy, fifo, cost-benefit, or choice:D with D from 1 to 10000";
    found.ok_or_else(|| message.to_owned())
}
