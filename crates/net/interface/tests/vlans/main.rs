//! VLAN interfaces, on a kernel that has them (`CONFIG_VLAN_8021Q`), in QEMU.
//!
//! `tools/qemu target/qemu` fetches QEMU, the kernel and its modules; `make soak` calls it. The
//! machine runs this program again, with a variable that says where it is. Needs ip(8) and xz(1).
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod machine;
#[expect(dead_code, reason = "the tests without a machine use the rest")]
#[path = "../kernel/namespace.rs"]
mod namespace;
mod vlans;

#[test]
fn vlans_are_read_and_followed() {
    if std::env::var_os(machine::INSIDE).is_some() {
        vlans::tags_are_those_of_the_frames();
        vlans::changes_are_told();
    } else {
        machine::run_this_program();
    }
}
