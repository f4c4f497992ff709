//! Removes what identifies a host or opens it from a recording.
//!
//! Serial numbers and MAC addresses are not read in the first place. What remains is replaced:
//! UUIDs, machine IDs and container IDs, MAC addresses in names, host names and names of volumes;
//! on the kernel's command line also labels, addresses and secrets. Equal identifiers get equal
//! replacements, also in paths, so that a scrubbed tree is read like the original.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::source::{Entry, Recording};

const REMOVED: &str = "removed";
/// UUIDs; MAC addresses of six or more bytes; names of network devices made from MAC addresses;
/// IDs of machines and containers.
static IDENTIFIER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let uuid = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}";
    let mac = r"(?:[0-9a-fA-F]{2}[:-]){5,}[0-9a-fA-F]{2}";
    let name = r"enx[0-9a-f]{12}";
    let id = r"[0-9a-f]{32,}";
    Regex::new(&format!(r"\b(?:{uuid}|{mac}|{name}|{id})\b")).ok()
});
static ADDRESS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\b\d{1,3}(?:\.\d{1,3}){3}\b").ok());
/// Digits and colons that may be an IPv6 address.
static COLONS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"[0-9a-fA-F]*:[0-9a-fA-F]*:[0-9a-fA-F:.]*").ok());
/// Names below these directories contain serial numbers, labels or names of hosts.
static DEVICE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"/dev/(disk/by-[a-z]+|mapper)/\S+").ok());
/// A device in a directory of its own, such as that of a volume group.
static VOLUME: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(^|[\s=:,"])/dev/([^/\s]+)/\S+"#).ok());
/// The label of a file system or partition in the value of an option.
static LABEL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)((?:^|[^a-z])(?:cd|part)?label)=.*").ok());
/// The ID of a file system or partition in the value of an option.
static UUID: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)((?:part)?uuid)=([^\s,:/]+)").ok());
/// A directory that is named after the short ID of a FAT file system.
static SHORT_UUID: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"/[0-9A-F]{4}-[0-9A-F]{4}(/|\s|$)").ok());
/// Names of iSCSI and NVMe targets and initiators.
static STORAGE_NAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(iqn|nqn)\.\d{4}-\d{2}\.[^\s,]+|\b(eui|naa)\.[0-9a-f]{16,32}\b").ok()
});
/// A name of at least three parts, such as `logs.example.com`; the last part has letters only.
static HOST: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)\b[a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+)+\.([a-z]{2,})\b").ok());
/// Last parts of names that are files or units, not hosts.
const FILES: [&str; 8] = [
    "conf", "device", "efi", "img", "mount", "service", "socket", "target",
];
/// Directories below `/dev` whose names identify nothing.
const USUAL_DIRECTORIES: [&str; 10] = [
    "block", "cciss", "cgroup", "cpuset", "disk", "ida", "mapper", "pts", "rd", "shm",
];
/// Parts of the names of options whose values are secret.
const SECRETS: [&str; 7] = ["pass", "pw", "secret", "token", "key", "psk", "credential"];
/// Words in the names of other options that contain a part of [`SECRETS`].
const HARMLESS: [&str; 6] = [
    "passthrough",
    "passthru",
    "bypass",
    "keymap",
    "keyboard",
    "keytable",
];
/// Parts of the names of options whose values contain addresses, hosts, serial numbers, or names
/// and IDs of volumes.
const PLACES: [&str; 24] = [
    "ip",
    "nfsroot",
    "netroot",
    "hostname",
    "nameserver",
    "bootif",
    "ifname",
    "route",
    "iscsi",
    "initiator",
    "lv",
    "vg",
    "label",
    "partlabel",
    "luks",
    "cryptdevice",
    "cryptopts",
    "uuid",
    "zfcp",
    "wwn",
    "wwid",
    "wwpn",
    "serialno",
    "serialnumber",
];
/// Lines of `/proc/PID/status` that are read.
const STATUS: [&str; 2] = ["Cpus_allowed_list:", "Mems_allowed_list:"];
/// `AT_PAGESZ`; the other values of `/proc/PID/auxv` are addresses.
const AT_PAGESZ: [u8; 8] = 6_u64.to_le_bytes();

