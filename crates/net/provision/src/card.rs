//! Network cards on PCI: which driver one has, whether it can go to user space, and the way there
//! and back.
//!
//! Source: kernel Documentation/ABI/testing/sysfs-bus-pci, driver-api/vfio.rst. The driver is
//! chosen by `driver_override`, which concerns this card alone; other ways (`new_id`) would also
//! take cards of the same type. A group of the IOMMU goes to user space as a whole, so all its
//! devices are looked at.

use std::io;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use saiga_process::root::Root;

use crate::machine::Machine;
use crate::module::{self, VFIO_PCI};
use crate::pci::PciAddress;

/// Drivers that give a device to user space.
const FOR_USERS: [&str; 3] = [VFIO_PCI, "igb_uio", "uio_pci_generic"];
/// Drivers that share their cards with DPDK.
const SHARING: [&str; 3] = ["mlx4_core", "mlx5_core", "mana"];
/// Drivers beside which vfio takes a group: they make no DMA of their own
/// (drivers/vfio/vfio_main.c, `driver_managed_dma`).
const HARMLESS: [&str; 3] = [VFIO_PCI, "pci-stub", "pcieport"];
/// Classes of PCI devices: the first two digits of network cards, the first four of bridges.
const NETWORK: &str = "0x02";
const BRIDGE: &str = "0x0604";

/// The place of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// DPDK can use it.
    WithDpdk,
    /// The kernel has it, and `prepare` can take it.
    WithKernel,
}

/// Why a card cannot go to user space.
#[derive(Debug, thiserror::Error)]
pub enum CardError {
    /// There is no such device.
    #[error("there is no PCI device {card}: lspci -D lists them")]
    Absent {
        /// PCI address of the card.
        card: PciAddress,
    },
    /// The device is something else.
    #[error("{card} is not a network card: its class is {class}")]
    OtherClass {
        /// PCI address of the card.
        card: PciAddress,
        /// The class, such as `0x010802` for NVMe drives.
        class: String,
    },
    /// The kernel uses the card.
    #[error(
        "{card} is the network interface {interface}, which {use_}: its configuration would be \
         lost. If it is not needed, remove it first (ip link set {interface} down; ip address \
         flush dev {interface})"
    )]
    InUse {
        /// PCI address of the card.
        card: PciAddress,
        /// Name of its network interface.
        interface: String,
        /// The uses of the interface, in words.
        use_: String,
    },
    /// The driver's interface is not visible here.
    #[error(
        "{card} has the driver {driver} and no network interface here: it may be in another \
         network namespace; move it back, or unbind the card"
    )]
    Hidden {
        /// PCI address of the card.
        card: PciAddress,
        /// Name of the driver that has it.
        driver: String,
    },
    /// Its virtual functions are in use.
    #[error("{card} has {count} virtual functions, which would end: remove them first")]
    Functions {
        /// PCI address of the card.
        card: PciAddress,
        /// Number of virtual functions (`sriov_numvfs`).
        count: u32,
    },
    /// Other devices of its group would have to go with it.
    #[error(
        "{card} is in an IOMMU group with {}: they would be without their drivers as well; name \
         them as devices, unbind them, or put the card into another slot",
        others.join(", ")
    )]
    Group {
        /// PCI address of the card.
        card: PciAddress,
        /// The others, with their drivers.
        others: Vec<String>,
    },
    /// There is no IOMMU.
    #[error(
        "{card} has no IOMMU, which limits the memory that a card reads and writes: switch it on \
         (firmware, and kernel parameter intel_iommu=on or amd_iommu=on); or allow vfio to go \
         without (modprobe vfio enable_unsafe_noiommu_mode=1), and a program that has the card can \
         read and write all memory"
    )]
    NoIommu {
        /// PCI address of the card.
        card: PciAddress,
    },
    /// The driver did not take the card.
    #[error("{card} was not taken by the driver {driver}; the kernel's messages say why (dmesg)")]
    NotTaken {
        /// PCI address of the card.
        card: PciAddress,
        /// Name of the driver that was to take it.
        driver: String,
    },
    /// A program has the card.
    #[error("a program uses {card}: end it first")]
    Open {
        /// PCI address of the card.
        card: PciAddress,
    },
    /// A file of the kernel cannot be read or written.
    #[error("{card}: {source}")]
    System {
        /// PCI address of the card.
        card: PciAddress,
        /// The error of the kernel.
        source: io::Error,
    },
}

/// The driver of a card, and the one that it is reserved for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Binding {
    pub(crate) driver: Option<String>,
    pub(crate) reserved_for: Option<String>,
}

