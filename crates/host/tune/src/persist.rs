//! Files that make values hold after the next boot: `sysctl.d`, a udev rule, a systemd unit.
//!
//! Each begins with a mark, and only files with this mark are replaced or removed. If an earlier
//! plan wrote one, its lines stay unless the new plan sets the same value.

pub mod binding;
pub(crate) mod grub;
mod lines;

use std::collections::BTreeSet;

use crate::about::{Risk, Stage};
use crate::host::Host;
use crate::knob::Context;
use crate::own_text::{MARK, is_ours};
use crate::plan::Left;
use crate::readings::Reading;
use crate::step::Step;
use crate::target::{Aspect, NicSetting, Target};
use lines::{is_plain, shell};

pub(crate) use lines::is_possible;

const SYSCTL: &str = "/etc/sysctl.d/99-zz-saiga.conf";
const UDEV: &str = "/etc/udev/rules.d/99-zz-saiga.rules";
const UNIT: &str = "/etc/systemd/system/saiga-tune.service";
const UNIT_NAME: &str = "saiga-tune.service";

const UNIT_HEAD: &str = "[Unit]\n\
    Description=Values of the kernel and of network devices set by saiga tune\n\
    After=network.target\n\
    Before=mysqld.service mysql.service mariadb.service postgresql.service redis.service \
    redis-server.service\n\n\
    [Service]\nType=oneshot\nRemainAfterExit=yes\n";
const UNIT_TAIL: &str = "\n[Install]\nWantedBy=multi-user.target\n";

/// Everything that the stage [`Stage::Persist`] may write.
pub(crate) fn targets() -> impl Iterator<Item = Target> {
    let file = |path: &str| Target::OwnFile {
        path: path.to_owned(),
    };
    [file(SYSCTL), file(UDEV), file(UNIT), enabled()].into_iter()
}

fn enabled() -> Target {
    Target::Service {
        unit: UNIT_NAME.to_owned(),
        aspect: Aspect::Enabled,
    }
}

/// Adds the steps that write files: drop-ins of services and of GRUB and, if the plan is to hold
/// after the next boot, the files for `lasting`: `steps`, and values that hold already.
pub(crate) fn add(
    context: &Context,
    lasting: &[Step],
    steps: &mut Vec<Step>,
    left: &mut Vec<Left>,
) {
    if context.goal.is_persistent {
        add_boot(context, lasting, steps, left);
    }
    binding::add(context, steps, left);
    grub::add(context, steps, left);
}

