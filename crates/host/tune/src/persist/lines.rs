//! The lines of the files: how they are made, and whether a line may be one of them.

use super::{SYSCTL, UDEV, UNIT, UNIT_HEAD, UNIT_TAIL};
use crate::own_text::MARK;
use crate::plan::known::{is_known, is_known_path};
use crate::target::{NicSetting, Target};

const SHELL: &str = "ExecStart=-/bin/sh -c \"";

/// Characters that neither a shell, systemd nor udev gives a meaning.
pub(super) fn is_plain(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "/._-:+, ".contains(c);
    !text.is_empty() && text.chars().all(is_part)
}

/// A line of the unit. A failure does not stop the others.
pub(super) fn shell(command: &str) -> String {
    format!("{SHELL}{command}\"")
}

pub(super) fn rule(disk: &str, attribute: &str, value: &str) -> String {
    format!(
        "ACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"{disk}\", \
         ATTR{{{attribute}}}=\"{value}\""
    )
}

/// Sets the affinity of the interrupt at a position among those of a device, from 1 on. A device
/// without interrupts of its own, such as a virtio device, has those of the PCI function above it;
/// above a PCI function is a bridge, whose interrupts are not those of the device.
pub(super) fn interrupt(nic: &str, position: usize, cpus: &str) -> String {
    let device = format!("/sys/class/net/{nic}/device");
    shell(&format!(
        "i=$$({{ ls {device}/msi_irqs || ls {device}/../msi_irqs; }} 2>/dev/null \
         | grep -x '[0-9]*' | sort -n | sed -n {position}p); \
         echo {cpus} >/proc/irq/$$i/smp_affinity_list"
    ))
}

/// Whether a plan may write this text to a file: root runs what these files say.
pub(crate) fn is_possible(target: &Target, text: &str) -> bool {
    let Target::OwnFile { path } = target else {
        return matches!(target, Target::Service { .. }) && text == "enabled";
    };
    let (head, tail, is_line): (_, _, fn(&str) -> bool) = match path.as_str() {
        SYSCTL => ("", "", is_sysctl),
        UDEV => ("", "", is_rule),
        UNIT => (UNIT_HEAD, UNIT_TAIL, is_command),
        _ => return false,
    };
    let body = text
        .strip_prefix(MARK)
        .and_then(|text| text.strip_prefix('\n'))
        .and_then(|text| text.strip_prefix(head))
        .and_then(|text| text.strip_suffix(tail));
    body.is_some_and(|body| body.lines().all(is_line))
}

fn is_sysctl(line: &str) -> bool {
    let parts = line.split_once(" = ");
    parts.is_some_and(|(key, value)| {
        let path = format!("/proc/sys/{}", key.replace('.', "/"));
        is_plain(key) && is_plain(value) && is_known_path(&path, value)
    })
}

fn is_rule(line: &str) -> bool {
    let quoted: Vec<&str> = line.split('"').collect();
    let (Some(disk), Some(attribute), Some(value)) = (quoted.get(5), quoted.get(6), quoted.get(7))
    else {
        return false;
    };
    let attribute = attribute.strip_prefix(", ATTR{");
    let attribute = attribute.and_then(|text| text.strip_suffix("}="));
    attribute.is_some_and(|attribute| {
        let are_plain = [*disk, attribute, *value].into_iter().all(is_plain);
        let path = format!("/sys/block/{disk}/{attribute}");
        are_plain && is_known_path(&path, value) && line == rule(disk, attribute, value)
    })
}

fn is_command(line: &str) -> bool {
    let command = line
        .strip_prefix(SHELL)
        .and_then(|rest| rest.strip_suffix('"'));
    let Some(command) = command else { return false };
    if let Some(words) = command.strip_prefix("ethtool ") {
        return is_plain(words) && is_ethtool(words);
    }
    if let Some((value, path)) = command
        .strip_prefix("echo ")
        .and_then(|c| c.split_once(" >"))
    {
        return is_plain(value) && is_plain(path) && is_known_path(path, value);
    }
    is_interrupt(command, line).unwrap_or(false)
}

