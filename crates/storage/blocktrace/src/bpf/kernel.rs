//! Offsets in this kernel's `struct bio` and the numbers of its operations, read from its BTF.
//!
//! Optional fields and operations that a kernel does not have are `None` (`bi_write_hint` before
//! Linux 6.9).

use std::path::Path;

use btfparse::{
    Error, ErrorKind, FuncProto, Integer32Value, Offset, Readable, TypeInformation, TypeVariant,
};

use crate::event::Operation;

/// The parts of the kernel's layout that the programs need. Offsets are in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kernel {
    /// Index of the bio among the arguments of the tracepoint, counted from 0.
    pub(super) bio_argument: i16,
    /// Offset in `struct bio` of operation and flags, 4 bytes.
    pub(super) opf: i32,
    /// Offset in `struct bio` of the first sector's number, 8 bytes.
    pub(super) sector: i32,
    /// Offset in `struct bio` of the number of bytes, 4 bytes.
    pub(super) size: i32,
    /// Offset in `struct bio` of the pointer to the device.
    pub(super) bdev: i32,
    /// Offset in `struct block_device` of the device's number, 4 bytes.
    pub(super) dev: i32,
    /// Offset in `struct bio` of the byte with the hint.
    pub(super) hint: Option<i32>,
    pub(super) operations: Operations,
}

/// Numbers of `enum req_op`, and bits of `enum req_flag_bits`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Operations {
    pub(super) write: u32,
    pub(super) zone_append: Option<u32>,
    pub(super) discard: u32,
    pub(super) secure_erase: Option<u32>,
    pub(super) write_zeroes: Option<u32>,
    /// `REQ_NOUNMAP` as a mask.
    pub(super) no_unmap: u32,
    /// `REQ_META` as a mask.
    pub(super) meta: u32,
}

/// `REQ_OP_MASK`: the bits of the operation in `bi_opf`.
pub(super) const OPERATION_MASK: u32 = 0xff;

impl Operations {
    pub(super) fn is_metadata(&self, opf: u32) -> bool {
        opf & self.meta != 0
    }

    /// Returns the operation in `bi_opf`; `None` for reads and operations without data.
    pub(super) fn of(&self, opf: u32) -> Option<Operation> {
        let operation = opf & OPERATION_MASK;
        let is = |number: Option<u32>| number == Some(operation);
        if operation == self.write || is(self.zone_append) {
            Some(Operation::Write)
        } else if operation == self.discard || is(self.secure_erase) {
            Some(Operation::Discard)
        } else if is(self.write_zeroes) {
            let must_stay = opf & self.no_unmap != 0;
            Some(if must_stay {
                Operation::Write
            } else {
                Operation::Discard
            })
        } else {
            None
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum BtfError {
    #[error("cannot read {path}: {error} (the kernel needs CONFIG_DEBUG_INFO_BTF)")]
    Read { path: String, error: std::io::Error },
    #[error("{path} is not valid BTF: {message}")]
    Parse { path: String, message: String },
    #[error("{path} has no {name}: this version of the kernel is not supported")]
    Missing { path: String, name: &'static str },
}

/// The contents of a file, in the form that btfparse reads.
struct Bytes(Vec<u8>);

impl Readable for Bytes {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let from = usize::try_from(offset).ok();
        let end = from.and_then(|from| from.checked_add(buffer.len()));
        let part = from.zip(end).and_then(|(from, end)| self.0.get(from..end));
        let part = part.ok_or_else(|| Error::new(ErrorKind::EOF, "the file ends too early"))?;
        buffer.copy_from_slice(part);
        Ok(())
    }
}

/// Reads a BTF file such as `/sys/kernel/btf/vmlinux`.
pub(super) fn read(path: &Path) -> Result<Kernel, BtfError> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| BtfError::Read {
        path: name.clone(),
        error,
    })?;
    let types = TypeInformation::new(&Bytes(bytes)).map_err(|error| BtfError::Parse {
        path: name.clone(),
        message: error.message().to_owned(),
    })?;
    find(&types).map_err(|missing| BtfError::Missing {
        path: name,
        name: missing,
    })
}

/// Returns the kernel's layout, or the name of the missing type or member.
fn find(types: &TypeInformation) -> Result<Kernel, &'static str> {
    let prototype = prototype(types).ok_or("btf_trace_block_bio_queue")?;
    // The first parameter is the tracer's data, not an argument of the tracepoint.
    let mut arguments = prototype.parameter_list().iter().skip(1);
    let found = arguments.by_ref().enumerate().find_map(|(number, it)| {
        let bio = pointed(types, it.tid())?;
        (types.name_of(bio).as_deref() == Some("bio")).then_some((number, bio))
    });
    let (number, bio) = found.ok_or("bio among the arguments of block_bio_queue")?;
    let (bdev_pointer, bdev_offset, _) = member(types, bio, "bi_bdev").ok_or("bi_bdev")?;
    let bdev = pointed(types, bdev_pointer).ok_or("struct block_device")?;
    let sized = |structure, name: &'static str, size| match member(types, structure, name) {
        Some((_, offset, found)) if found == size => Ok(offset),
        _ => Err(name),
    };
    Ok(Kernel {
        bio_argument: i16::try_from(number).map_err(|_| "bio among the first arguments")?,
        opf: sized(bio, "bi_opf", 4)?,
        sector: sized(bio, "bi_iter.bi_sector", 8)?,
        size: sized(bio, "bi_iter.bi_size", 4)?,
        bdev: bdev_offset,
        dev: sized(bdev, "bd_dev", 4)?,
        hint: low_byte(types, bio, "bi_write_hint"),
        operations: operations(types)?,
    })
}