impl Binding {
    /// The binding of a card; `None` if the card is gone.
    pub(crate) fn read(root: &Root, card: PciAddress) -> io::Result<Option<Self>> {
        let folder = folder(card);
        if !root.exists(&folder) {
            return Ok(None);
        }
        let reserved_for = root.text(format!("{folder}/driver_override"))?;
        Ok(Some(Self {
            driver: root.link_name(format!("{folder}/driver")),
            reserved_for: reserved_for.filter(|name| !name.is_empty() && name != "(null)"),
        }))
    }
}

fn folder(card: PciAddress) -> String {
    format!("/sys/bus/pci/devices/{card}")
}

fn system(card: PciAddress) -> impl Fn(io::Error) -> CardError {
    move |source| CardError::System { card, source }
}

/// The card of a network interface; `None` if it has none on PCI.
fn of_interface(root: &Root, interface: &str) -> Option<PciAddress> {
    // `../../devices/pci0000:00/0000:00:04.0/net/eth0`, or `.../0000:00:04.0/virtio1/net/eth0`. The
    // path of a USB device also has the address of its controller, but further up.
    let target = root.link(format!("/sys/class/net/{interface}")).ok()?;
    let mut parts = target.iter().rev().skip(2).filter_map(|part| part.to_str());
    let device = parts.next()?;
    let device = if device.starts_with("virtio") {
        parts.next()?
    } else {
        device
    };
    device.parse().ok()
}

/// The network interfaces of a card in this network namespace.
fn interfaces(root: &Root, card: PciAddress) -> io::Result<Vec<String>> {
    let mut names = root.names("/sys/class/net")?;
    names.retain(|name| of_interface(root, name) == Some(card));
    Ok(names)
}

/// The card whose network interface has this MAC address.
///
/// # Errors
/// The names of the interfaces cannot be read.
pub fn with_mac(root: &Root, mac: &str) -> io::Result<Option<PciAddress>> {
    let names = root.names("/sys/class/net")?;
    let has_it = |name: &&String| {
        let address = root.text(format!("/sys/class/net/{name}/address"));
        address.is_ok_and(|address| address.as_deref() == Some(mac))
    };
    let named = names.iter().filter(has_it);
    // A VLAN or a bridge has the address of its card as well, and is not on PCI.
    let mut cards = named.filter_map(|name| of_interface(root, name));
    Ok(cards.next())
}

/// Where a card is, and whether it can go to DPDK together with `others`.
///
/// # Errors
/// A [`CardError`] with the obstacle.
pub fn look(
    machine: &dyn Machine,
    card: PciAddress,
    others: &[PciAddress],
) -> Result<Place, CardError> {
    let root = machine.root();
    let binding = Binding::read(root, card).map_err(system(card))?;
    let Binding { driver, .. } = binding.ok_or(CardError::Absent { card })?;
    let class = root.text(format!("{}/class", folder(card)));
    let class = class.map_err(system(card))?.unwrap_or_default();
    if !class.starts_with(NETWORK) {
        return Err(CardError::OtherClass { card, class });
    }
    let with_dpdk = FOR_USERS.iter().chain(&SHARING);
    if { with_dpdk }.any(|known| driver.as_deref() == Some(known)) {
        return Ok(Place::WithDpdk);
    }
    check_use(machine, card, driver.as_deref())?;
    check_group(root, card, others)?;
    Ok(Place::WithKernel)
}

/// Whether the kernel would lose something with the card.
fn check_use(
    machine: &dyn Machine,
    card: PciAddress,
    driver: Option<&str>,
) -> Result<(), CardError> {
    let root = machine.root();
    let functions = root.value(format!("{}/sriov_numvfs", folder(card)));
    match functions.map_err(system(card))? {
        None | Some(0) => {}
        Some(count) => return Err(CardError::Functions { card, count }),
    }
    let Some(driver) = driver else {
        return Ok(());
    };
    let interfaces = interfaces(root, card).map_err(system(card))?;
    if interfaces.is_empty() {
        let driver = driver.to_owned();
        return Err(CardError::Hidden { card, driver });
    }
    for interface in interfaces {
        let uses = uses(machine, &interface).map_err(system(card))?;
        if !uses.is_empty() {
            return Err(CardError::InUse {
                card,
                interface,
                use_: uses.join(", and "),
            });
        }
    }
    Ok(())
}

/// What a network interface is used for.
fn uses(machine: &dyn Machine, interface: &str) -> io::Result<Vec<String>> {
    let root = machine.root();
    let folder = format!("/sys/class/net/{interface}");
    let mut uses = Vec::new();
    let flags = root.text(format!("{folder}/flags"))?.unwrap_or_default();
    let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16);
    // Bit 0 is IFF_UP (include/uapi/linux/if.h).
    if flags.map_or(true, |flags| flags & 1 != 0) {
        uses.push("is up".to_owned());
    }
    if let Some(master) = root.link_name(format!("{folder}/master")) {
        uses.push(format!("belongs to {master}"));
    }
    let network = machine.network(interface)?;
    if !network.is_empty() {
        uses.push(format!("has {}", network.join(", ")));
    }
    Ok(uses)
}

