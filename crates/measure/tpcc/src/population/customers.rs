//! Rows of CUSTOMER and HISTORY.

use fastrand::Rng;

use super::warehouses::write_address;
use super::{Part, Population, Sink};
use crate::spec::nurand::NuRand;
use crate::spec::text::{Tenth, a_string, last_name, n_string};
use crate::spec::{CUSTOMERS, DISTRICTS};

/// Customers of a district up to this number have the last names with the numbers 0, 1, 2 and so
/// on. The last names of the others are random (§4.3.3.1).
const NAMED_IN_ORDER: u32 = 1000;

impl Population {
    pub(super) fn write_customers<S: Sink + ?Sized>(
        &self,
        w_id: u32,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        for d_id in 1..=DISTRICTS {
            let mut rng = self.rng(Part::Customers, w_id, d_id);
            let mut bad = Tenth::of(CUSTOMERS);
            for c_id in 1..=CUSTOMERS {
                for key in [w_id, d_id, c_id] {
                    sink.int(key.into());
                }
                let credit = if bad.chooses(&mut rng) { "BC" } else { "GC" };
                self.write_customer(c_id, credit, sink, &mut rng);
                sink.end_row()?;
            }
        }
        Ok(())
    }

    /// Writes the columns after the key.
    fn write_customer<S: Sink + ?Sized>(
        &self,
        c_id: u32,
        credit: &str,
        sink: &mut S,
        rng: &mut Rng,
    ) {
        sink.decimal(rng.i64(0..=5000), 4);
        sink.text(credit);
        sink.text(&self.last_name_of(c_id, rng));
        sink.text(&a_string(rng, 8..=16));
        sink.decimal(5_000_000, 2);
        sink.decimal(-1000, 2);
        sink.decimal(1000, 2);
        sink.int(1); // C_PAYMENT_CNT
        sink.int(0); // C_DELIVERY_CNT
        write_address(sink, rng);
        sink.text(&n_string(rng, 16));
        sink.time(self.now);
        sink.text("OE");
        sink.text(&a_string(rng, 300..=500));
    }

    fn last_name_of(&self, c_id: u32, rng: &mut Rng) -> String {
        if c_id <= NAMED_IN_ORDER {
            last_name(c_id - 1)
        } else {
            last_name(NuRand::last_name(self.constants.last_name).draw(rng))
        }
    }

    pub(super) fn write_history<S: Sink + ?Sized>(
        &self,
        w_id: u32,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        for d_id in 1..=DISTRICTS {
            let mut rng = self.rng(Part::History, w_id, d_id);
            for c_id in 1..=CUSTOMERS {
                let district = u64::from(w_id - 1) * u64::from(DISTRICTS) + u64::from(d_id - 1);
                let hist_id = district * u64::from(CUSTOMERS) + u64::from(c_id);
                sink.int(i64::try_from(hist_id).unwrap_or(i64::MAX));
                for reference in [c_id, d_id, w_id, d_id, w_id] {
                    sink.int(reference.into());
                }
                sink.time(self.now);
                sink.decimal(1000, 2);
                sink.text(&a_string(&mut rng, 12..=24));
                sink.end_row()?;
            }
        }
        Ok(())
    }
}
