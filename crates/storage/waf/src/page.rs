//! The pages of a drive that the meter reads: numbers, lengths, commands, and file names.
//!
//! Spec: NVM Express Base 2.0, 5.15 (Get Features), 5.16 (Get Log Page), 5.17 (Identify) and 8.7
//! (directives); TP4146 for logs 20h to 22h, feature 1Dh and I/O Management Receive. Deliberately
//! absent: the content of pages.

/// A page of information that a drive returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Page {
    /// Identify, CNS 01h: vendor, model, serial number, abilities.
    Controller,
    /// Identify, CNS 02h: IDs of the active namespaces.
    Namespaces,
    /// Identify, CNS 00h: one namespace, with its endurance group.
    Namespace(u32),
    /// Identify, CNS 17h: UUIDs that select among meanings of a vendor's log page.
    Uuids,
    /// Directive Receive, streams, return parameters, for a namespace or all.
    Streams(u32),
    /// Log 02h: SMART / health.
    Smart,
    /// Log 09h of an endurance group.
    Endurance(u16),
    /// Log 22h of an endurance group: statistics of Flexible Data Placement.
    Fdp(u16),
    /// Feature 1Dh of an endurance group: whether placement is enabled, and by which configuration.
    FdpMode(u16),
    /// Log 20h of an endurance group: its configurations of placement.
    FdpConfigurations(u16),
    /// Log 21h of an endurance group: how each reclaim unit handle was specified.
    FdpUsage(u16),
    /// I/O Management Receive, reclaim unit handle status of a namespace.
    Handles(u32),
    /// Log C0h: OCP's page with OCP's UUID, otherwise the vendor's.
    VendorC0 {
        /// Index into [`Page::Uuids`]; 0 for none.
        uuid: u8,
    },
    /// Log CAh: additional SMART items of Intel and other vendors.
    VendorCa,
}

/// A command that reads a page, without buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) queue: Queue,
    pub(crate) opcode: u8,
    pub(crate) nsid: u32,
    pub(crate) cdw10: u32,
    pub(crate) cdw11: u32,
    pub(crate) cdw14: u32,
}

/// The queue for a command. An opcode has another meaning in the other queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queue {
    Admin,
    Io,
}

const GET_LOG_PAGE: u8 = 0x02;
const IDENTIFY: u8 = 0x06;
const GET_FEATURES: u8 = 0x0a;
const DIRECTIVE_RECEIVE: u8 = 0x1a;
/// An opcode of the I/O queue.
const IO_MANAGEMENT_RECEIVE: u8 = 0x12;
/// The NSID for the whole controller.
const ALL_NAMESPACES: u32 = u32::MAX;
/// Retain Asynchronous Event: the read of the log does not clear the event for other programs.
const RETAIN_EVENT: u32 = 1 << 15;

impl Page {
    /// Returns its length in bytes: for vendors' pages up to the last used field, for lists of
    /// variable length the most that is read.
    #[must_use]
    pub fn length(self) -> usize {
        match self {
            Self::Controller | Self::Namespaces | Self::Namespace(_) | Self::Uuids => 4096,
            Self::FdpConfigurations(_) | Self::FdpUsage(_) | Self::Handles(_) => 4096,
            Self::Smart | Self::Endurance(_) | Self::VendorC0 { .. } | Self::VendorCa => 512,
            Self::Fdp(_) => 64,
            Self::Streams(_) => 32,
            Self::FdpMode(_) => 4,
        }
    }

    /// Returns its file name in the directory of a recorded drive.
    #[must_use]
    pub fn file_name(self) -> String {
        match self {
            Self::Controller => "identify-controller.bin".to_owned(),
            Self::Namespaces => "identify-namespaces.bin".to_owned(),
            Self::Namespace(nsid) => format!("identify-namespace-{nsid}.bin"),
            Self::Uuids => "identify-uuids.bin".to_owned(),
            Self::Streams(nsid) => format!("streams-namespace-{nsid}.bin"),
            Self::Smart => "log-02.bin".to_owned(),
            Self::Endurance(group) => format!("log-09-group-{group}.bin"),
            Self::Fdp(group) => format!("log-22-group-{group}.bin"),
            Self::FdpMode(group) => format!("feature-1d-group-{group}.bin"),
            Self::FdpConfigurations(group) => format!("log-20-group-{group}.bin"),
            Self::FdpUsage(group) => format!("log-21-group-{group}.bin"),
            Self::Handles(nsid) => format!("handles-namespace-{nsid}.bin"),
            Self::VendorC0 { uuid: 0 } => "log-c0.bin".to_owned(),
            Self::VendorC0 { uuid } => format!("log-c0-uuid-{uuid}.bin"),
            Self::VendorCa => "log-ca.bin".to_owned(),
        }
    }

