//! Mounted file systems, from `/proc/self/mountinfo` or `/proc/mounts`.

use crate::read::ReadError;
use crate::source::Source;

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    /// `major:minor`; `None` in `/proc/mounts`.
    pub(super) device: Option<String>,
    /// The directory of the file system that is mounted: `/` but for bind mounts and cgroups.
    pub(super) root: String,
    pub(super) directory: String,
    pub(super) kind: String,
    /// The device file, such as `/dev/sda1`, or a name.
    pub(super) from: String,
    /// Options of the file system, such as the controllers of a cgroup hierarchy.
    pub(super) options: String,
}

pub(super) fn read(source: &Source) -> Result<Vec<Mount>, ReadError> {
    let file = "/proc/self/mountinfo";
    if let Some(text) = source.text(file)? {
        let mount = |line| of_mountinfo(line).ok_or_else(|| source.damaged(file, line, "a mount"));
        return text.lines().map(mount).collect();
    }
    let text = source.text("/proc/mounts")?.unwrap_or_default();
    Ok(text.lines().filter_map(of_mounts).collect())
}

/// A line of mountinfo: `36 35 98:0 /root /mnt rw,noatime master:1 - ext3 /dev/sda rw`.
fn of_mountinfo(line: &str) -> Option<Mount> {
    let (place, system) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(2);
    let (device, root, directory) = (place.next()?, place.next()?, place.next()?);
    let mut system = system.split(' ');
    let (kind, from) = (system.next()?, system.next()?);
    Some(Mount {
        device: Some(device.to_owned()),
        root: unescaped(root),
        directory: unescaped(directory),
        kind: kind.to_owned(),
        from: unescaped(from),
        options: system.next().unwrap_or_default().to_owned(),
    })
}

/// A line of mounts: `/dev/sda1 / ext4 rw 0 0`.
fn of_mounts(line: &str) -> Option<Mount> {
    let mut words = line.split(' ');
    let (from, directory, kind) = (words.next()?, words.next()?, words.next()?);
    Some(Mount {
        device: None,
        root: "/".to_owned(),
        directory: unescaped(directory),
        kind: kind.to_owned(),
        from: unescaped(from),
        options: words.next().unwrap_or_default().to_owned(),
    })
}

/// Replaces octal escapes such as `\040` for a space.
pub(crate) fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let code = part
            .get(..3)
            .and_then(|code| u8::from_str_radix(code, 8).ok());
        if let Some(code) = code {
            bytes.push(code);
            bytes.extend_from_slice(part.get(3..).unwrap_or_default().as_bytes());
        } else {
            bytes.push(b'\\');
            bytes.extend_from_slice(part.as_bytes());
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_mountinfo_are_parsed() {
        let line = "36 35 98:0 /a /m\\040n rw,noatime master:1 shared:2 - ext3 /dev/sda rw,cpu";
        let mount = of_mountinfo(line).unwrap();
        let texts = [
            &mount.root,
            &mount.directory,
            &mount.kind,
            &mount.from,
            &mount.options,
        ];
        assert_eq!(texts, ["/a", "/m n", "ext3", "/dev/sda", "rw,cpu"]);
        assert_eq!(mount.device.as_deref(), Some("98:0"));
        assert_eq!(of_mountinfo("36 35 98:0 /a"), None);
        let mount = of_mounts("none /dev/cpuset cpuset rw 0 0").unwrap();
        assert_eq!((mount.kind.as_str(), mount.device), ("cpuset", None));
    }

    #[test]
    fn octal_escapes_are_replaced() {
        for (text, expected) in [
            ("a\\040b\\134", "a b\\"),
            ("\\9", "\\9"),
            ("plain", "plain"),
        ] {
            assert_eq!(unescaped(text), expected);
        }
    }
}