/// Scrubs all paths and contents. `host` is the name of the host, if it is known.
pub(crate) fn recording(recording: Recording, host: Option<&str>) -> Recording {
    let mut scrubber = Scrubber {
        host: host.and_then(host_name),
        known: BTreeMap::new(),
    };
    let scrubbed = recording.into_iter().map(|(path, entry)| {
        let entry = match entry {
            Entry::File(bytes) => Entry::File(scrubber.file(&path, bytes)),
            Entry::Link(target) => Entry::Link(scrubber.path(&target)),
            Entry::Directory => Entry::Directory,
        };
        (scrubber.path(&path), entry)
    });
    scrubbed.collect()
}

/// A kernel's command line without secrets and identifiers, for pages that are passed on.
pub(crate) fn command_line(text: &str) -> String {
    let mut scrubber = Scrubber {
        host: None,
        known: BTreeMap::new(),
    };
    let text = scrubber.command_line(text);
    scrubber.identifiers(text.trim_end())
}

/// A pattern for the host's name. Very short names are parts of too many other words.
fn host_name(name: &str) -> Option<Regex> {
    let short = name.split('.').next().unwrap_or(name);
    let is_usual = short.len() < 4 || short == "localhost";
    // With its domain.
    let pattern = || {
        let short = regex::escape(short);
        Regex::new(&format!(r"(?i)\b{short}\b(?:\.[a-z0-9-]+)*")).ok()
    };
    if is_usual { None } else { pattern() }
}

struct Scrubber {
    host: Option<Regex>,
    /// Identifiers and their replacements.
    known: BTreeMap<String, String>,
}

impl Scrubber {
    fn path(&mut self, path: &Path) -> PathBuf {
        self.identifiers(&path.to_string_lossy()).into()
    }

