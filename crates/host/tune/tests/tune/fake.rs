//! A host and a store that fail when told to, and that count what is done to them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use saiga_topology::machine::Machine;
use saiga_tune::goal::Goal;
use saiga_tune::host::Host;
use saiga_tune::identity::Identity;
use saiga_tune::knobs;
use saiga_tune::persist::binding;
use saiga_tune::plan::{Plan, plan};
use saiga_tune::readings::Readings;
use saiga_tune::store::Store;
use saiga_tune::target::{Aspect, NicSetting, Target};

use crate::kernel::{Values, errno, write_file};

/// What happens at an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It fails without effect.
    Error,
    /// It has its effect and reports an error.
    LateError,
    /// The process ends before it.
    Kill,
    /// The process ends after it; a line that is appended is torn.
    LateKill,
}

/// The operations of a host and its store, counted together.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    count: Cell<usize>,
    fault: Cell<Option<(usize, Fault)>>,
    is_dead: Cell<bool>,
}

/// Whether an operation has its effect, and whether it reports success.
struct Turn {
    is_made: bool,
    succeeds: bool,
}

impl Operations {
    pub(crate) fn count(&self) -> usize {
        self.count.get()
    }

    pub(crate) fn set_fault(&self, at: usize, fault: Fault) {
        self.fault.set(Some((at, fault)));
    }

    /// A new process, with no fault.
    pub(crate) fn restart(&self) {
        self.count.set(0);
        self.fault.set(None);
        self.is_dead.set(false);
    }

    fn turn(&self) -> Turn {
        let at = self.count.get();
        self.count.set(at + 1);
        if self.is_dead.get() {
            return Turn {
                is_made: false,
                succeeds: false,
            };
        }
        let fault = self.fault.get().filter(|(fault_at, _)| *fault_at == at);
        let Some((_, fault)) = fault else {
            return Turn {
                is_made: true,
                succeeds: true,
            };
        };
        self.is_dead
            .set(matches!(fault, Fault::Kill | Fault::LateKill));
        let is_made = matches!(fault, Fault::LateError | Fault::LateKill);
        Turn {
            is_made,
            succeeds: false,
        }
    }

