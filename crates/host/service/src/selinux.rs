//! SELinux: the type of the library's file, and the transition into the domain of a service.
//!
//! Reads the state from /sys and the label from the file. Deliberately absent: queries of the
//! policy.

use std::fs;

use rustix::fs::getxattr;

use crate::library::Library;
use crate::obstacle::Obstacle;
use crate::root::Root;

/// Types of files that the policy lets every domain map.
const LIBRARIES: [&str; 3] = ["lib_t", "textrel_shlib_t", "ld_so_t"];

/// A type of the library's file that keeps services from mapping it.
pub(crate) fn obstacle(root: &Root, library: &Library) -> Option<Obstacle> {
    let state = fs::read_to_string(root.file("/sys/fs/selinux/enforce"));
    if state.unwrap_or_default().trim() != "1" {
        return None;
    }
    let mut label = [0; 256];
    let length = getxattr(&library.file, "security.selinux", &mut label).ok()?;
    let label = String::from_utf8_lossy(label.get(..length)?);
    let kind = kind(&label)?;
    (!LIBRARIES.contains(&kind)).then(|| Obstacle::Label {
        library: library.seen.clone(),
        kind: kind.to_owned(),
    })
}

/// The type in a context such as `system_u:system_r:mysqld_t:s0`.
pub(crate) fn kind(context: &str) -> Option<&str> {
    context.trim_end_matches(['\0', '\n']).split(':').nth(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{XattrFlags, setxattr};

    #[test]
    fn a_type_that_services_may_not_map_is_an_obstacle() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path()).unwrap();
        fs::create_dir_all(root.file("sys/fs/selinux")).unwrap();
        fs::write(root.file("lib.so"), "").unwrap();
        let library = Library::new(root.file("lib.so"), &root);
        let words = "semanage fcontext -a -t lib_t '/lib.so' && restorecon -v '/lib.so'";
        for (enforcing, kind, is_obstacle) in [
            ("1", "user_home_t", true),
            ("0", "user_home_t", false),
            ("1", "lib_t", false),
        ] {
            fs::write(root.file("sys/fs/selinux/enforce"), enforcing).unwrap();
            let label = format!("system_u:object_r:{kind}:s0\0");
            let file = &library.file;
            setxattr(
                file,
                "security.selinux",
                label.as_bytes(),
                XattrFlags::empty(),
            )
            .unwrap();
            let text = obstacle(&root, &library).map(|it| it.to_string());
            let is_named = text.is_some_and(|it| it.contains(kind) && it.ends_with(words));
            assert_eq!(is_named, is_obstacle, "{enforcing} {kind}");
        }
    }
}
