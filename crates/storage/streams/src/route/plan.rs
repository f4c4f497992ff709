//! The plan for a drive with FDP that is cut into one namespace for each class: commands, to be read before they are run.
//!
//! Nothing here touches a drive. nvme-cli's options: `nvme help create-ns`, `nvme help fdp`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Controller;
use crate::hint::Hint;
use crate::rules::Rules;

/// Files that should share reclaim units with nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// The patterns of its rules.
    pub patterns: Vec<String>,
    /// What its files take now.
    pub bytes: u64,
}

/// The classes that rules make: by `stream` where it is given, else by hint. `bytes` has what each rule's files take.
#[must_use]
pub fn classes(rules: &Rules, bytes: &BTreeMap<usize, u64>) -> Vec<Class> {
    let mut classes: Vec<Class> = Vec::new();
    for (number, rule) in rules.rules.iter().enumerate() {
        if rule.hint == Hint::NotSet {
            continue;
        }
        let name = rule.stream.clone().unwrap_or_else(|| rule.hint.to_string());
        let at = classes.iter().position(|class| class.name == name);
        let at = at.unwrap_or_else(|| {
            classes.push(Class {
                name,
                patterns: Vec::new(),
                bytes: 0,
            });
            classes.len() - 1
        });
        if let Some(class) = classes.get_mut(at) {
            class.patterns.push(rule.pattern.to_string());
            class.bytes += bytes.get(&number).copied().unwrap_or(0);
        }
    }
    classes
}

const GIB: u64 = 1 << 30;
const BLOCK: u64 = 4096;

/// The commands that make one namespace for each class on the drive of a controller, which is its
/// only one. New namespaces are called as `disk` is, the one that is there now.
#[must_use]
pub fn plan(controller: &Controller, disk: &str, classes: &[Class]) -> String {
    let Controller {
        name: controller,
        id,
    } = controller;
    let mut out = String::new();
    let disks = disk.rsplit_once('n').map_or(disk, |(before, _)| before);
    let device = format!("/dev/{controller}");
    let count = classes.len();
    let _ = write!(
        out,
        "# One namespace of {device} for each of {count} classes, each with a reclaim unit handle of its own.\n\
         # EVERYTHING ON {device} IS LOST. Nothing below has been run. Read it, change the sizes, run it line by line.\n\n\
         # 1. The drive must have FDP (CTRATT bit 19), namespace management, and {count} handles (NRUH) or more.\n\
         nvme id-ctrl {device} --human-readable\n\
         nvme fdp configs {device} --endgrp-id=1 --human-readable\n\n\
         # 2. FDP is switched on while there is no namespace.\n\
         nvme delete-ns {device} --namespace-id=0xffffffff\n\
         nvme fdp feature {device} --endgrp-id=1 --enable-conf-idx=0\n\n\
         # 3. One namespace for each class; sizes are twice what its files take now, 1 GiB at least, in blocks of {BLOCK}.\n"
    );
    for (at, class) in classes.iter().enumerate() {
        let bytes = class.bytes.saturating_mul(2).max(GIB).next_multiple_of(GIB);
        let (blocks, number) = (bytes / BLOCK, at + 1);
        let _ = write!(
            out,
            "# {}: {} GiB for {}\n\
             nvme create-ns {device} --nsze={blocks} --ncap={blocks} --block-size={BLOCK} --endg-id=1 --nphndls=1 --phndls={at}\n\
             nvme attach-ns {device} --namespace-id={number} --controllers={id}\n",
            class.name,
            bytes / GIB,
            class.patterns.join(" ")
        );
    }
    let _ = write!(
        out,
        "nvme ns-rescan {device}\n\n\
         # 4. A file system on each, mounted where its files are; the database's own options or links put them there.\n"
    );
    for (at, class) in classes.iter().enumerate() {
        let (number, name) = (at + 1, &class.name);
        let _ = write!(
            out,
            "mkfs.xfs -L {name} /dev/{disks}n{number}\n\
             mkdir -p /mnt/{name} && mount -o discard /dev/{disks}n{number} /mnt/{name}\n"
        );
    }
    let _ = write!(
        out,
        "\n# 5. Proof under load: each handle's remaining media writes (RUAMW) go down with its own class only.\n"
    );
    for at in 0..count {
        let _ = writeln!(
            out,
            "nvme fdp status /dev/{disks}n{} --human-readable",
            at + 1
        );
    }
    out
}
