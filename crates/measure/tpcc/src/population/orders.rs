//! Rows of ORDER, ORDER-LINE and NEW-ORDER.

use fastrand::Rng;

use super::{Part, Population, Sink};
use crate::spec::text::a_string;
use crate::spec::{CUSTOMERS, DISTRICTS, FIRST_UNDELIVERED, ITEMS, ORDERS};

/// The values of an order on which both ORDER and ORDER-LINE depend.
struct Order {
    o_id: u32,
    c_id: u32,
    carrier: Option<u32>,
    lines: u32,
}

impl Population {
    /// The orders of a district: one for each customer, in random order.
    fn orders(&self, w_id: u32, d_id: u32) -> impl Iterator<Item = Order> {
        let mut rng = self.rng(Part::Orders, w_id, d_id);
        let mut customers: Vec<u32> = (1..=CUSTOMERS).collect();
        rng.shuffle(&mut customers);
        (1..=ORDERS).zip(customers).map(move |(o_id, c_id)| Order {
            o_id,
            c_id,
            carrier: (o_id < FIRST_UNDELIVERED).then(|| rng.u32(1..=10)),
            lines: rng.u32(5..=15),
        })
    }

    pub(super) fn write_orders<S: Sink + ?Sized>(
        &self,
        w_id: u32,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        for d_id in 1..=DISTRICTS {
            for order in self.orders(w_id, d_id) {
                for key in [w_id, d_id, order.o_id, order.c_id] {
                    sink.int(key.into());
                }
                match order.carrier {
                    Some(carrier) => sink.int(carrier.into()),
                    None => sink.null(),
                }
                sink.int(order.lines.into());
                sink.int(1); // O_ALL_LOCAL
                sink.time(self.now);
                sink.end_row()?;
            }
        }
        Ok(())
    }

    pub(super) fn write_order_lines<S: Sink + ?Sized>(
        &self,
        w_id: u32,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        for d_id in 1..=DISTRICTS {
            let mut rng = self.rng(Part::OrderLines, w_id, d_id);
            for order in self.orders(w_id, d_id) {
                for number in 1..=order.lines {
                    for key in [w_id, d_id, order.o_id, number] {
                        sink.int(key.into());
                    }
                    self.write_line(w_id, &order, sink, &mut rng);
                    sink.end_row()?;
                }
            }
        }
        Ok(())
    }

    /// Writes the columns after the key.
    fn write_line<S: Sink + ?Sized>(&self, w_id: u32, order: &Order, sink: &mut S, rng: &mut Rng) {
        sink.int(rng.i64(1..=i64::from(ITEMS)));
        if order.carrier.is_some() {
            sink.time(self.now);
            sink.decimal(0, 2);
        } else {
            sink.null();
            sink.decimal(rng.i64(1..=999_999), 2);
        }
        sink.int(w_id.into());
        sink.int(5); // OL_QUANTITY
        sink.text(&a_string(rng, 24..=24));
    }

    pub(super) fn write_new_orders<S: Sink + ?Sized>(
        &self,
        w_id: u32,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        for d_id in 1..=DISTRICTS {
            for o_id in FIRST_UNDELIVERED..=ORDERS {
                for key in [w_id, d_id, o_id] {
                    sink.int(key.into());
                }
                sink.end_row()?;
            }
        }
        Ok(())
    }
}
