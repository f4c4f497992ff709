//! Interrupts of `/proc/interrupts` and `/proc/irq`.

use crate::machine::Irq;
use crate::read::ReadError;
use crate::source::Source;

const FILE: &str = "/proc/interrupts";
/// Words that the kernel writes before the handlers' names: `edge`, `5-edge`, `Level`.
const TRIGGERS: [&str; 4] = ["edge", "level", "fasteoi", "none"];
/// Files of `/proc/irq/N`; the other names are handlers.
const FILES: [&str; 7] = [
    "affinity_hint",
    "effective_affinity",
    "effective_affinity_list",
    "node",
    "smp_affinity",
    "smp_affinity_list",
    "spurious",
];

/// Every interrupt with a number. A container may see an empty file.
pub(super) fn read(source: &Source) -> Result<Vec<Irq>, ReadError> {
    let text = source.text(FILE)?.unwrap_or_default();
    let mut lines = text.lines();
    let columns = lines
        .next()
        .map_or(0, |header| header.split_whitespace().count());
    let mut irqs = Vec::new();
    for line in lines {
        let Some((number, rest)) = line.split_once(':') else {
            return Err(source.damaged(FILE, line, "an interrupt"));
        };
        if let Ok(number) = number.trim().parse() {
            irqs.push(irq(source, number, rest, columns)?);
        }
    }
    irqs.sort_by_key(|irq| irq.number);
    Ok(irqs)
}

fn irq(source: &Source, number: u32, rest: &str, columns: usize) -> Result<Irq, ReadError> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let counts = words.get(..columns).and_then(|counts| {
        let counts: Result<Vec<u64>, _> = counts.iter().map(|count| count.parse::<u64>()).collect();
        counts.ok()
    });
    let line = format!("{number}:{rest}");
    let counts = counts.ok_or_else(|| source.damaged(FILE, &line, "one number for each CPU"))?;
    let dir = format!("/proc/irq/{number}");
    let mut actions = source.names_that(&dir, |name| !FILES.contains(&name))?;
    if actions.is_empty() {
        actions = handlers(words.get(columns..).unwrap_or_default());
    }
    Ok(Irq {
        number,
        actions,
        affinity: source.list(&format!("{dir}/smp_affinity_list"))?,
        effective: source.list(&format!("{dir}/effective_affinity_list"))?,
        node: source.id(&format!("{dir}/node"))?,
        count: counts
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count)),
    })
}

/// The names after the trigger: `PCI-MSI 524288-edge eth0-rx-0, eth0-tx-0`.
fn handlers(words: &[&str]) -> Vec<String> {
    let is_trigger = |word: &&str| {
        let word = word.rsplit('-').next().unwrap_or(word).to_ascii_lowercase();
        TRIGGERS.contains(&word.as_str())
    };
    let Some(at) = words.iter().position(is_trigger) else {
        return words
            .last()
            .map(|word| (*word).to_owned())
            .into_iter()
            .collect();
    };
    let names = words.get(at + 1..).unwrap_or_default().join(" ");
    let names = names
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_follow_the_trigger() {
        for (line, expected) in [
            ("PCI-MSI 524288-edge eth0-TxRx-0", vec!["eth0-TxRx-0"]),
            (
                "IO-APIC 9-fasteoi acpi, i801 smbus",
                vec!["acpi", "i801 smbus"],
            ),
            ("ITS-PCI-MSIX-0000:7d:00.0 0 Edge hns3-0", vec!["hns3-0"]),
            ("GICv3 27 Level arch_timer", vec!["arch_timer"]),
            ("IO-APIC 5-edge", vec![]),
            ("something else", vec!["else"]),
        ] {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(handlers(&words), expected, "{line}");
        }
    }
}