/// Returns the prototype to which the typedef `btf_trace_block_bio_queue` points.
fn prototype(types: &TypeInformation) -> Option<FuncProto> {
    let typedef = types.id_of("btf_trace_block_bio_queue")?;
    let TypeVariant::Typedef(typedef) = types.from_id(typedef)? else {
        return None;
    };
    let TypeVariant::FuncProto(prototype) = types.from_id(pointed(types, *typedef.tid())?)? else {
        return None;
    };
    Some(prototype)
}

/// Returns the type to which a pointer type points.
fn pointed(types: &TypeInformation, pointer: u32) -> Option<u32> {
    let TypeVariant::Ptr(pointer) = types.from_id(pointer)? else {
        return None;
    };
    Some(*pointer.tid())
}

/// Returns type, offset and size of a member; `None` for a bit field.
fn member(types: &TypeInformation, structure: u32, path: &str) -> Option<(u32, i32, usize)> {
    let (tid, offset) = types.offset_of(structure, path).ok()?;
    let Offset::ByteOffset(offset) = offset else {
        return None;
    };
    Some((tid, i32::try_from(offset).ok()?, types.size_of(tid).ok()?))
}

/// Returns the offset of a member's low byte: kernels store the hint in one byte or in two.
fn low_byte(types: &TypeInformation, structure: u32, path: &str) -> Option<i32> {
    let (_, offset, size) = member(types, structure, path)?;
    let last = i32::try_from(size.checked_sub(1)?).ok()?;
    Some(if cfg!(target_endian = "big") {
        offset + last
    } else {
        offset
    })
}

fn operations(types: &TypeInformation) -> Result<Operations, &'static str> {
    let mut values = Vec::new();
    for variant in types.get().values() {
        if let TypeVariant::Enum(it) = variant
            && matches!(
                it.name().as_deref(),
                // `req_op` was called `req_opf` before Linux 6.0.
                Some("req_op" | "req_opf" | "req_flag_bits")
            )
        {
            values.extend(it.named_value_list().clone());
        }
    }
    let value = |name: &'static str| {
        let found = values.iter().find(|it| it.name == name)?;
        match found.value {
            Integer32Value::Signed(value) => u32::try_from(value).ok(),
            Integer32Value::Unsigned(value) => Some(value),
        }
    };
    let needed = |name| value(name).ok_or(name);
    let bit = |name| 1_u32.checked_shl(needed(name)?).ok_or(name);
    Ok(Operations {
        write: needed("REQ_OP_WRITE")?,
        zone_append: value("REQ_OP_ZONE_APPEND"),
        discard: needed("REQ_OP_DISCARD")?,
        secure_erase: value("REQ_OP_SECURE_ERASE"),
        write_zeroes: value("REQ_OP_WRITE_ZEROES"),
        no_unmap: bit("__REQ_NOUNMAP")?,
        meta: bit("__REQ_META")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of Linux 6.18.
    const NUMBERS: Operations = Operations {
        write: 1,
        zone_append: Some(7),
        discard: 3,
        secure_erase: Some(5),
        write_zeroes: Some(9),
        no_unmap: 1 << 29,
        meta: 1 << 12,
    };

    #[test]
    fn operations_are_classified() {
        for (opf, expected) in [
            (0, None),
            (1, Some(Operation::Write)),
            (1 | 1 << 17, Some(Operation::Write)),
            (2, None),
            (3, Some(Operation::Discard)),
            (5, Some(Operation::Discard)),
            (7, Some(Operation::Write)),
            (9, Some(Operation::Discard)),
            (9 | 1 << 29, Some(Operation::Write)),
            (17, None),
        ] {
            assert_eq!(NUMBERS.of(opf), expected, "{opf:#x}");
        }
    }

    #[test]
    fn the_btf_of_the_running_kernel_is_read() {
        let kernel = read(Path::new("/sys/kernel/btf/vmlinux")).unwrap();
        let offsets = [kernel.opf, kernel.sector, kernel.size, kernel.bdev];
        for (number, offset) in offsets.iter().enumerate() {
            assert!(!offsets[..number].contains(offset), "{kernel:?}");
        }
        assert_eq!(kernel.operations.write, 1);
    }

    #[test]
    fn an_error_names_the_file() {
        let error = read(Path::new("/no/such/btf")).unwrap_err().to_string();
        assert!(error.contains("cannot read /no/such/btf: "), "{error}");
        let error = read(Path::new("/proc/self/cmdline"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("/proc/self/cmdline is not valid BTF: "),
            "{error}"
        );
    }
}
