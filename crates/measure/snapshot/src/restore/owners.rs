//! Checks that this user may restore the owners and groups of all files.
//!
//! Source: `man 2 chown`, `man 2 chmod`. Root may set any owner. Other users may restore their own
//! files only, with groups of which they are members.

use std::path::Path;

use super::RestoreError;
use super::plan::Target;
use crate::compare::is_root;
use crate::disk::Fault;
use crate::manifest::Entry;

/// The set-group-ID bit of a mode.
const SET_GROUP_ID: u32 = 0o2000;

/// Fails with the first file whose owner or group this user may not restore.
pub(super) fn check(targets: &[Target<'_, '_>]) -> Result<(), RestoreError> {
    if is_root() {
        return Ok(());
    }
    let user = rustix::process::geteuid().as_raw();
    let groups = own_groups()?;
    for target in targets {
        let full_path = |entry: &Entry| target.part.path.join(&entry.path);
        for entry in &target.part.entries {
            let (uid, gid) = (entry.metadata.uid, entry.metadata.gid);
            if uid != user {
                let path = full_path(entry);
                return Err(RestoreError::Owner { path, uid });
            }
            if !groups.contains(&gid) && !keeps_group(target, entry) {
                let path = full_path(entry);
                return Err(RestoreError::Group { path, gid });
            }
        }
    }
    Ok(())
}

/// Whether the present file stays and already has the right group. A file with set-group-ID does
/// not count, because chmod(2) by a user who is not a member of the group clears that bit.
fn keeps_group(target: &Target<'_, '_>, entry: &Entry) -> bool {
    let mut found = target.found.iter();
    target.kept.contains(&entry.path)
        && entry.metadata.mode & SET_GROUP_ID == 0
        && found.any(|found| found.path == entry.path && found.stat.gid == entry.metadata.gid)
}

/// The groups of which this process is a member.
fn own_groups() -> Result<Vec<u32>, Fault> {
    let others = rustix::process::getgroups();
    let others = others.map_err(Fault::at("list the groups of", Path::new("/proc/self")))?;
    let all = others.into_iter().chain([rustix::process::getegid()]);
    Ok(all.map(rustix::process::Gid::as_raw).collect())
}
