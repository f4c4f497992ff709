//! A consumer that leaves bytes in its ring, which the producer then sends by TCP.

use super::*;

#[test]
fn a_recalled_ring_gives_each_byte_to_exactly_one_side() {
    check(3, || {
        let c = Channel::new(1, 2);
        let writer = thread::spawn({
            let c = c.clone();
            move || {
                let (all, mut sent, mut back) = (counting(3), 0, Vec::new());
                for size in [1, 2] {
                    match c.write(&all[sent..sent + size]) {
                        Put::Bytes { n, .. } => sent += n,
                        other => assert_eq!(other, Put::Frozen),
                    }
                }
                if c.ring.frozen() {
                    assert!(c.ring.recalled(), "a frozen ring shows the recall");
                    back = c.take_back(3);
                }
                (sent, back)
            }
        });
        let mut got = Vec::new();
        c.read(1, &mut got);
        c.ring.recall();
        let (sent, back) = writer.join().unwrap();
        got.extend(back);
        got.extend(c.take_back(3));
        assert_eq!(got, counting(sent));
    });
}

/// The producer's part, as in `send::give_back`: the bytes that TCP carries. `None`: the consumer
/// has taken the same bytes, and the connection is reset.
fn give_back(c: &Channel) -> Option<Vec<u8>> {
    let mut by_tcp = Vec::new();
    while c.ring.recalled() && c.ring.readable() {
        let (from, mut byte) = (c.ring.tail(), [0]);
        let got = c.ring.read_recalled(&c.bytes, &mut [&mut byte], true);
        if let Got::Bytes { n, .. } = got {
            by_tcp.extend(byte);
            if !c.ring.skip(from, n as u64) {
                return None;
            }
        }
    }
    Some(by_tcp)
}

/// A signal handler of the reader recalls the ring at any moment of a read.
#[test]
fn a_read_interrupted_by_a_recall_neither_doubles_nor_skips_a_byte() {
    check(2, || {
        let c = Channel::new(2, 2);
        assert_eq!(c.send(&counting(3)), 3);
        let handler = thread::spawn({
            let c = c.clone();
            move || c.ring.recall()
        });
        let producer = thread::spawn({
            let c = c.clone();
            move || give_back(&c)
        });
        let mut got = Vec::new();
        while matches!(c.read(2, &mut got), Got::Bytes { .. }) {}
        handler.join().unwrap();
        if let (Some(by_tcp), Some(late)) = (producer.join().unwrap(), give_back(&c)) {
            got.extend(by_tcp);
            got.extend(late);
            assert_eq!(got, counting(3));
        }
    });
}