    fn file(&mut self, path: &Path, bytes: Vec<u8>) -> Vec<u8> {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy())
            .unwrap_or_default();
        if !path.starts_with("proc") {
            return self
                .identifiers(&String::from_utf8_lossy(&bytes))
                .into_bytes();
        }
        if name == "auxv" {
            let (pairs, _) = bytes.as_chunks::<16>();
            return pairs
                .iter()
                .filter(|pair| pair.starts_with(&AT_PAGESZ))
                .flatten()
                .copied()
                .collect();
        }
        let text = String::from_utf8_lossy(&bytes);
        let text = match name.as_ref() {
            "cmdline" => self.command_line(&text),
            "status" => lines(&text, |line| {
                STATUS.iter().any(|name| line.starts_with(name))
            }),
            "cpuinfo" => lines(&text, |line| !line.starts_with("Serial")),
            "mountinfo" | "mounts" => self.mounts(&text),
            // "Linux version 6.1.0 (builder@host) ..."
            "version" => {
                text.split_whitespace()
                    .take(3)
                    .collect::<Vec<_>>()
                    .join(" ")
                    + "\n"
            }
            _ => text.into_owned(),
        };
        self.identifiers(&text).into_bytes()
    }

    /// Mounts of block devices and cgroups. Others may name servers, shares and passwords.
    fn mounts(&self, text: &str) -> String {
        let text = lines(text, |line| {
            let system = line.split_once(" - ").map_or(line, |(_, system)| system);
            line.contains(" cgroup") || line.contains(" cpuset ") || {
                let mut words = system.split(' ');
                words.any(|word| word.starts_with("/dev/")) && !line.contains("//")
            }
        });
        let text = devices(&text);
        let text = SHORT_UUID.as_ref().map_or(text.clone(), |short| {
            let removed = format!("/{REMOVED}$1");
            short.replace_all(&text, removed).into_owned()
        });
        self.host(&text)
    }

    fn command_line(&self, text: &str) -> String {
        let mut options = Vec::new();
        let mut is_value = false;
        for option in words(text) {
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (option.as_str(), None),
            };
            let is_secret = is_secret(name);
            options.push(match value {
                Some(value) if is_secret || is_place(name) || is_remote(value) => {
                    format!("{name}={REMOVED}")
                }
                // The name of the kernel's file has dots, too.
                Some(value) if name == "BOOT_IMAGE" => option_value(name, value),
                Some(value) => hosts(&option_value(name, value)),
                // The value of "--token abc".
                None if is_value && !option.starts_with('-') => REMOVED.to_owned(),
                None if is_remote(&option) => REMOVED.to_owned(),
                None => option.clone(),
            });
            is_value = value.is_none() && name.starts_with('-') && is_secret;
        }
        let text = ipv6(&devices(&options.join(" ")));
        let text = ADDRESS.as_ref().map_or(text.clone(), |address| {
            address.replace_all(&text, "0.0.0.0").into_owned()
        });
        self.host(&text) + "\n"
    }

    fn host(&self, text: &str) -> String {
        match &self.host {
            Some(host) => host.replace_all(text, "host").into_owned(),
            None => text.to_owned(),
        }
    }

    fn identifiers(&mut self, text: &str) -> String {
        let Some(pattern) = IDENTIFIER.as_ref() else {
            return text.to_owned();
        };
        let text = storage_names(text);
        let known = &mut self.known;
        let replacement = |found: &Captures| {
            let count = known.len() + 1;
            let original = found[0].to_lowercase();
            known
                .entry(original)
                .or_insert_with(|| numbered(&found[0], count))
                .clone()
        };
        pattern.replace_all(&text, replacement).into_owned()
    }
}

/// The text with its hexadecimal digits replaced by those of a number.
fn numbered(text: &str, number: usize) -> String {
    let (prefix, rest) = text.split_at(if text.starts_with("enx") { 3 } else { 0 });
    let mut digits: Vec<char> = format!("{number:x}").chars().collect();
    let digit = |letter: char| match letter {
        ':' | '-' => letter,
        _ => digits.pop().unwrap_or('0'),
    };
    let reversed: Vec<char> = rest.chars().rev().map(digit).collect();
    format!("{prefix}{}", reversed.into_iter().rev().collect::<String>())
}

fn is_secret(name: &str) -> bool {
    let mut name = name.to_lowercase();
    for harmless in HARMLESS {
        name = name.replace(harmless, "");
    }
    SECRETS.iter().any(|part| name.contains(part))
}

fn is_place(name: &str) -> bool {
    let name = name.to_lowercase();
    name.split(['.', '_', '-'])
        .any(|part| PLACES.contains(&part))
}

/// An option without a label, the name of a target, and the short ID of a file system.
fn option_value(name: &str, value: &str) -> String {
    let value = label(&storage_names(value));
    let Some(uuid) = UUID.as_ref() else {
        return format!("{name}={value}");
    };
    let replacement = |found: &Captures| {
        // A long one gets a number later, so that equal ones stay equal.
        let is_long = IDENTIFIER
            .as_ref()
            .is_some_and(|long| long.is_match(&found[2]));
        let id = if is_long { &found[2] } else { REMOVED };
        format!("{}={id}", &found[1])
    };
    format!("{name}={}", uuid.replace_all(&value, replacement))
}

fn storage_names(text: &str) -> String {
    let removed = format!("$1$2.{REMOVED}");
    STORAGE_NAME.as_ref().map_or(text.to_owned(), |name| {
        name.replace_all(text, removed).into_owned()
    })
}

