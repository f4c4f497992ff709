//! The user and the groups of a service, from its unit and the user database below the root.
//!
//! Reads etc/passwd and etc/group. Deliberately absent: other name services, which belong to the
//! system that runs, and access control lists.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use saiga_process::account::{self, Account as User};

use crate::replace::FileError;
use crate::root::Root;
use crate::unit::Unit;

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";

/// The user and the groups that a service's processes have.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// `None` for a user that systemd allocates at each start and that owns no file.
    pub(crate) user: Option<u32>,
    /// The primary group first.
    pub(crate) groups: Vec<u32>,
}

/// The account of a service cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("the unit runs as the user {user}, but {} does not list that user", file.display())]
    NoUser { user: String, file: PathBuf },
    #[error("the unit names the group {group}, but {} does not list that group", file.display())]
    NoGroup { group: String, file: PathBuf },
}

impl Account {
    /// The account of a unit's processes (`man 5 systemd.exec`, User=).
    pub(crate) fn of_unit(root: &Root, unit: &Unit) -> Result<Self, AccountError> {
        if unit.is_on("DynamicUser") {
            return Ok(Self::default());
        }
        let user = unit.value("User").unwrap_or("root");
        let users = users(root)?;
        let is_wanted = |one: &&User| one.name == user || user.parse() == Ok(one.uid);
        let Some(found) = users.iter().find(is_wanted) else {
            return Err(AccountError::NoUser {
                user: user.to_owned(),
                file: root.file(PASSWD),
            });
        };
        let all_groups = groups(root)?;
        let number = |name: &str| {
            let group = all_groups.iter().find(|group| group.name == name);
            let number = group.map(|group| group.number).or(name.parse().ok());
            number.ok_or_else(|| AccountError::NoGroup {
                group: name.to_owned(),
                file: root.file(GROUP),
            })
        };
        let mut groups = vec![unit.value("Group").map_or(Ok(found.gid), number)?];
        for group in unit.words("SupplementaryGroups") {
            groups.push(number(&group)?);
        }
        groups.extend(groups_with(&all_groups, &found.name));
        Ok(Self {
            user: Some(found.uid),
            groups,
        })
    }

    /// The account of the user `user`, with `group` as its primary group.
    pub(crate) fn of_owner(root: &Root, user: u32, group: u32) -> Result<Self, AccountError> {
        let mut all = vec![group];
        if let Some(found) = users(root)?.iter().find(|one| one.uid == user) {
            all.extend(groups_with(&groups(root)?, &found.name));
        }
        Ok(Self {
            user: Some(user),
            groups: all,
        })
    }

    /// Whether the permission bits of a file grant this account `bit`: 4 to read, 1 to search.
    pub(crate) fn may(&self, file: &Metadata, bit: u32) -> bool {
        let shift = if self.user == Some(file.uid()) {
            6
        } else if self.groups.contains(&file.gid()) {
            3
        } else {
            0
        };
        self.user == Some(0) || file.mode() >> shift & bit != 0
    }
}

fn users(root: &Root) -> Result<Vec<User>, FileError> {
    let file = root.file(PASSWD);
    account::all(&file).map_err(FileError::read(&file))
}

/// A line of group(5).
struct Group {
    name: String,
    number: u32,
    /// Names, separated by commas.
    members: String,
}

fn groups(root: &Root) -> Result<Vec<Group>, FileError> {
    let file = root.file(GROUP);
    let text = fs::read_to_string(&file).map_err(FileError::read(&file))?;
    let group = |line: &str| {
        let mut fields = line.split(':').map(str::to_owned);
        Some(Group {
            name: fields.next()?,
            number: fields.nth(1)?.parse().ok()?,
            members: fields.next()?,
        })
    };
    Ok(text.lines().filter_map(group).collect())
}

/// The groups that have `member` among their members.
fn groups_with(groups: &[Group], member: &str) -> impl Iterator<Item = u32> {
    let has = move |group: &&Group| group.members.split(',').any(|name| name == member);
    groups.iter().filter(has).map(|group| group.number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(service: &str) -> Result<(Option<u32>, Vec<u32>), String> {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path()).unwrap();
        fs::create_dir(root.file("etc")).unwrap();
        let users = "root:x:0:0::/root:/bin/sh\nbroken\ndb:x:4321:4322::/:/bin/sh\n";
        fs::write(root.file(PASSWD), users).unwrap();
        let groups = "root:x:0:\ndb:x:4322:\nextra:x:4400:other,db\n";
        fs::write(root.file(GROUP), groups).unwrap();
        let mut unit = Unit::default();
        unit.parse(&format!("[Service]\n{service}\n"));
        let account = Account::of_unit(&root, &unit).map_err(|error| error.to_string())?;
        Ok((account.user, account.groups))
    }

    #[test]
    fn a_unit_names_its_account_by_names_or_numbers() {
        for (service, user, groups) in [
            ("", Some(0), &[0][..]),
            ("User=db", Some(4321), &[4322, 4400]),
            ("User=4321\nGroup=extra", Some(4321), &[4400, 4400]),
            ("User=db\nGroup=77", Some(4321), &[77, 4400]),
            (
                "User=db\nSupplementaryGroups=root 5",
                Some(4321),
                &[4322, 0, 5, 4400],
            ),
            ("User=db\nDynamicUser=yes", None, &[]),
        ] {
            assert_eq!(account(service), Ok((user, groups.to_vec())), "{service}");
        }
        for (service, expected) in [
            ("User=none", "the unit runs as the user none, but"),
            ("User=db\nGroup=none", "the unit names the group none, but"),
        ] {
            let error = account(service).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