/// Whether these words of `ethtool` set what a knob may set.
fn is_ethtool(words: &str) -> bool {
    let words: Vec<&str> = words.split(' ').collect();
    let [option, nic, name, value] = words[..] else {
        return false;
    };
    let setting = match (option, name) {
        ("-L", "combined") => NicSetting::CombinedQueues,
        ("-L", "rx") => NicSetting::RxQueues,
        ("-L", "tx") => NicSetting::TxQueues,
        ("-K", name) => NicSetting::Feature(name.to_owned()),
        ("-C", "rx-usecs") => NicSetting::RxMicroseconds,
        ("-C", "tx-usecs") => NicSetting::TxMicroseconds,
        ("-C", "adaptive-rx") => NicSetting::AdaptiveRx,
        ("-C", "adaptive-tx") => NicSetting::AdaptiveTx,
        ("-G", "rx") => NicSetting::RxRing,
        ("-G", "tx") => NicSetting::TxRing,
        _ => return false,
    };
    let nic = nic.to_owned();
    is_known(&Target::Nic { nic, setting }, value)
}

/// Makes the line again from its parts.
fn is_interrupt(command: &str, line: &str) -> Option<bool> {
    let (nic, position) = parse_interrupt(line)?;
    let cpus = between(command, "echo ", " >/proc/irq/")?;
    let is_known = is_known_path("/proc/irq/0/smp_affinity_list", cpus);
    Some(is_plain(nic) && is_known && line == interrupt(nic, position, cpus))
}

/// The device and the position in a line made by [`interrupt`].
pub(super) fn parse_interrupt(line: &str) -> Option<(&str, usize)> {
    let nic = between(line, "/sys/class/net/", "/device")?;
    let position = between(line, "sed -n ", "p)")?.parse().ok()?;
    Some((nic, position))
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let rest = text.split_once(start)?.1;
    Some(rest.split_once(end)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_another_command_is_not_possible() {
        for line in [
            "echo 3 >/sys/class/net/eth0/queues/rx-0/rps_cpus",
            "ethtool -L eth0 combined 16",
        ] {
            assert!(is_command(&shell(line)), "{line}");
        }
        assert!(is_command(&interrupt("eth0", 2, "28-29")));
        for line in [
            "echo 3 >/etc/passwd",
            "echo 3 >/sys/../etc/passwd",
            "echo 3 >/sys/x; reboot",
            "ethtool -L eth0 combined $(reboot)",
            "ethtool -f eth0 firmware.bin",
            "ethtool -L eth0 combined many",
            "echo 0-59 * root /tmp/x >/proc/self/root/etc/cron.d/x",
            "echo 1 >/sys/block/sda/device/delete",
            "reboot",
            "i=$$(ls /sys/class/net/a;reboot/device",
        ] {
            assert!(!is_command(&shell(line)), "{line}");
        }
        assert!(!is_command("ExecStart=/bin/reboot"));
        assert!(is_rule(&rule("nvme0n1", "queue/scheduler", "none")));
        for line in [
            rule("nvme0n1", "device/delete", "1"),
            rule("nvme0n1", "queue/scheduler", "none\", RUN+=\"/bin/sh"),
            rule("nvme0n1", "queue/scheduler", "none") + ", RUN+=\"/bin/sh\"",
            "ACTION==\"add\", RUN+=\"/bin/sh\"".to_owned(),
        ] {
            assert!(!is_rule(&line), "{line}");
        }
        assert!(is_sysctl("vm.swappiness = 1"));
        for line in [
            "kernel.core_pattern = |/bin/sh",
            "kernel.modprobe = /tmp/x",
            "vm.swappiness = 9999",
            "vm/../kernel/modprobe = /tmp/x",
        ] {
            assert!(!is_sysctl(line), "{line}");
        }
        let (path, text) = (UNIT.to_owned(), format!("{MARK}\n{UNIT_HEAD}{UNIT_TAIL}"));
        let unit = Target::OwnFile { path };
        assert!(is_possible(&unit, &text));
        assert!(!is_possible(
            &unit,
            &text.replace("Type=oneshot", "User=nobody")
        ));
    }
}