/// Replaces names of hosts in the value of an option.
fn hosts(option: &str) -> String {
    let (Some(host), Some((name, value))) = (HOST.as_ref(), option.split_once('=')) else {
        return option.to_owned();
    };
    let replacement = |found: &Captures| {
        let is_file = FILES.contains(&&found[1]);
        if is_file { &found[0] } else { REMOVED }.to_owned()
    };
    format!("{name}={}", host.replace_all(value, replacement))
}

/// The value of an option without a label.
fn label(value: &str) -> String {
    match LABEL.as_ref() {
        Some(label) => label.replace(value, format!("$1={REMOVED}")).into_owned(),
        None => value.to_owned(),
    }
}

/// Replaces IPv6 addresses. Addresses of PCI devices and MAC addresses also have colons.
fn ipv6(text: &str) -> String {
    let Some(colons) = COLONS.as_ref() else {
        return text.to_owned();
    };
    let replacement = |found: &Captures| {
        let found = &found[0];
        let trimmed = found.trim_end_matches(['.', ':']);
        // In `eth0:2001:db8::1`, the name ends in a digit.
        let rest = trimmed.split_once(':').map_or(trimmed, |(_, rest)| rest);
        let is_address = [found, trimmed, rest].into_iter().any(|text| {
            let address = text.parse::<Ipv6Addr>();
            address.is_ok_and(|address| !address.is_unspecified())
        });
        if is_address { "::" } else { found }.to_owned()
    };
    colons.replace_all(text, replacement).into_owned()
}

fn is_remote(value: &str) -> bool {
    value.contains("://") || value.contains('@')
}

/// Replaces the names of devices that are not those of the kernel.
fn devices(text: &str) -> String {
    let (Some(device), Some(volume)) = (DEVICE.as_ref(), VOLUME.as_ref()) else {
        return text.to_owned();
    };
    let text = device.replace_all(text, format!("/dev/$1/{REMOVED}"));
    let replacement = |found: &Captures| {
        if USUAL_DIRECTORIES.contains(&&found[2]) {
            found[0].to_owned()
        } else {
            format!("{}/dev/{REMOVED}/{REMOVED}", &found[1])
        }
    };
    volume.replace_all(&text, replacement).into_owned()
}

fn lines(text: &str, keep: impl Fn(&str) -> bool) -> String {
    text.lines()
        .filter(|line| keep(line))
        .map(|line| format!("{line}\n"))
        .collect()
}

