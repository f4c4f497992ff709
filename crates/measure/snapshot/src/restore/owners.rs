//! Whether this user can give the files back to those whose they were.
//!
//! Source: `man 2 chown`, `man 2 chmod`. Root can do all of it; a user keeps their files, and gives them
//! to groups of their own.

use std::path::Path;

use super::RestoreError;
use super::plan::Target;
use crate::compare::are_root;
use crate::disk::Fault;
use crate::manifest::Entry;

/// The bit of a mode by which a program gets the file's group.
const SET_GROUP_ID: u32 = 0o2000;

/// Names the first file that would not become what it was.
pub(super) fn check(targets: &[Target<'_, '_>]) -> Result<(), RestoreError> {
    if are_root() {
        return Ok(());
    }
    let user = rustix::process::geteuid().as_raw();
    let groups = own_groups()?;
    for target in targets {
        let whole = |entry: &Entry| target.part.path.join(&entry.path);
        for entry in &target.part.entries {
            let (uid, gid) = (entry.dress.uid, entry.dress.gid);
            if uid != user {
                let path = whole(entry);
                return Err(RestoreError::Owner { path, uid });
            }
            if !groups.contains(&gid) && !has_it_already(target, entry) {
                let path = whole(entry);
                return Err(RestoreError::Group { path, gid });
            }
        }
    }
    Ok(())
}

/// A file that stays can keep a group that is not its owner's; set-group-ID it would lose.
fn has_it_already(target: &Target<'_, '_>, entry: &Entry) -> bool {
    let mut found = target.found.iter();
    target.kept.contains(&entry.path)
        && entry.dress.mode & SET_GROUP_ID == 0
        && found.any(|found| found.path == entry.path && found.stat.gid == entry.dress.gid)
}

/// The groups to which this user may give files.
fn own_groups() -> Result<Vec<u32>, Fault> {
    let others = rustix::process::getgroups();
    let others = others.map_err(Fault::at("ask for the groups of", Path::new("/proc/self")))?;
    let all = others.into_iter().chain([rustix::process::getegid()]);
    Ok(all.map(rustix::process::Gid::as_raw).collect())
}