    /// An operation that is made in full or not at all.
    fn run<T>(&self, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let turn = self.turn();
        let result = if turn.is_made {
            act()
        } else {
            Err(errno(libc::EIO))
        };
        // Not EIO, which means a managed interrupt.
        if turn.succeeds {
            result
        } else {
            Err(errno(libc::ENOMEM))
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Fake {
    pub(crate) values: Values,
    pub(crate) operations: Rc<Operations>,
    pub(crate) boot: String,
    pub(crate) managed: BTreeSet<u32>,
    /// Errors of writes, by the text of the target.
    pub(crate) refusals: BTreeMap<String, i32>,
    /// Values that another program changes after each write of ours.
    pub(crate) restless: BTreeSet<String>,
    /// Seconds since the boot, and by how many each write advances them.
    pub(crate) uptime_s: u64,
    pub(crate) seconds_per_write: u64,
    /// Whether drivers free the interrupts of queues that they remove.
    pub(crate) frees_irqs: bool,
    nic_irqs: BTreeMap<String, Vec<u32>>,
    cpus: u32,
}

impl Fake {
    /// A host with the usual values of a distribution.
    pub(crate) fn of(machine: &Machine) -> Self {
        let mut fake = Self {
            values: BTreeMap::new(),
            operations: Rc::default(),
            boot: "first".to_owned(),
            managed: BTreeSet::new(),
            refusals: BTreeMap::new(),
            restless: BTreeSet::new(),
            uptime_s: 1000,
            seconds_per_write: 0,
            frees_irqs: false,
            nic_irqs: BTreeMap::new(),
            cpus: u32::try_from(machine.cpus.len()).unwrap(),
        };
        for knob in knobs::registry() {
            for place in knob.places(machine) {
                for target in std::iter::once(&place.target).chain(&place.coupled) {
                    if let Some(text) = default(target, fake.cpus) {
                        fake.values.insert(target.to_string(), text);
                    }
                }
            }
        }
        for nic in &machine.nics {
            fake.nic_irqs.insert(nic.name.clone(), nic.irqs.clone());
        }
        for irq in &machine.irqs {
            if irq.actions[0].starts_with("nvme") {
                fake.managed.insert(irq.number);
            }
        }
        fake.values
            .insert("/proc/1/comm".to_owned(), "systemd\n".to_owned());
        fake
    }

    /// Gives a host the values of a distribution with the machine's kernel.
    pub(crate) fn distribution(&mut self, machine: &Machine) {
        let system = &machine.system;
        let kernel = system.kernel.as_str();
        let is_old = ["2.6", "3.", "4."]
            .iter()
            .any(|old| kernel.starts_with(old));
        let is_virtual = system.virtualisation.is_some();
        for (key, text) in &mut self.values {
            if key.ends_with("sched/features") && !kernel.contains(".oe") {
                "PLACE_LAG UTIL_EST\n".clone_into(text);
            } else if key.starts_with("rx-gro ") {
                "on".clone_into(text);
            } else if key.ends_with("/somaxconn") {
                if is_old { "128\n" } else { "4096\n" }.clone_into(text);
            } else if key.ends_with("/tcp_tw_reuse") && is_old {
                "0\n".clone_into(text);
            }
        }
        self.values.retain(|key, _| {
            let is_governor = is_virtual && key.contains("/cpufreq/");
            let is_balancing = key.ends_with("/numa_balancing") && machine.nodes.len() == 1;
            !is_governor && !is_balancing
        });
        // These drivers choose the CPUs of their transmit queues.
        let own = ["i40e", "ice", "ixgbe", "mlx5_core"];
        for nic in &machine.nics {
            if !own.contains(&nic.driver.as_deref().unwrap_or_default()) {
                self.set_senders(&nic.name, "0\n");
            }
        }
        self.start("irqbalance");
        for disk in &machine.disks {
            let text = match disk.scheduler.as_deref() {
                Some("none") => "[none] mq-deadline kyber bfq \n",
                Some("cfq") => "noop deadline [cfq] \n",
                _ => continue,
            };
            self.set(&format!("/sys/block/{}/queue/scheduler", disk.name), text);
        }
    }

    /// Sets the CPUs that send on each transmit queue of a device.
    pub(crate) fn set_senders(&mut self, nic: &str, mask: &str) {
        let start = format!("/sys/class/net/{nic}/queues/tx-");
        for (key, text) in &mut self.values {
            if key.starts_with(&start) && key.ends_with("/xps_cpus") {
                mask.clone_into(text);
            }
        }
    }

    /// The same host, not yet touched and without a fault.
    pub(crate) fn fresh(&self) -> Self {
        Self {
            operations: Rc::default(),
            ..self.clone()
        }
    }

    pub(crate) fn raw(&self, key: &str) -> &str {
        &self.values[key]
    }

    pub(crate) fn set(&mut self, key: &str, text: &str) {
        self.values.insert(key.to_owned(), text.to_owned());
    }

    /// Adds a process.
    pub(crate) fn start(&mut self, name: &str) {
        let pid = 100 + self.values.len();
        self.set(&format!("/proc/{pid}/comm"), &format!("{name}\n"));
    }

    pub(crate) fn plan(&self, machine: &Machine, goal: &Goal) -> Plan {
        let mut readings = self.readings(machine);
        readings.add(self, binding::targets(goal.bindings.keys()));
        plan(machine, &readings, goal).unwrap()
    }

    pub(crate) fn readings(&self, machine: &Machine) -> Readings {
        Readings::read(self, machine, BTreeSet::new()).unwrap()
    }

    /// Values that end with the boot get those of a fresh boot; then `sysctl.d` is applied. Returns
    /// the files that it sets.
    pub(crate) fn reboot(&mut self, fresh: &Self) -> Vec<String> {
        "second".clone_into(&mut self.boot);
        self.uptime_s = 10;
        self.values
            .retain(|key, _| key.starts_with("/etc/") || key.ends_with(" at boot"));
        for (key, text) in &fresh.values {
            self.values
                .entry(key.clone())
                .or_insert_with(|| text.clone());
        }
        let file = self.values.get("/etc/sysctl.d/99-zz-saiga.conf").cloned();
        let mut set = Vec::new();
        for line in file.unwrap_or_default().lines() {
            if let Some((key, value)) = line.split_once(" = ") {
                let path = format!("/proc/sys/{}", key.replace('.', "/"));
                write_file(&mut self.values, &path, value).unwrap();
                set.push(path);
            }
        }
        set
    }

    fn write_nic(&mut self, nic: &str, setting: &NicSetting, text: &str) -> io::Result<()> {
        let key = Target::Nic {
            nic: nic.to_owned(),
            setting: setting.clone(),
        }
        .to_string();
        let old = self
            .values
            .get(&key)
            .ok_or_else(|| errno(libc::EOPNOTSUPP))?
            .clone();
        if old.ends_with("[fixed]") {
            return Err(errno(libc::EOPNOTSUPP));
        }
        let value = match old.split_once(" max ") {
            None => text.to_owned(),
            Some((_, max)) => {
                let asked: u32 = text.parse().map_err(|_| errno(libc::EINVAL))?;
                if asked > max.parse::<u32>().unwrap() {
                    return Err(errno(libc::EINVAL));
                }
                format!("{asked} max {max}")
            }
        };
        self.values.insert(key, value);
        if *setting == NicSetting::CombinedQueues {
            self.reset_queues(nic, text.parse().unwrap());
        }
        Ok(())
    }

    /// What a driver does after a change of the queue count.
    fn reset_queues(&mut self, nic: &str, queues: u32) {
        let all = format!("0-{}\n", self.cpus - 1);
        let irqs = self.nic_irqs.get(nic).cloned().unwrap_or_default();
        for (at, irq) in (0..).zip(irqs) {
            let key = format!("/proc/irq/{irq}/smp_affinity_list");
            if self.frees_irqs && at >= queues {
                self.values.remove(&key);
            } else {
                self.values.insert(key, all.clone());
            }
        }
        for (key, text) in &mut self.values {
            if key.starts_with(&format!("/sys/class/net/{nic}/queues/")) && key.ends_with("_cpus") {
                "0\n".clone_into(text);
            }
        }
        let table: Vec<String> = (0..8).map(|at| (at % queues).to_string()).collect();
        self.values
            .insert(format!("indirection table of {nic}"), table.join(" "));
    }

    fn write_own_file(&mut self, path: &str, text: Option<&str>) {
        let unit = path.strip_prefix("/etc/systemd/system/");
        match text {
            Some(text) => {
                self.values.insert(path.to_owned(), text.to_owned());
                if let Some(unit) = unit {
                    let key = format!("start of {unit} at boot");
                    self.values
                        .entry(key)
                        .or_insert_with(|| "disabled".to_owned());
                }
            }
            None => {
                self.values.remove(path);
                if let Some(unit) = unit {
                    self.values.remove(&format!("start of {unit} at boot"));
                }
            }
        }
    }
}

/// The value of a target on a host that nobody has tuned.
fn default(target: &Target, cpus: u32) -> Option<String> {
    Some(match target {
        Target::OwnFile { .. } => return None,
        Target::Service {
            aspect: Aspect::Active,
            ..
        } => "active".to_owned(),
        Target::Service {
            aspect: Aspect::Enabled,
            ..
        } => "enabled".to_owned(),
        Target::Nic { setting, .. } => match setting {
            NicSetting::CombinedQueues => "4 max 64".to_owned(),
            NicSetting::RxQueues | NicSetting::TxQueues => return None,
            NicSetting::Feature(name) if name == "rx-lro" => "off [fixed]".to_owned(),
            NicSetting::Feature(name) if name == "rx-gro" => "off".to_owned(),
            NicSetting::Feature(_) => "on".to_owned(),
            NicSetting::RxMicroseconds | NicSetting::TxMicroseconds => "8".to_owned(),
            NicSetting::AdaptiveRx | NicSetting::AdaptiveTx => "off".to_owned(),
            NicSetting::RxRing | NicSetting::TxRing => "1024 max 4096".to_owned(),
            NicSetting::Rss => "0 1 2 3 0 1 2 3".to_owned(),
        },
        Target::File { path, .. } => file(path, cpus)?,
    })
}

fn policy(path: &str) -> u32 {
    let digits = path.chars().filter(char::is_ascii_digit);
    digits.collect::<String>().parse().unwrap()
}

fn file(path: &str, cpus: u32) -> Option<String> {
    let name = path.rsplit('/').next().unwrap();
    let text = match name {
        "sched_features" => return None,
        "features" => "PLACE_LAG NO_STEAL UTIL_EST",
        "swappiness" => "60",
        "numa_balancing" | "sched_autogroup_enabled" | "rq_affinity" => "1",
        // Four CPUs share a policy.
        "scaling_governor" if !policy(path).is_multiple_of(4) => return None,
        "scaling_governor" => "schedutil",
        "current_governor" => "menu",
        "dirty_ratio" => "20",
        "dirty_background_ratio" => "10",
        "scheduler" => "none [mq-deadline] kyber bfq ",
        // Not what the scheduler would choose.
        "nr_requests" => "300",
        "wbt_lat_usec" => "1900",
        "read_ahead_kb" => "128",
        "enabled" => "[always] madvise never",
        "defrag" if path.contains("khugepaged") => "1",
        "defrag" => "always defer defer+madvise [madvise] never",
        "ip_local_port_range" => "32768\t60999",
        "ip_local_reserved_ports" => "",
        "tcp_tw_reuse" => "2",
        "tcp_rmem" | "tcp_wmem" => "4096\t131072\t6291456",
        "sem" => "32000\t1024000000\t500\t32000",
        "somaxconn" | "tcp_max_syn_backlog" | "netdev_max_backlog" => "1000",
        "aio-max-nr" => "65536",
        "default_qdisc" => "fq_codel",
        "smp_affinity_list" => return Some(format!("0-{}\n", cpus - 1)),
        "default_smp_affinity" | "cpumask" => "f",
        "rmem_max" | "wmem_max" => "212992",
        "mtu" => "1500",
        "xps_cpus" => "3",
        _ => "0",
    };
    Some(format!("{text}\n"))
}

impl Host for Fake {
    fn read(&self, target: &Target) -> io::Result<Option<String>> {
        let key = target.to_string();
        self.operations.run(|| Ok(self.values.get(&key).cloned()))
    }

    fn write(&mut self, target: &Target, text: Option<&str>) -> io::Result<()> {
        let operations = self.operations.clone();
        self.uptime_s += self.seconds_per_write;
        operations.run(|| {
            let key = target.to_string();
            if let Some(error) = self.refusals.get(&key) {
                return Err(errno(*error));
            }
            if target.irq().is_some_and(|irq| self.managed.contains(&irq)) {
                return Err(errno(libc::EIO));
            }
            match target {
                Target::File { path, .. } => write_file(&mut self.values, path, text.unwrap())?,
                Target::OwnFile { path } => self.write_own_file(path, text),
                Target::Service { .. } => {
                    let text = text.unwrap().to_owned();
                    *self
                        .values
                        .get_mut(&key)
                        .ok_or_else(|| errno(libc::ENOENT))? = text;
                }
                Target::Nic { nic, setting } => self.write_nic(nic, setting, text.unwrap())?,
            }
            if self.restless.contains(&key) {
                self.set(&key, "77\n");
            }
            Ok(())
        })
    }

    fn fact(&self, path: &str) -> io::Result<Option<String>> {
        self.operations.run(|| Ok(self.values.get(path).cloned()))
    }

    fn names(&self, dir: &str) -> io::Result<Vec<String>> {
        let start = format!("{dir}/");
        let names = self
            .values
            .keys()
            .filter_map(|key| key.strip_prefix(&start)?.split('/').next());
        let names: BTreeSet<String> = names.map(str::to_owned).collect();
        self.operations.run(|| Ok(names.into_iter().collect()))
    }

    fn boot_id(&self) -> io::Result<String> {
        self.operations.run(|| Ok(self.boot.clone()))
    }

    fn uptime(&self) -> Duration {
        Duration::from_secs(self.uptime_s)
    }
}

/// Journals in memory.
#[derive(Debug)]
pub(crate) struct Journals {
    pub(crate) texts: RefCell<BTreeMap<String, String>>,
    operations: Rc<Operations>,
    /// Whether no line can be appended.
    pub(crate) is_full: bool,
}

impl Journals {
    pub(crate) fn beside(fake: &Fake) -> Self {
        Self {
            texts: RefCell::default(),
            operations: fake.operations.clone(),
            is_full: false,
        }
    }
}

impl Store for Journals {
    fn ids(&self) -> io::Result<Vec<String>> {
        self.operations
            .run(|| Ok(self.texts.borrow().keys().cloned().collect()))
    }

    fn read(&self, id: &str) -> io::Result<String> {
        let absent = || io::Error::from(io::ErrorKind::NotFound);
        self.operations
            .run(|| self.texts.borrow().get(id).cloned().ok_or_else(absent))
    }

    fn create(&mut self, id: &str, _: u64) -> io::Result<()> {
        self.operations.run(|| {
            self.texts.borrow_mut().insert(id.to_owned(), String::new());
            Ok(())
        })
    }

    fn append(&mut self, id: &str, line: &str) -> io::Result<()> {
        if self.is_full {
            return Err(errno(libc::ENOSPC));
        }
        let turn = self.operations.turn();
        let mut texts = self.texts.borrow_mut();
        let text = texts.get_mut(id).unwrap();
        if turn.is_made {
            // As the directory does, a torn line is replaced.
            text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
            text.push_str(line);
            if turn.succeeds {
                text.push('\n');
            } else {
                text.truncate(text.len() - line.len() / 2);
            }
        }
        if turn.succeeds {
            Ok(())
        } else {
            Err(errno(libc::ENOSPC))
        }
    }
}

/// The values in which two hosts differ.
pub(crate) fn differences(found: &Values, expected: &Values) -> Vec<String> {
    let keys: BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
    let differs = keys
        .into_iter()
        .filter(|key| found.get(*key) != expected.get(*key));
    differs
        .map(|key| format!("{key}: {:?}, not {:?}", found.get(key), expected.get(key)))
        .collect()
}

/// What `apply` gets of the machine.
pub(crate) fn identity(machine: &Machine) -> Identity {
    Identity::of(machine)
}
