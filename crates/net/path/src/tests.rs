//! Each property of a path alone, against literal times and against probabilities.

use crate::{Chance, Link, Loss, Path, Queue, Reordering};

/// Sends packets 0 to `count`, `apart_us` apart; returns arrivals with their packets, by time.
fn run(path: Path, count: u32, apart_us: u64) -> (Vec<(u64, u32)>, Link<u32>) {
    let mut link = Link::new(path, 1);
    let mut arrivals = vec![];
    for packet in 0..count {
        let now = u64::from(packet) * apart_us;
        drain(&mut link, now, &mut arrivals);
        link.send(packet, 1000, now);
    }
    drain(&mut link, u64::MAX, &mut arrivals);
    (arrivals, link)
}

fn drain(link: &mut Link<u32>, until: u64, arrivals: &mut Vec<(u64, u32)>) {
    while let Some(at) = link.next_arrival_us().filter(|at| *at <= until) {
        while let Some(one) = link.receive(at) {
            arrivals.push((at, one.packet));
        }
    }
}

/// 8 Mbit/s: a packet of 1000 bytes takes a millisecond.
const BOTTLENECK: Path = Path {
    rate: Some(8_000_000),
    ..Path::ideal(5000)
};

#[test]
fn packets_leave_the_bottleneck_at_its_rate() {
    let (arrivals, _) = run(BOTTLENECK, 3, 0);
    assert_eq!(arrivals, [(6000, 0), (7000, 1), (8000, 2)]);
    // Slower than the rate, no packet waits.
    let (arrivals, _) = run(BOTTLENECK, 2, 2000);
    assert_eq!(arrivals, [(6000, 0), (8000, 1)]);
}

#[test]
fn packets_are_in_flight_until_they_are_received() {
    let path = Path {
        duplication: Chance::per_million(1_000_000),
        ..Path::ideal(5000)
    };
    let mut link = Link::new(path, 1);
    assert_eq!(link.in_flight(), 0);
    link.send(7, 1000, 0);
    assert_eq!(link.in_flight(), 2);
    assert!(link.receive(5000).is_some());
    assert_eq!(link.in_flight(), 1);
}

#[test]
fn a_full_queue_drops_what_comes_last() {
    for queue in [Queue::Packets(3), Queue::Bytes(3999)] {
        let path = Path {
            queue,
            ..BOTTLENECK
        };
        // Packet 4 finds the room that packet 0 has left.
        let (arrivals, link) = run(path, 5, 250);
        let packets: Vec<u32> = arrivals.iter().map(|(_, packet)| *packet).collect();
        assert_eq!(packets, [0, 1, 2, 4], "{queue:?}");
        assert_eq!(link.totals().overflowed, 1, "{queue:?}");
    }
}

#[test]
fn packets_above_the_limit_are_marked() {
    let path = Path {
        mark_above: Some(1500),
        ..BOTTLENECK
    };
    let mut link = Link::new(path, 1);
    for packet in 0..4 {
        link.send(packet, 1000, 0);
    }
    let marked: Vec<bool> = std::iter::from_fn(|| link.receive(u64::MAX))
        .map(|one| one.is_marked)
        .collect();
    assert_eq!(marked, [false, false, true, true]);
}

#[test]
fn packets_above_the_mtu_vanish() {
    for (mtu, lost) in [(999, 2), (1000, 0)] {
        let path = Path {
            mtu: Some(mtu),
            ..BOTTLENECK
        };
        let (arrivals, link) = run(path, 2, 2000);
        assert_eq!(arrivals.len(), 2 - lost, "{mtu}");
        assert_eq!(link.totals().lost, lost as u64, "{mtu}");
    }
}

#[test]
fn random_loss_has_its_rate_and_no_memory() {
    let path = Path {
        loss: Loss::Random(Chance::per_mille(100)),
        ..Path::ideal(0)
    };
    let (arrivals, link) = run(path, 100_000, 10);
    let lost = link.totals().lost;
    assert!((9_600..10_400).contains(&lost), "{lost}");
    // The next packet after a loss is lost as often as any.
    let pairs = arrivals.windows(2).filter(|two| two[1].1 - two[0].1 > 2);
    let pairs = pairs.count();
    assert!((800..1_000).contains(&pairs), "{pairs}");
}

#[test]
fn bursts_have_their_mean_length() {
    let loss = Loss::Burst {
        begin: Chance::per_mille(2),
        end: Chance::per_mille(200),
        loss: Chance::per_mille(1000),
    };
    let path = Path {
        loss,
        ..Path::ideal(0)
    };
    let (arrivals, link) = run(path, 500_000, 10);
    let lost = link.totals().lost as f64;
    assert!(
        (lost / 500_000.0 / loss.mean() - 1.0).abs() < 0.08,
        "{lost}"
    );
    let bursts = arrivals.windows(2).filter(|two| two[1].1 - two[0].1 > 1);
    let length = lost / bursts.count() as f64;
    assert!((4.7..5.3).contains(&length), "{length}");
}

#[test]
fn an_overtaken_packet_arrives_behind_as_many_as_asked() {
    let path = Path {
        reordering: Reordering::Behind {
            chance: Chance::per_mille(10),
            packets: 3,
            most_us: 1000,
        },
        ..Path::ideal(0)
    };
    let (arrivals, link) = run(path, 10_000, 10);
    assert_eq!(arrivals.len(), 10_000);
    let mut late = 0;
    let mut newest = 0;
    for (_, packet) in &arrivals {
        if *packet < newest {
            late += 1;
            // Another packet that was held counts for none of the three.
            let behind = newest - packet;
            assert!((3..=6).contains(&behind), "{behind}");
        }
        newest = newest.max(*packet);
    }
    assert!((60..140).contains(&late), "{late}");
    assert!(link.totals().reordered >= late, "{late}");
}

#[test]
fn jitter_delays_and_keeps_the_order() {
    let path = Path {
        jitter_us: 50,
        ..Path::ideal(100)
    };
    let (arrivals, _) = run(path, 1000, 20);
    assert!(arrivals.is_sorted());
    let late: Vec<u64> = arrivals
        .iter()
        .map(|(at, packet)| at - 100 - 20 * u64::from(*packet))
        .collect();
    assert!(late.iter().all(|late| *late <= 50), "{late:?}");
    let mean = late.iter().sum::<u64>() / 1000;
    // Half of the jitter, and the waits for packets before.
    assert!((24..40).contains(&mean), "{mean}");
}

#[test]
fn a_held_packet_goes_on_when_nothing_follows() {
    let path = Path {
        reordering: Reordering::Behind {
            chance: Chance::per_mille(1000),
            packets: 3,
            most_us: 700,
        },
        ..Path::ideal(100)
    };
    let (arrivals, _) = run(path, 2, 10);
    assert_eq!(arrivals, [(800, 0), (810, 1)]);
}

#[test]
fn the_same_seed_gives_the_same_arrivals() {
    let path = Path {
        loss: Loss::Random(Chance::per_mille(50)),
        duplication: Chance::per_mille(50),
        reordering: Reordering::Late {
            chance: Chance::per_mille(300),
            most_us: 3000,
        },
        ..BOTTLENECK
    };
    let first = run(path, 1000, 900).0;
    assert_eq!(first, run(path, 1000, 900).0);
    assert!(first.windows(2).any(|two| two[1].1 < two[0].1));
}
