//! Rules and routes: what is added, whose they are, and that nothing remains.

use std::net::{SocketAddr, TcpListener};
use std::thread;

use rustix::process::Uid;
use rustix::thread::set_thread_uid;
use saiga_anchor::{Config, Routes, RoutesError, TunError, remove_leftovers};
use saiga_trials::snapshot::{ip, network, sysctls};

use crate::world::{REMOTE, SERVER, address, in_world, talk, up};

fn both(port: u16) -> [SocketAddr; 2] {
    SERVER.map(|server| address(server, port))
}

#[test]
fn up_adds_what_the_facts_say_and_no_sysctl_changes() {
    in_world(|_| {
        let before = sysctls();
        let _routes = up(&both(6000));
        assert_eq!(sysctls(), before);
        for (family, any, server) in [("-4", "0.0.0.0/0", SERVER[0]), ("-6", "::/0", SERVER[1])] {
            let rules = ip(&format!("{family} rule show pref 100"));
            let expected =
                format!("100:\tfrom {server} iif lo ipproto tcp sport 6000 lookup 79 proto 79");
            assert_eq!(rules.trim_end(), expected);
            let routes = ip(&format!("{family} route show table 79 {any}"));
            assert!(routes.contains("dev saigal"), "{routes}");
        }
    });
}

#[test]
fn down_and_drop_leave_nothing() {
    in_world(|remote| {
        let (before, sysctls_before) = (network(), sysctls());
        let listener = TcpListener::bind(address(SERVER[0], 6000)).unwrap();
        let stream = remote.connect(REMOTE[0], address(SERVER[0], 6000));
        let accepted = listener.accept().unwrap().0;
        let begin = || {
            let mut served = both(6000).to_vec();
            served.extend(both(6001));
            // Twice, and in another form: once for the kernel.
            served.push(both(6000)[0]);
            served.push(address(&format!("::ffff:{}", SERVER[0]), 6000));
            let mut routes = up(&served);
            routes.leave("192.0.2.7".parse().unwrap()).unwrap();
            routes.leave("2001:db8::7".parse().unwrap()).unwrap();
            assert_eq!(routes.left().count(), 3);
            assert_ne!(network(), before);
            routes
        };
        begin().down().unwrap();
        assert_eq!(network(), before);
        drop(begin());
        assert_eq!(network(), before);
        assert_eq!(sysctls(), sysctls_before);
        talk(&stream, &accepted);
    });
}

#[test]
fn what_is_removed_by_others_is_not_an_error() {
    in_world(|_| {
        let before = network();
        let mut routes = up(&both(6000));
        routes.leave("192.0.2.7".parse().unwrap()).unwrap();
        ip("-4 rule del pref 100");
        ip("-4 route del throw 192.0.2.7 table 79");
        routes.down().unwrap();
        assert_eq!(network(), before);
    });
}

#[test]
fn a_second_gateway_is_refused() {
    in_world(|_| {
        let _first = up(&both(6000));
        let before = network();
        let second = |device: &str, table| {
            let config = Config {
                device: device.to_owned(),
                table,
                ..Config::default()
            };
            Routes::up(&config, &both(6001)).map(drop)
        };
        let refused = second("saigal", 79).unwrap_err();
        assert!(
            matches!(&refused, RoutesError::Tun(TunError::Taken { name }) if name == "saigal"),
            "{refused}"
        );
        let refused = second("saigal2", 79).unwrap_err();
        assert!(
            matches!(refused, RoutesError::Gateway { table: 79 }),
            "{refused}"
        );
        assert_eq!(network(), before);
        // With names and numbers of its own it runs beside the first, and takes nothing from it.
        second("saigal2", 80).unwrap();
        assert_eq!(remove_leftovers(79).unwrap(), Vec::<String>::new());
        assert_eq!(network(), before);
    });
}

#[test]
fn rules_and_routes_of_others_stay() {
    in_world(|_| {
        ip("-4 rule add pref 100 from 10.77.0.9 lookup 79");
        ip("-6 rule add pref 100 iif lo from fd77::1 ipproto tcp sport 7000 lookup 79");
        let before = network();
        up(&both(6000)).down().unwrap();
        assert_eq!(network(), before);
        ip("-6 route add throw 2001:db8::/32 table 79");
        let before = network();
        let refused = Routes::up(&Config::default(), &both(6000))
            .map(drop)
            .unwrap_err();
        assert!(
            matches!(refused, RoutesError::Foreign { table: 79 }),
            "{refused}"
        );
        assert_eq!(network(), before);
    });
}

#[test]
fn a_change_that_the_kernel_refuses_is_named_and_all_is_undone() {
    in_world(|_| {
        // The TUN device of the gateway will have no IPv6.
        std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").unwrap();
        let before = network();
        let refused = Routes::up(&Config::default(), &both(6000)).map(drop);
        let refused = refused.unwrap_err().to_string();
        let action = "cannot add route local ::/0 table 79: ";
        assert!(refused.starts_with(action), "{refused}");
        assert_eq!(network(), before);
    });
}

#[test]
fn bad_settings_are_named_and_change_nothing() {
    in_world(|_| {
        let before = network();
        let served = both(6000);
        for unfit in [
            "127.0.0.1:6000",
            "[::1]:6000",
            "[fe80::1]:6000",
            "0.0.0.0:6000",
            "10.77.0.1:0",
        ] {
            let unfit: SocketAddr = unfit.parse().unwrap();
            let refused = Routes::up(&Config::default(), &[served[0], unfit]).map(drop);
            let refused = refused.unwrap_err();
            assert!(matches!(refused, RoutesError::Unfit { served } if served == unfit));
        }
        let with = |device: &str, table, preference| {
            let device = device.to_owned();
            let config = Config {
                device,
                table,
                preference,
            };
            Routes::up(&config, &served).map(drop).unwrap_err()
        };
        for (table, preference) in [(0, 100), (254, 100), (79, 0), (79, 32_766)] {
            let refused = with("saigal", table, preference);
            assert!(matches!(refused, RoutesError::Number { .. }), "{refused}");
        }
        for name in ["", "saigal%d", "a/b", "sixteen-letters."] {
            let refused = with(name, 79, 100);
            assert!(
                matches!(refused, RoutesError::Tun(TunError::Name { .. })),
                "{name}: {refused}"
            );
        }
        let refused = with("vs", 79, 100);
        assert!(matches!(refused, RoutesError::Tun(TunError::Taken { .. })));
        assert_eq!(network(), before);
    });
}

#[test]
fn a_process_without_the_right_is_told_so() {
    in_world(|_| {
        let before = network();
        // The thread is in the namespace of the one that starts it.
        let refused = thread::spawn(|| {
            set_thread_uid(Uid::from_raw(65_534)).unwrap();
            Routes::up(&Config::default(), &both(6000)).map(drop)
        });
        let refused = refused.join().unwrap().unwrap_err();
        let is_right = matches!(
            refused,
            RoutesError::Tun(TunError::NoRight | TunError::Driver { .. })
        );
        assert!(is_right, "{refused}");
        assert_eq!(network(), before);
    });
}
