//! Error statuses of NVMe commands.
//!
//! Spec: NVM Express Base 2.0, figures 93 to 97; kernel include/linux/nvme.h.

use std::fmt;

/// Status code type and status code of a completion, as the kernel returns them; never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status(u16);

impl Status {
    /// Creates a status from the result of the ioctl, without flags (do not retry, more) and retry
    /// delay.
    pub(crate) fn new(raw: u16) -> Self {
        Self(raw & 0x7ff)
    }

    /// Whether the status means that the drive lacks the page; otherwise the command has failed.
    #[must_use]
    pub fn is_absence(self) -> bool {
        // Invalid opcode, field, namespace or format; FDP disabled; invalid log page.
        matches!(self.0, 0x001 | 0x002 | 0x00b | 0x029 | 0x109)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self.0 {
            0x001 => "invalid command opcode",
            0x002 => "invalid field in command",
            0x004 => "data transfer error",
            0x006 => "internal error",
            0x007 => "command aborted",
            0x00b => "invalid namespace",
            0x029 => "Flexible Data Placement is disabled",
            0x082 => "namespace not ready",
            0x109 => "invalid log page",
            0x371 => "command aborted by the host",
            _ => "see NVM Express Base, Status Code",
        };
        write!(f, "NVMe status {:03x}h, {words}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_do_not_change_a_status() {
        // Do Not Retry and More beside "invalid log page", as the kernel returns them.
        assert_eq!(Status::new(0x6109), Status::new(0x0109));
        assert!(Status::new(0x4109).is_absence());
        assert!(!Status::new(0x4006).is_absence());
        assert_eq!(
            Status::new(0x4002).to_string(),
            "NVMe status 002h, invalid field in command"
        );
    }
}
