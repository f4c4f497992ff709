//! Who a service runs as, from its unit and the user database below a root.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

use super::reach::User;
use super::unit::Unit;

/// The user and groups of a service (`man 5 systemd.exec`, User=).
///
/// # Errors
/// When the unit names a user or group that is not there.
pub(super) fn of(root: &Path, unit: &Unit) -> anyhow::Result<User> {
    if unit.is_on("DynamicUser") {
        return Ok(User::default());
    }
    let name = unit.value("User").unwrap_or("root");
    let line = find(root, "etc/passwd", name, 2)?;
    let [login, _, uid, gid, ..] = &line[..] else {
        bail!(
            "no user {name}, whom the unit names, in etc/passwd below {}",
            root.display()
        );
    };
    let mut gids = match unit.value("Group") {
        Some(group) => vec![gid_of(root, group)?],
        None => vec![gid.parse().context("a group number in etc/passwd")?],
    };
    for group in unit.words("SupplementaryGroups") {
        gids.push(gid_of(root, &group)?);
    }
    gids.extend(groups_with(root, login));
    Ok(User {
        uid: Some(uid.parse().context("a user number in etc/passwd")?),
        gids,
    })
}

/// A user by number, with the groups that the user database gives it.
///
/// # Errors
/// When the user database cannot be read.
pub(super) fn of_owner(root: &Path, user: u32, group: u32) -> anyhow::Result<User> {
    let line = find(root, "etc/passwd", &user.to_string(), 2)?;
    let mut gids = vec![group];
    if let Some(login) = line.first() {
        gids.extend(groups_with(root, login));
    }
    Ok(User {
        uid: Some(user),
        gids,
    })
}

fn gid_of(root: &Path, group: &str) -> anyhow::Result<u32> {
    let line = find(root, "etc/group", group, 2)?;
    let number = line.get(2).map_or(group, String::as_str);
    number
        .parse()
        .with_context(|| format!("no group {group}, which the unit names, in etc/group"))
}

/// The fields of the line whose first field, or field `number`, is `wanted`; none without one.
fn find(root: &Path, file: &str, wanted: &str, number: usize) -> anyhow::Result<Vec<String>> {
    let path = root.join(file);
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let lines = text
        .lines()
        .map(|line| line.split(':').map(str::to_owned).collect::<Vec<_>>());
    let is_it = |fields: &Vec<String>| {
        fields.first().is_some_and(|name| name == wanted)
            || fields.get(number).is_some_and(|id| id == wanted)
    };
    Ok(lines.into_iter().find(is_it).unwrap_or_default())
}

/// The groups of which the user database says that `login` is a member.
fn groups_with(root: &Path, login: &str) -> Vec<u32> {
    let text = fs::read_to_string(root.join("etc/group")).unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let mut fields = line.split(':').skip(2);
            let gid = fields.next()?.parse().ok()?;
            fields
                .next()?
                .split(',')
                .any(|member| member == login)
                .then_some(gid)
        })
        .collect()
}
