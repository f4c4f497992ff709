//! Puts a value and its coupled values back, in the order of their coupling.

use std::io;

use crate::form::Form;
use crate::host::Host;
use crate::journal::Texts;
use crate::step::Step;
use crate::target::Target;

/// Whether two readings of a target mean the same value.
pub(crate) fn same(target: &Target, one: Option<&str>, other: Option<&str>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => target.form().same(one, other),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

/// Reads a step's target and its coupled values. A coupled value without a value now is not
/// restored later.
///
/// # Errors
/// A value exists and cannot be read, so that it could not be restored.
pub(crate) fn read_all(host: &dyn Host, step: &Step) -> Result<Texts, (Target, io::Error)> {
    let read = |target: &Target| match host.read(target) {
        // What `wbt_lat_usec` and `xps_cpus` say when the device does not use them.
        Err(error) if *target != step.target && is_unused(&error) => Ok(None),
        read => read.map_err(|error| (target.clone(), error)),
    };
    step.targets().map(read).collect()
}

fn is_unused(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINVAL | libc::EOPNOTSUPP | libc::ENOENT | libc::ENODEV)
    )
}

/// Whether a failed write of an interrupt's affinity means that only the kernel may set it. Linux
/// 6.1 says EIO, 6.18 says EPERM; a user without rights gets EACCES.
pub(crate) fn is_managed(target: &Target, error: &io::Error) -> bool {
    let refusals = [Some(libc::EIO), Some(libc::EPERM)];
    target.irq().is_some() && refusals.contains(&error.raw_os_error())
}

/// Makes a step's target and its coupled values show `to` again. Returns what could not be restored
/// because the device or the kernel does not let it.
///
/// The target comes first, because writing it changes the coupled values. A target that has no text
/// to write, such as `vm.dirty_bytes` while the ratio was in use, follows from its coupled values.
///
/// # Errors
/// What was not restored, and why.
pub(crate) fn restore(host: &mut dyn Host, step: &Step, to: &Texts) -> Result<Vec<String>, String> {
    let mut notes = Vec::new();
    let mut wanted = to.iter().map(Option::as_deref);
    let main = wanted.next().flatten();
    put(host, &step.target, main)?;
    for (coupled, text) in step.coupled.iter().zip(wanted) {
        let Some(text) = text else { continue };
        match host.read(coupled) {
            Ok(Some(found)) if coupled.form().same(&found, text) => {}
            Ok(None) => notes.push(format!("{coupled} is gone")),
            Ok(Some(_)) | Err(_) => match put_coupled(host, coupled, text) {
                Ok(None) => {}
                Ok(Some(note)) => notes.push(note),
                Err(error) => return Err(error),
            },
        }
    }
    let found = host
        .read(&step.target)
        .map_err(|error| format!("cannot be read: {error}"))?;
    if !same(&step.target, found.as_deref(), main) {
        let found = found.unwrap_or_else(|| "nothing".to_owned());
        let wanted = main.unwrap_or("nothing");
        let is_pages = step.target.form() == Form::Pages;
        let hint = if is_pages {
            " (pages in use stay until their process ends)"
        } else {
            ""
        };
        return Err(format!(
            "shows {} instead of {}{hint}",
            found.trim(),
            wanted.trim()
        ));
    }
    Ok(notes)
}

fn put(host: &mut dyn Host, target: &Target, text: Option<&str>) -> Result<(), String> {
    let found = host
        .read(target)
        .map_err(|error| format!("cannot be read: {error}"))?;
    if same(target, found.as_deref(), text) {
        return Ok(());
    }
    let is_file = matches!(target, Target::OwnFile { .. });
    let written = match text {
        None if is_file => host.write(target, None),
        Some(text) if is_file => host.write(target, Some(text)),
        // A unit that did not exist before its file was written.
        None if matches!(target, Target::Service { .. }) => host.write(target, Some("disabled")),
        None => return Ok(()),
        Some(text) => match target.form().writable(text) {
            Some(text) => host.write(target, Some(&text)),
            None => return Ok(()),
        },
    };
    written.map_err(|error| refused(target, &error))
}

fn put_coupled(
    host: &mut dyn Host,
    coupled: &Target,
    text: &str,
) -> Result<Option<String>, String> {
    let Some(text) = coupled.form().writable(text) else {
        return Ok(None);
    };
    if let Err(error) = host.write(coupled, Some(&text)) {
        if is_managed(coupled, &error) {
            return Ok(Some(format!("{coupled} can be set only by the kernel")));
        }
        return Err(refused(coupled, &error));
    }
    match host.read(coupled) {
        Ok(Some(found)) if coupled.form().same(&found, &text) => Ok(None),
        Ok(found) => {
            let found = found.unwrap_or_else(|| "nothing".to_owned());
            Err(format!(
                "{coupled} shows {} instead of {text}",
                found.trim()
            ))
        }
        Err(error) => Err(format!("{coupled} cannot be read: {error}")),
    }
}

/// The text of a refused write, with the capability that may be missing.
pub(crate) fn refused(target: &Target, error: &io::Error) -> String {
    let hint = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => match target {
            Target::Nic { .. } => " (CAP_NET_ADMIN is needed)",
            Target::File { path, .. } if path.starts_with("/proc/sys/net/") => {
                " (CAP_NET_ADMIN is needed)"
            }
            Target::File { path, .. } if path.starts_with("/sys/kernel/debug/") => {
                " (CAP_SYS_ADMIN is needed, and no kernel lockdown)"
            }
            Target::File { .. } => " (root, or CAP_SYS_ADMIN and CAP_DAC_OVERRIDE, is needed)",
            Target::OwnFile { .. } | Target::Service { .. } => " (root is needed)",
        },
        Some(libc::EROFS) => " (/proc and /sys are read-only in most containers)",
        Some(libc::EINVAL) => " (the kernel does not take this value)",
        _ => "",
    };
    format!("{target} cannot be written: {error}{hint}")
}