/// Words separated by white space outside of double quotes.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in text.chars() {
        is_quoted ^= letter == '"';
        match words.last_mut() {
            Some(word) if is_quoted || !letter.is_whitespace() => word.push(letter),
            Some(_) | None => words.push(String::new()),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrubbed(files: &[(&str, &str)]) -> BTreeMap<String, String> {
        let entry = |(path, text): &(&str, &str)| {
            (PathBuf::from(path), Entry::File(text.as_bytes().to_vec()))
        };
        let all = recording(
            files.iter().map(entry).collect(),
            Some("dbhost7.example.com"),
        );
        let text = |(path, entry): (PathBuf, Entry)| match entry {
            Entry::File(bytes) => (
                path.to_str().unwrap().to_owned(),
                String::from_utf8(bytes).unwrap(),
            ),
            Entry::Link(_) | Entry::Directory => panic!("{path:?}"),
        };
        all.into_iter().map(text).collect()
    }

    #[test]
    fn secrets_and_places_on_the_command_line() {
        for (line, expected) in [
            ("root=/dev/sda1 rw quiet", "root=/dev/sda1 rw quiet"),
            (
                "root=UUID=18e645be-29c9-445c-9958-2a641ab0cd99 isolcpus=2-5",
                "root=UUID=00000000-0000-0000-0000-000000000001 isolcpus=2-5",
            ),
            (
                "root=/dev/mapper/vesubie--vg-root ro",
                "root=/dev/mapper/removed ro",
            ),
            (
                "root=/dev/disk/by-id/nvme-SN123 ro",
                "root=/dev/disk/by-id/removed ro",
            ),
            (
                "my.password=\"a b\" luks_passphrase=c x",
                "my.password=removed luks_passphrase=removed x",
            ),
            ("--token abc --fast yes", "--token removed --fast yes"),
            ("ip=10.1.2.3::10.1.2.1:255.0.0.0:db:eth0:off", "ip=removed"),
            (
                "rd.lvm.lv=vg/root rd.iscsi.initiator=iqn.2001",
                "rd.lvm.lv=removed rd.iscsi.initiator=removed",
            ),
            (
                "inst.ks=http://x/y log=10.9.8.7:514",
                "inst.ks=removed log=0.0.0.0:514",
            ),
            (
                "BOOTIF=01-aa-bb-cc-dd-ee-ff name=DBHOST7",
                "BOOTIF=removed name=host",
            ),
            (
                "vconsole.keymap=de mitigations=auto iommu.passthrough=1 smmu.disable_bypass=0",
                "vconsole.keymap=de mitigations=auto iommu.passthrough=1 smmu.disable_bypass=0",
            ),
            (
                "apikey=a rootpw=b mysecretkey=c --adminpassword d",
                "apikey=removed rootpw=removed mysecretkey=removed --adminpassword removed",
            ),
            (
                "root=LABEL=dbhost resume=PARTLABEL=x live=hd:LABEL=OS-7:/ks label=y",
                "root=LABEL=removed resume=PARTLABEL=removed live=hd:LABEL=removed label=removed",
            ),
            (
                "root=/dev/vg7/data resume=/dev/md/nas7:0 boot=/dev/cciss/c0d0p1",
                "root=/dev/removed/removed resume=/dev/removed/removed boot=/dev/cciss/c0d0p1",
            ),
            (
                "log=[2001:db8::7]:514 dns=fe80::1%eth0 to=eth0:1:2:3:4:5:6:7:8 a=::ffff:1.2.3.4",
                "log=[::]:514 dns=::%eth0 to=eth:: a=::",
            ),
            (
                "pciback.hide=(0000:03:00.0) console=ttyS0,115200 x=a::",
                "pciback.hide=(0000:03:00.0) console=ttyS0,115200 x=::",
            ),
        ] {
            let files = scrubbed(&[("proc/cmdline", line)]);
            assert_eq!(files["proc/cmdline"].trim_end(), expected);
        }
    }

    #[test]
    fn names_on_the_command_line() {
        for (line, expected) in [
            (
                "root=UUID=A1B2-C3D4 boot=PARTUUID=1a2b3c4d-02 isolcpus=1000-1023",
                "root=UUID=removed boot=PARTUUID=removed isolcpus=1000-1023",
            ),
            (
                "rd.luks.name=18e645be-29c9-445c-9958-2a641ab0cd99=vault rd.luks.uuid=luks-18e6 \
                 rd.md.uuid=aabbccdd:11223344:aabbccdd:11223344 cryptdevice=UUID=1:vault",
                "rd.luks.name=removed rd.luks.uuid=removed rd.md.uuid=removed cryptdevice=removed",
            ),
            (
                "x=iqn.2001-04.com.example:disk7,0 nvme.host=nqn.2014-08.org.nvmexpress:uuid:7 \
                 y=naa.60014055f0a1b2c3 rd.zfcp=0.0.4000,0x5005076300c213e9",
                "x=iqn.removed,0 nvme.host=nqn.removed y=naa.removed rd.zfcp=removed",
            ),
            (
                "log=logs.corp.example.com:514 name=dbhost7.example.com ks=hd:db.a.de:/x \
                 systemd.wants=a.b.service androidboot.serialno=R58M",
                "log=removed:514 name=removed ks=hd:removed:/x systemd.wants=a.b.service \
                 androidboot.serialno=removed",
            ),
            (
                "BOOT_IMAGE=(hd0,gpt2)/vmlinuz-5.14.0-427.el9.x86_64 hugepagesz=1G nvme.poll=1.5",
                "BOOT_IMAGE=(hd0,gpt2)/vmlinuz-5.14.0-427.el9.x86_64 hugepagesz=1G nvme.poll=1.5",
            ),
        ] {
            let files = scrubbed(&[("proc/cmdline", line)]);
            assert_eq!(files["proc/cmdline"].trim_end(), expected);
        }
    }

    #[test]
    fn equal_identifiers_stay_equal() {
        let id = "52a72e46c41733f38daa675439471d19";
        let files = scrubbed(&[
            ("proc/7/cgroup", &format!("4:memory:/docker/{id}")),
            (
                &format!("sys/fs/cgroup/memory/docker/{id}/memory.limit_in_bytes"),
                "1",
            ),
            ("sys/class/net/enx00e04c680123/mtu", "ab:cd:ef:01:23:45"),
            (
                "sys/devices/pci0000:00/0000:7d:00.0/irq",
                "00000000,00000202",
            ),
        ]);
        let zeros = "0".repeat(31);
        let expected = [
            ("proc/7/cgroup", format!("4:memory:/docker/{zeros}1")),
            (
                "sys/class/net/enx000000000003/mtu",
                "00:00:00:00:00:02".to_owned(),
            ),
            (
                "sys/devices/pci0000:00/0000:7d:00.0/irq",
                "00000000,00000202".to_owned(),
            ),
        ];
        for (path, text) in expected {
            assert_eq!(files.get(path), Some(&text), "{files:?}");
        }
        let limit = format!("sys/fs/cgroup/memory/docker/{zeros}1/memory.limit_in_bytes");
        assert_eq!(files[&limit], "1");
    }

    #[test]
    fn other_files_keep_only_what_is_read() {
        let files = scrubbed(&[
            (
                "proc/7/mountinfo",
                "1 1 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / /mnt rw - nfs4 nas7:/x rw\n\
                 3 1 0:5 / /c rw - cifs //nas/x rw,password=s\n4 1 0:3 / /g rw - cgroup2 none rw\n\
                 5 1 253:0 / /srv/dbhost7 rw - xfs /dev/mapper/dbhost7-data rw\n\
                 6 1 253:1 / /srv/dev/a/b rw - xfs /dev/vg7/log rw,logdev=/dev/mapper/dbhost7-l\n\
                 7 1 8:2 / /x rw - ext4 /dev/sda2 rw\n8 1 8:3 / /media/A1B2-C3D4 rw - vfat /dev/sdb1 rw",
            ),
            (
                "proc/7/status",
                "Name:\tsaiga\nUid:\t0\nCpus_allowed_list:\t0-1",
            ),
            (
                "proc/cpuinfo",
                "processor : 0\nSerial\t\t: 10000000abcdef01",
            ),
            ("proc/version", "Linux version 5.15.0 (root@ceph1) (gcc)"),
        ]);
        assert_eq!(
            files["proc/7/mountinfo"],
            "1 1 8:1 / / rw - ext4 /dev/sda1 rw\n4 1 0:3 / /g rw - cgroup2 none rw\n\
             5 1 253:0 / /srv/host rw - xfs /dev/mapper/removed rw\n\
             6 1 253:1 / /srv/dev/a/b rw - xfs /dev/removed/removed rw,logdev=/dev/mapper/removed\n\
             7 1 8:2 / /x rw - ext4 /dev/sda2 rw\n\
             8 1 8:3 / /media/removed rw - vfat /dev/sdb1 rw\n"
        );
        assert_eq!(files["proc/7/status"], "Cpus_allowed_list:\t0-1\n");
        assert_eq!(files["proc/cpuinfo"], "processor : 0\n");
        assert_eq!(files["proc/version"], "Linux version 5.15.0\n");
    }
}