/// Whether the IOMMU group of a card can go to user space.
fn check_group(root: &Root, card: PciAddress, named: &[PciAddress]) -> Result<(), CardError> {
    let group = format!("{}/iommu_group", folder(card));
    if !root.exists(&group) {
        let is_allowed = module::is_unsafe(root).map_err(system(card))?;
        return if is_allowed {
            Ok(())
        } else {
            Err(CardError::NoIommu { card })
        };
    }
    let members = root.names(format!("{group}/devices"));
    let mut others = Vec::new();
    for member in members.map_err(system(card))? {
        let address: Option<PciAddress> = member.parse().ok();
        let is_named = address.is_some_and(|one| one == card || named.contains(&one));
        let member_folder = format!("{group}/devices/{member}");
        let driver = root.link_name(format!("{member_folder}/driver"));
        let class = root.text(format!("{member_folder}/class"));
        let class = class.map_err(system(card))?.unwrap_or_default();
        match driver {
            Some(driver)
                if !is_named
                    && !class.starts_with(BRIDGE)
                    && !HARMLESS.contains(&driver.as_str()) =>
            {
                others.push(format!("{member} (driver {driver})"));
            }
            Some(_) | None => {}
        }
    }
    if others.is_empty() {
        return Ok(());
    }
    Err(CardError::Group { card, others })
}

/// Takes a card from its driver, and gives it to vfio-pci.
pub(crate) fn bind(machine: &mut dyn Machine, card: PciAddress) -> Result<(), CardError> {
    reserve(machine, card, Some(VFIO_PCI)).map_err(system(card))?;
    unbind(machine, card).map_err(system(card))?;
    probe(machine, card, VFIO_PCI)
}

/// Takes a card from vfio-pci, and gives it back to its driver.
pub(crate) fn release(
    machine: &mut dyn Machine,
    card: PciAddress,
    before: &Binding,
) -> Result<(), CardError> {
    let binding = Binding::read(machine.root(), card).map_err(system(card))?;
    let Some(Binding {
        driver,
        reserved_for,
    }) = binding
    else {
        return Ok(());
    };
    if driver != before.driver && driver.is_some() {
        check_closed(machine.root(), card)?;
        unbind(machine, card).map_err(system(card))?;
    }
    if reserved_for != before.reserved_for {
        let name = before.reserved_for.as_deref();
        reserve(machine, card, name).map_err(system(card))?;
    }
    match &before.driver {
        Some(name) if driver != before.driver => probe(machine, card, name),
        Some(_) | None => Ok(()),
    }
}

/// Reserves a card for the driver with this name; an empty line ends that.
fn reserve(machine: &mut dyn Machine, card: PciAddress, driver: Option<&str>) -> io::Result<()> {
    let value = format!("{}\n", driver.unwrap_or_default());
    machine.write(&format!("{}/driver_override", folder(card)), &value)
}

fn unbind(machine: &mut dyn Machine, card: PciAddress) -> io::Result<()> {
    let driver = format!("{}/driver", folder(card));
    if machine.root().link_name(&driver).is_none() {
        return Ok(());
    }
    machine.write(&format!("{driver}/unbind"), &format!("{card}\n"))
}

/// Lets the kernel look for the driver of a card, which must be `driver`.
fn probe(machine: &mut dyn Machine, card: PciAddress, driver: &str) -> Result<(), CardError> {
    let probed = machine.write("/sys/bus/pci/drivers_probe", &format!("{card}\n"));
    probed.map_err(system(card))?;
    let taken = machine.root().link_name(format!("{}/driver", folder(card)));
    if taken.as_deref() == Some(driver) {
        return Ok(());
    }
    let driver = driver.to_owned();
    Err(CardError::NotTaken { card, driver })
}

/// Whether no program has the card by vfio: the kernel would wait for its end.
fn check_closed(root: &Root, card: PciAddress) -> Result<(), CardError> {
    let group = root.link_name(format!("{}/iommu_group", folder(card)));
    let Some(group) = group.and_then(|group| group.parse::<u32>().ok()) else {
        return Ok(());
    };
    for file in [format!("{group}"), format!("noiommu-{group}")] {
        let file = root.path(format!("/dev/vfio/{file}"));
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        if rustix::fs::open(file, flags, Mode::empty()).err() == Some(Errno::BUSY) {
            return Err(CardError::Open { card });
        }
    }
    Ok(())
}
