//! A drop-in of GRUB with parameters of the kernel, where `grub-mkconfig` reads drop-ins.
//!
//! Debian's `grub-mkconfig` reads `/etc/default/grub.d`; that of Fedora, RHEL and openEuler does
//! not, and the plan shows the `grubby` command instead. Only parameters that the user names are
//! set. Deliberately absent: a run of `update-grub`, which also takes what others changed in
//! `/etc/default/grub` since its last run. The file and the undo say when it has to be run.

use std::collections::BTreeMap;

use crate::about::{Risk, Stage};
use crate::goal::Named;
use crate::knob::{Context, Domain};
use crate::own_text::{MARK, is_ours};
use crate::plan::Left;
use crate::readings::Reading;
use crate::step::Step;
use crate::target::Target;

const FILE: &str = "/etc/default/grub.d/90-saiga.cfg";
const HINT: &str = "# It takes effect with the first restart after update-grub.";
const START: &str = "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX ";
/// What undo adds.
pub(crate) const UNDONE: &str = "run update-grub: until then, the kernel is started as before";
/// The script that makes the configuration of GRUB, and what it reads if it knows drop-ins.
pub(crate) const MKCONFIG: &str = "/usr/sbin/grub-mkconfig";
pub(crate) const DROP_INS: &str = "/default/grub.d/";

/// The start of the names by which users set parameters: `boot.transparent_hugepage=never`.
const PREFIX: &str = "boot.";
const PARAMETERS: [(&str, Domain); 5] = [
    ("hugepages", Domain::Number(0, 1 << 30)),
    ("numa_balancing", Domain::Words(&["enable", "disable"])),
    ("nvme.poll_queues", Domain::Number(0, 1024)),
    ("sched_steal_node_limit", Domain::Number(0, 1024)),
    (
        "transparent_hugepage",
        Domain::Words(&["always", "madvise", "never"]),
    ),
];

pub(crate) fn target() -> Target {
    let path = FILE.to_owned();
    Target::OwnFile { path }
}

/// The values that a parameter may have, if `knob` is the name of one.
pub(crate) fn domain(knob: &str) -> Option<Domain> {
    let name = knob.strip_prefix(PREFIX)?;
    let mut known = PARAMETERS.iter();
    known.find_map(|(known, domain)| (*known == name).then_some(*domain))
}

/// Adds the step that writes the file. The values of the names were checked.
pub(super) fn add(context: &Context, steps: &mut Vec<Step>, left: &mut Vec<Left>) {
    let parameter = |named: &Named| {
        domain(&named.knob)?;
        let name = named.knob.strip_prefix(PREFIX)?;
        Some((name.to_owned(), named.value.clone()))
    };
    let named: BTreeMap<String, String> = context.goal.named.iter().filter_map(parameter).collect();
    if named.is_empty() {
        return;
    }
    match step(context, &named) {
        Ok(step) => steps.extend(step),
        Err(reason) => left.push(Left {
            name: named
                .keys()
                .map(|name| format!("{PREFIX}{name}"))
                .collect::<Vec<_>>()
                .join(", "),
            reason,
        }),
    }
}

fn step(context: &Context, named: &BTreeMap<String, String>) -> Result<Option<Step>, String> {
    if context.is_container() {
        return Err("this is a container: the kernel belongs to its host".to_owned());
    }
    check_pages(context, named)?;
    if !context.readings.has_grub_drop_ins {
        return Err(format!(
            "GRUB reads no drop-ins here: run grubby --update-kernel=ALL --args=\"{}\" and restart; \
             --remove-args takes them away",
            words(named)
        ));
    }
    let was = match context.readings.values.get(&target()) {
        Some(Reading::Raw(raw)) if is_ours(raw) => Some(raw.clone()),
        Some(Reading::Raw(_)) => return Err(format!("{FILE} was not made by Saiga")),
        Some(Reading::Unreadable(error)) => return Err(format!("{FILE} cannot be read: {error}")),
        Some(Reading::Missing) | None => None,
    };
    let mut all = match &was {
        Some(was) => parse(was).ok_or_else(|| format!("{FILE} has lines that no plan wrote"))?,
        None => BTreeMap::new(),
    };
    all.extend(named.clone());
    let now = text(&all);
    if was.as_deref() == Some(now.as_str()) {
        return Ok(None);
    }
    Ok(Some(Step {
        knob: "boot".to_owned(),
        instance: None,
        stage: Stage::Persist,
        risk: Risk::Reboot,
        was,
        now,
        why: "The kernel reads these parameters only when it starts.".to_owned(),
        effect: "after update-grub and a restart".to_owned(),
        target: target(),
        coupled: Vec::new(),
    }))
}

/// Whether the memory has room for `hugepages`. They are of the default size, which one table of
/// page addresses, 8 bytes each, maps: 2 MiB with pages of 4 KiB, 512 MiB with pages of 64 KiB
/// (PMD_SIZE in the kernel's arch/arm64/include/asm/pgtable-hwdef.h).
fn check_pages(context: &Context, named: &BTreeMap<String, String>) -> Result<(), String> {
    let system = &context.machine.system;
    let count = named.get("hugepages").and_then(|count| count.parse().ok());
    if system.command_line.contains("default_hugepagesz=") {
        return Ok(());
    }
    let huge_bytes = system.page_bytes.saturating_mul(system.page_bytes / 8);
    let wanted = huge_bytes.saturating_mul(count.unwrap_or(0_u64));
    let memory = context.memory_bytes();
    if wanted <= memory {
        return Ok(());
    }
    Err(format!(
        "a huge page has {} MiB here: hugepages={} would take {} MiB of {} MiB of memory",
        huge_bytes >> 20,
        count.unwrap_or(0),
        wanted >> 20,
        memory >> 20
    ))
}

fn words(parameters: &BTreeMap<String, String>) -> String {
    let words = parameters
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    words.collect::<Vec<_>>().join(" ")
}

fn text(parameters: &BTreeMap<String, String>) -> String {
    format!("{MARK}\n{HINT}\n{START}{}\"\n", words(parameters))
}

/// The parameters in a text made by [`text`].
fn parse(text: &str) -> Option<BTreeMap<String, String>> {
    let line = text.lines().last()?;
    let words = line.strip_prefix(START)?.strip_suffix('"')?;
    let parameters: Option<BTreeMap<String, String>> = words
        .split(' ')
        .map(|word| {
            let (name, value) = word.split_once('=')?;
            let domain = domain(&format!("{PREFIX}{name}"))?;
            domain.check(value).ok()?;
            Some((name.to_owned(), value.to_owned()))
        })
        .collect();
    parameters
}

/// Whether a plan may write this text to this file: a shell reads it as root.
pub(crate) fn is_possible(target: &Target, found: &str) -> bool {
    *target == self::target() && parse(found).is_some_and(|parameters| text(&parameters) == found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_parameters_are_possible() {
        let text = |words: &str| format!("{MARK}\n{HINT}\n{START}{words}\"\n");
        let good = text("numa_balancing=disable transparent_hugepage=never");
        assert!(is_possible(&target(), &good));
        let other = Target::OwnFile {
            path: "/etc/default/grub".to_owned(),
        };
        assert!(!is_possible(&other, &good));
        for words in [
            "",
            "init=/bin/sh",
            "transparent_hugepage=$(reboot)",
            "transparent_hugepage=never\"; reboot; \"",
            "hugepages=4 hugepages=4",
        ] {
            assert!(!is_possible(&target(), &text(words)), "{words}");
        }
        let more = good.replace(HINT, "reboot");
        assert!(!is_possible(&target(), &more));
    }
}
