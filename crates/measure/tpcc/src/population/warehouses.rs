//! Rows of WAREHOUSE and DISTRICT.

use fastrand::Rng;

use super::{Part, Population, Sink};
use crate::spec::text::{a_string, zip};
use crate::spec::{DISTRICTS, ORDERS};

impl Population {
    pub(super) fn write_warehouse<S: Sink + ?Sized>(
        &self,
        w_id: u32,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let mut rng = self.rng(Part::Warehouses, w_id, 0);
        sink.int(w_id.into());
        sink.decimal(30_000_000, 2);
        sink.decimal(rng.i64(0..=2000), 4);
        sink.text(&a_string(&mut rng, 6..=10));
        write_address(sink, &mut rng);
        sink.end_row()
    }

    pub(super) fn write_districts<S: Sink + ?Sized>(
        &self,
        w_id: u32,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        for d_id in 1..=DISTRICTS {
            let mut rng = self.rng(Part::Warehouses, w_id, d_id);
            sink.int(w_id.into());
            sink.int(d_id.into());
            sink.decimal(3_000_000, 2);
            sink.decimal(rng.i64(0..=2000), 4);
            sink.int((ORDERS + 1).into());
            sink.text(&a_string(&mut rng, 6..=10));
            write_address(sink, &mut rng);
            sink.end_row()?;
        }
        Ok(())
    }
}

/// Writes two streets, city, state and zip code.
pub(super) fn write_address<S: Sink + ?Sized>(sink: &mut S, rng: &mut Rng) {
    for _ in 0..3 {
        sink.text(&a_string(rng, 10..=20));
    }
    let letter = |rng: &mut Rng| char::from(rng.u8(b'A'..=b'Z'));
    sink.text(&String::from_iter([letter(rng), letter(rng)]));
    sink.text(&zip(rng));
}