    /// Returns its name for messages.
    #[must_use]
    pub fn title(self) -> String {
        match self {
            Self::Controller => "the controller's identity".to_owned(),
            Self::Namespaces => "the list of namespaces".to_owned(),
            Self::Namespace(nsid) => format!("the identity of namespace {nsid}"),
            Self::Uuids => "the list of UUIDs".to_owned(),
            Self::Streams(nsid) => format!("the streams of namespace {nsid}"),
            Self::Smart => "log page 02h".to_owned(),
            Self::Endurance(group) => format!("log page 09h of endurance group {group}"),
            Self::Fdp(group) => format!("log page 22h of endurance group {group}"),
            Self::FdpMode(group) => format!("feature 1Dh of endurance group {group}"),
            Self::FdpConfigurations(group) => format!("log page 20h of endurance group {group}"),
            Self::FdpUsage(group) => format!("log page 21h of endurance group {group}"),
            Self::Handles(nsid) => format!("the list of handles of namespace {nsid}"),
            Self::VendorC0 { uuid: 0 } => "log page C0h".to_owned(),
            Self::VendorC0 { uuid } => format!("log page C0h with UUID index {uuid}"),
            Self::VendorCa => "log page CAh".to_owned(),
        }
    }

    pub(crate) fn command(self) -> Command {
        let admin = |opcode, nsid, cdw10, cdw11| Command {
            queue: Queue::Admin,
            opcode,
            nsid,
            cdw10,
            cdw11,
            cdw14: 0,
        };
        let identify = |cns, nsid| admin(IDENTIFY, nsid, cns, 0);
        match self {
            Self::Controller => identify(0x01, 0),
            Self::Namespaces => identify(0x02, 0),
            Self::Namespace(nsid) => identify(0x00, nsid),
            Self::Uuids => identify(0x17, 0),
            Self::Streams(nsid) => admin(DIRECTIVE_RECEIVE, nsid, self.dwords(), 0x0101),
            Self::Smart => self.log(0x02 | RETAIN_EVENT, ALL_NAMESPACES, 0, 0),
            Self::Endurance(group) => self.log(0x09 | RETAIN_EVENT, 0, group, 0),
            Self::Fdp(group) => self.log(0x22, 0, group, 0),
            Self::FdpMode(group) => admin(GET_FEATURES, 0, 0x1d, u32::from(group)),
            Self::FdpConfigurations(group) => self.log(0x20, 0, group, 0),
            Self::FdpUsage(group) => self.log(0x21, 0, group, 0),
            Self::Handles(nsid) => Command {
                queue: Queue::Io,
                // The management operation is in the lowest byte.
                ..admin(IO_MANAGEMENT_RECEIVE, nsid, 1, self.dwords())
            },
            Self::VendorC0 { uuid } => self.log(0xc0, ALL_NAMESPACES, 0, uuid),
            Self::VendorCa => self.log(0xca, ALL_NAMESPACES, 0, 0),
        }
    }

    /// Whether the page is a word of the command's completion, without a buffer.
    pub(crate) fn is_word(self) -> bool {
        matches!(self, Self::FdpMode(_))
    }

    /// Returns its length as a field of commands: in dwords, less one.
    fn dwords(self) -> u32 {
        // Never fails: lengths are at most 4096 bytes.
        u32::try_from(self.length() / 4 - 1).unwrap_or(0)
    }

    /// Get Log Page: the number of dwords less one in NUMDL and NUMDU, LSI above the latter.
    fn log(self, lid: u32, nsid: u32, lsi: u16, uuid: u8) -> Command {
        let dwords = self.dwords();
        Command {
            queue: Queue::Admin,
            opcode: GET_LOG_PAGE,
            nsid,
            cdw10: lid | (dwords & 0xffff) << 16,
            cdw11: dwords >> 16 | u32::from(lsi) << 16,
            cdw14: u32::from(uuid & 0x7f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_of_the_specification() {
        let command = |opcode, nsid, cdw10, cdw11, cdw14| Command {
            queue: if opcode == 0x12 {
                Queue::Io
            } else {
                Queue::Admin
            },
            opcode,
            nsid,
            cdw10,
            cdw11,
            cdw14,
        };
        for (page, expected) in [
            (Page::Controller, command(6, 0, 1, 0, 0)),
            (Page::Namespaces, command(6, 0, 2, 0, 0)),
            (Page::Namespace(7), command(6, 7, 0, 0, 0)),
            (Page::Uuids, command(6, 0, 0x17, 0, 0)),
            (Page::Streams(1), command(0x1a, 1, 7, 0x0101, 0)),
            (Page::Smart, command(2, u32::MAX, 0x007f_8002, 0, 0)),
            (
                Page::Endurance(3),
                command(2, 0, 0x007f_8009, 0x0003_0000, 0),
            ),
            (Page::Fdp(1), command(2, 0, 0x000f_0022, 0x0001_0000, 0)),
            (Page::FdpMode(3), command(0x0a, 0, 0x1d, 3, 0)),
            (
                Page::FdpConfigurations(1),
                command(2, 0, 0x03ff_0020, 0x0001_0000, 0),
            ),
            (
                Page::FdpUsage(2),
                command(2, 0, 0x03ff_0021, 0x0002_0000, 0),
            ),
            (Page::Handles(5), command(0x12, 5, 1, 0x3ff, 0)),
            (
                Page::VendorC0 { uuid: 2 },
                command(2, u32::MAX, 0x007f_00c0, 0, 2),
            ),
            (Page::VendorCa, command(2, u32::MAX, 0x007f_00ca, 0, 0)),
        ] {
            assert_eq!(page.command(), expected, "{page:?}");
        }
    }
}
