//! `dpdk_args`: arguments of DPDK's environment abstraction layer.
//!
//! Source: "EAL parameters" of the DPDK documentation. Devices and memory are translated, what the
//! gateway decides itself is noted, and the rest is handed on.

use std::path::PathBuf;

use super::Note;
use crate::settings::{self, Bytes, Dpdk, InterfaceName, Memory, PciAddress};

/// Options that the gateway decides itself, whether a value follows, and the reason.
const DECIDED: [(&str, bool, &str); 14] = [
    (
        "--proc-type",
        true,
        "the gateway is the only process of DPDK",
    ),
    ("--file-prefix", true, "the gateway has its own prefix"),
    ("--base-virtaddr", true, "no other process maps this memory"),
    (
        "--legacy-mem",
        false,
        "dpdk.memory reserves memory at the start",
    ),
    ("--map-perfect", false, "no other process maps this memory"),
    ("-l", true, "workers.cpus sets the CPUs"),
    ("-c", true, "workers.cpus sets the CPUs"),
    ("-s", true, "workers.cpus sets the CPUs"),
    ("-S", true, "workers.cpus sets the CPUs"),
    ("--lcores", true, "workers.cpus sets the CPUs"),
    ("--main-lcore", true, "workers.cpus sets the CPUs"),
    ("-m", true, "dpdk.memory sets the memory of each node"),
    ("-b", true, "only the device of this file is used"),
    ("--block", true, "only the device of this file is used"),
];

/// The translated arguments.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub(super) dpdk: Dpdk,
    pub(super) pci: Option<PciAddress>,
    pub(super) vdev: Option<String>,
    /// The interface of `--vdev net_af_xdp`.
    pub(super) xdp: Option<InterfaceName>,
    pub(super) notes: Vec<Note>,
}

impl Arguments {
    /// Translates the arguments of a list in this line.
    ///
    /// # Errors
    /// Returns what is wrong with the value of an option.
    pub(super) fn new(words: &[String], line: usize) -> Result<Self, String> {
        let mut arguments = Self::default();
        let mut words = words.iter().map(String::as_str).peekable();
        while let Some(word) = words.next() {
            let (option, joined) = settings::option(word);
            let decided = DECIDED.iter().find(|(known, _, _)| *known == option);
            let takes_value = match decided {
                Some((_, takes_value, _)) => *takes_value,
                None => words.peek().is_some_and(|next| !next.starts_with('-')),
            };
            let following = match joined {
                None if takes_value => words.next(),
                None | Some(_) => None,
            };
            if let Some((_, _, reason)) = decided {
                arguments.note(line, option, reason);
                continue;
            }
            let problem = |what: String| format!("dpdk_args {}: {what}", option.escape_debug());
            let is_ours = arguments.translate(option, joined.or(following), line);
            if is_ours.map_err(problem)? {
                continue;
            }
            for word in [Some(word), following].into_iter().flatten() {
                let word = settings::eal(word).map_err(problem)?;
                arguments.dpdk.eal.push(word);
            }
        }
        Ok(arguments)
    }

    fn note(&mut self, line: usize, option: &str, text: &str) {
        self.notes.push(Note {
            line,
            key: format!("dpdk_args {option}"),
            text: text.to_owned(),
        });
    }

    /// Translates an option; false if the gateway has no key for it.
    fn translate(
        &mut self,
        option: &str,
        value: Option<&str>,
        line: usize,
    ) -> Result<bool, String> {
        let required = || value.ok_or_else(|| "its value is missing".to_owned());
        match option {
            "--socket-mem" | "--numa-mem" => self.dpdk.memory = memory(required()?)?,
            "--no-huge" => self.dpdk.memory = Memory::Ordinary,
            "--huge-dir" => self.dpdk.huge_dir = Some(path(required()?)?),
            "-a" | "-w" | "--allow" | "--pci-whitelist" => self.allow(required()?, line)?,
            "--vdev" => self.device(required()?, line)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Takes the first device; DPDK's options of a device follow its address.
    fn allow(&mut self, value: &str, line: usize) -> Result<(), String> {
        let (address, options) = value.split_once(',').unwrap_or((value, ""));
        if !options.is_empty() {
            let text = "options of the device are left out; dpdk.eal cannot name devices";
            self.note(line, "-a", text);
        }
        let address = address.parse::<PciAddress>();
        let address = address.map_err(|error| error.to_string())?;
        if self.pci.is_some() {
            self.note(line, "-a", "a second card needs a [[device]] of its own");
        } else {
            self.pci = Some(address);
        }
        Ok(())
    }

    fn device(&mut self, value: &str, line: usize) -> Result<(), String> {
        if self.vdev.is_some() || self.xdp.is_some() {
            self.note(
                line,
                "--vdev",
                "a second device needs a [[device]] of its own",
            );
            return Ok(());
        }
        if !value.starts_with("net_af_xdp") {
            self.vdev = Some(settings::vdev(value)?);
            return Ok(());
        }
        let mut options = value.split(',').skip(1);
        let interface = options.find_map(|option| option.strip_prefix("iface="));
        let missing = || "iface= is missing, the name of the interface".to_owned();
        let interface: InterfaceName = interface.ok_or_else(missing)?.parse()?;
        self.xdp = Some(interface);
        if value.split(',').count() > 2 {
            let text = "options other than iface are left out: all queues are served, and \
                        device.copy says whether frames are copied";
            self.note(line, "--vdev", text);
        }
        Ok(())
    }
}

/// Parses `2400,0,0,0`: MiB of each node.
fn memory(text: &str) -> Result<Memory, String> {
    let size = |text: &str| {
        let mib: u32 = text.trim().parse().ok()?;
        Some(Bytes(u64::from(mib) << 20))
    };
    let sizes: Option<Vec<Bytes>> = text.split(',').map(size).collect();
    let sizes = sizes.ok_or_else(|| "write MiB of each node such as \"2048,0,0,0\"".to_owned())?;
    // Zero everywhere means in DPDK that nothing is reserved at the start.
    if sizes.iter().all(|size| size.0 == 0) {
        return Ok(Memory::Needed);
    }
    Ok(Memory::PerNode(sizes))
}

fn path(text: &str) -> Result<PathBuf, String> {
    settings::absolute(settings::plain_text(text)?)
}