fn add_boot(context: &Context, lasting: &[Step], steps: &mut Vec<Step>, left: &mut Vec<Left>) {
    let (mut sysctl, mut udev, mut unit) = (Vec::new(), Vec::new(), Vec::new());
    for step in lasting {
        match line(context, step) {
            Some((File::Sysctl, text)) => sysctl.push(text),
            Some((File::Udev, text)) => udev.push(text),
            Some((File::Unit, text)) => unit.push(text),
            None if step.stage == Stage::Services => {}
            None => left.push(Left {
                name: step.name(),
                reason: "is lost at the next boot".to_owned(),
            }),
        }
    }
    let has_systemd = context.readings.processes.contains("systemd");
    if !unit.is_empty() && !has_systemd {
        left.push(Left {
            name: UNIT_NAME.to_owned(),
            reason: "systemd does not run: values below /sys hold until the next boot only"
                .to_owned(),
        });
        unit.clear();
    }
    let has_unit = !unit.is_empty();
    for (path, lines, head, tail) in [
        (SYSCTL, sysctl, "", ""),
        (UDEV, udev, "", ""),
        (UNIT, unit, UNIT_HEAD, UNIT_TAIL),
    ] {
        if !lines.is_empty() {
            match own_file(context, path, &lines, head, tail) {
                Ok(step) => steps.extend(step),
                Err(reason) => left.push(Left {
                    name: path.to_owned(),
                    reason,
                }),
            }
        }
    }
    let was = context.readings.raw(&enabled());
    if has_unit && was.is_none_or(|was| was.trim() != "enabled") {
        let was = was.map(str::to_owned);
        steps.push(step(enabled(), was, "enabled".to_owned(), Vec::new()));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum File {
    Sysctl,
    Udev,
    Unit,
}

/// The line that repeats a step at boot. Names with characters that a shell or systemd expands get
/// none.
fn line(context: &Context, step: &Step) -> Option<(File, String)> {
    let now = step.now.as_str();
    if !is_plain(now) || !is_plain(&step.target.to_string()) {
        return None;
    }
    match &step.target {
        Target::File { path, .. } => {
            if let Some(key) = path.strip_prefix("/proc/sys/") {
                return Some((File::Sysctl, format!("{} = {now}", key.replace('/', "."))));
            }
            if let Some((disk, attribute)) = disk(path) {
                return Some((File::Udev, lines::rule(disk, attribute, now)));
            }
            if let Some(irq) = step.target.irq() {
                return Some((File::Unit, irq_line(context, irq, now)?));
            }
            Some((File::Unit, shell(&format!("echo {now} >{path}"))))
        }
        Target::Nic { nic, setting } => {
            let words = match setting {
                NicSetting::CombinedQueues => format!("-L {nic} combined {now}"),
                NicSetting::RxQueues => format!("-L {nic} rx {now}"),
                NicSetting::TxQueues => format!("-L {nic} tx {now}"),
                NicSetting::Feature(name) => format!("-K {nic} {name} {now}"),
                NicSetting::RxMicroseconds => format!("-C {nic} rx-usecs {now}"),
                NicSetting::TxMicroseconds => format!("-C {nic} tx-usecs {now}"),
                NicSetting::AdaptiveRx => format!("-C {nic} adaptive-rx {now}"),
                NicSetting::AdaptiveTx => format!("-C {nic} adaptive-tx {now}"),
                NicSetting::RxRing => format!("-G {nic} rx {now}"),
                NicSetting::TxRing => format!("-G {nic} tx {now}"),
                NicSetting::Rss => return None,
            };
            Some((File::Unit, shell(&format!("ethtool {words}"))))
        }
        Target::Service { .. } | Target::OwnFile { .. } => None,
    }
}

/// The disk and the attribute of `/sys/block/DISK/ATTRIBUTE`.
fn disk(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("/sys/block/")?.split_once('/')
}

/// Finds the interrupt by device and position: its number may differ after a boot.
fn irq_line(context: &Context, irq: u32, now: &str) -> Option<String> {
    let mut nics = context.machine.nics.iter();
    let nic = nics.find(|nic| nic.irqs.contains(&irq))?;
    let at = nic.irqs.iter().position(|other| *other == irq)?;
    is_plain(&nic.name).then(|| lines::interrupt(&nic.name, at + 1, now))
}

/// Whether the unit that one of these steps wrote sets the affinity of this interrupt at boot. The
/// number at a position of a device may differ after a boot.
pub(crate) fn sets_at_boot(steps: &[Step], host: &dyn Host, irq: u32) -> bool {
    placed(steps).any(|(nic, position)| irq_at(host, nic, position) == Some(irq))
}

/// Whether the unit that one of these steps wrote sets the affinity of an interrupt at boot.
pub(crate) fn places_interrupts(steps: &[Step]) -> bool {
    placed(steps).next().is_some()
}

/// Devices and positions of the interrupts in the text of the unit.
fn placed(steps: &[Step]) -> impl Iterator<Item = (&str, usize)> {
    let is_unit = |step: &&Step| matches!(&step.target, Target::OwnFile { path } if path == UNIT);
    let units = steps.iter().filter(is_unit);
    units
        .flat_map(|step| step.now.lines())
        .filter_map(lines::parse_interrupt)
}

/// The number that the line of the unit finds.
fn irq_at(host: &dyn Host, nic: &str, position: usize) -> Option<u32> {
    let device = format!("/sys/class/net/{nic}/device");
    let names = |dir: String| host.names(&dir).unwrap_or_default();
    let irqs: BTreeSet<u32> = names(format!("{device}/msi_irqs"))
        .into_iter()
        .chain(names(format!("{device}/../msi_irqs")))
        .filter_map(|name| name.parse().ok())
        .collect();
    irqs.into_iter().nth(position.checked_sub(1)?)
}

/// The step that writes a whole file, unless it has this text.
fn own_file(
    context: &Context,
    path: &str,
    lines: &[String],
    head: &str,
    tail: &str,
) -> Result<Option<Step>, String> {
    let target = Target::OwnFile {
        path: path.to_owned(),
    };
    let was = match context.readings.values.get(&target) {
        Some(Reading::Raw(raw)) if is_ours(raw) => Some(raw.clone()),
        Some(Reading::Raw(_)) => {
            return Err("the existing file was not written by Saiga".to_owned());
        }
        Some(Reading::Unreadable(error)) => return Err(format!("cannot be read: {error}")),
        Some(Reading::Missing) | None => None,
    };
    let old: Vec<&str> = was.iter().flat_map(|was| was.lines()).collect();
    let body: String = merged(&old, lines)
        .into_iter()
        .flat_map(|line| [line, "\n"])
        .collect();
    let text = format!("{MARK}\n{head}{body}{tail}");
    if was.as_deref() == Some(text.as_str()) {
        return Ok(None);
    }
    if !is_possible(&target, &text) {
        return Err("it has lines that no plan wrote: move them to another file".to_owned());
    }
    // The state of a unit begins and ends with its file.
    let coupled = if path == UNIT {
        vec![enabled()]
    } else {
        Vec::new()
    };
    Ok(Some(step(target, was, text, coupled)))
}

/// The settings of an old file and the new ones. A new one takes the place of the old one for the
/// same value, so that the same settings give the same text. A number of queues comes first,
/// because it resets affinities.
fn merged<'a>(old: &[&'a str], new: &'a [String]) -> Vec<&'a str> {
    let new_for = |old: &str| new.iter().find(|line| key(line) == key(old));
    let old = old.iter().filter(|line| is_setting(line));
    let mut merged: Vec<&str> = old
        .map(|old| new_for(old).map_or(*old, String::as_str))
        .collect();
    for line in new {
        if !merged.contains(&line.as_str()) {
            merged.push(line);
        }
    }
    merged.sort_by_key(|line| !line.contains("ethtool -L "));
    merged
}

fn is_setting(line: &str) -> bool {
    let is_unit_line = ["ExecStart=", "ACTION=="]
        .iter()
        .any(|start| line.starts_with(start));
    is_unit_line || line.contains(" = ")
}

/// The line without its value.
fn key(line: &str) -> &str {
    // An interrupt: device and position are in the command that finds its number.
    if let Some((device, _)) = line.split_once("; echo ") {
        return device;
    }
    if let Some((_, path)) = line.rsplit_once(" >") {
        return path;
    }
    let end = [" = ", "}=\""].iter().find_map(|sign| line.find(sign));
    let end = end.or_else(|| line.rfind(' '));
    line.get(..end.unwrap_or(line.len())).unwrap_or(line)
}

fn step(target: Target, was: Option<String>, now: String, coupled: Vec<Target>) -> Step {
    Step {
        knob: "persist".to_owned(),
        instance: None,
        stage: Stage::Persist,
        risk: Risk::Safe,
        was,
        now,
        why: "Values below /proc and /sys end with the boot.".to_owned(),
        effect: "the values of this plan after the next boot".to_owned(),
        target,
        coupled,
    }
}
