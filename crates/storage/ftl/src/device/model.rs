//! Compares the device with a naive model on random configurations and operations.
//!
//! The model stores units as plain lists and searches them linearly. It repeats the device's choice
//! of victims after it has checked that the policy allows each, so that all counters must be equal.

use std::num::NonZeroU32;

use proptest::prelude::*;

use super::quotas::{self, AccountPages};
use super::{Broken, Device};
use crate::config::{Config, Counting, GcFrontier, Isolation, Policy, Quota};

/// A page in a unit.
#[derive(Debug, Clone, Copy)]
struct Page {
    logical: u32,
    class: usize,
    is_live: bool,
}

#[derive(Debug, Clone, Default)]
struct Unit {
    pages: Vec<Page>,
    owner: usize,
    /// The close time in host writes, and the order of closing.
    closed_at: Option<(u64, u64)>,
}

struct Model {
    config: Config,
    route: Vec<usize>,
    gc_of: Vec<usize>,
    account_of: Vec<u8>,
    accounts: usize,
    units: Vec<Unit>,
    free: Vec<usize>,
    open: Vec<Option<usize>>,
    host: u64,
    moved: Vec<u64>,
    erased: u64,
    turn: u64,
}

impl Model {
    fn new(device: &Device) -> Self {
        let units = device.units() as usize;
        Self {
            config: device.config.clone(),
            route: device.layout.route.clone(),
            gc_of: device.layout.gc_of.clone(),
            account_of: device.layout.account_of.clone(),
            accounts: device.layout.accounts,
            units: vec![Unit::default(); units],
            free: (0..units).collect(),
            open: vec![None; device.layout.roles.len()],
            host: 0,
            moved: vec![0; device.config.classes.len()],
            erased: 0,
            turn: 0,
        }
    }

    /// Returns the unit of a logical page, and the index in the unit.
    fn position(&self, logical: u32) -> Option<(usize, usize)> {
        let is_it = |page: &Page| page.is_live && page.logical == logical;
        let found = |unit: &Unit| unit.pages.iter().position(is_it);
        let units = self.units.iter().enumerate();
        units
            .filter_map(|(number, unit)| Some((number, found(unit)?)))
            .next()
    }

    fn valid(&self, unit: usize) -> u32 {
        let live = self.units[unit].pages.iter().filter(|page| page.is_live);
        u32::try_from(live.count()).unwrap()
    }

    fn kill(&mut self, logical: u32) {
        if let Some(position) = self.position(logical) {
            self.kill_at(position);
        }
    }

    fn kill_at(&mut self, (unit, index): (usize, usize)) {
        self.units[unit].pages[index].is_live = false;
        self.erase_when_empty(unit);
    }

    fn erase_when_empty(&mut self, unit: usize) {
        if self.units[unit].closed_at.is_some() && self.valid(unit) == 0 {
            self.erase(unit);
        }
    }

    fn erase(&mut self, unit: usize) {
        self.units[unit] = Unit::default();
        self.free.push(unit);
        self.erased += 1;
    }

    fn open(&mut self, frontier: usize) {
        let unit = self.free.remove(0);
        self.units[unit].owner = frontier;
        self.open[frontier] = Some(unit);
    }

    /// Appends a page to the open unit of a frontier.
    fn append(&mut self, frontier: usize, page: Page) {
        let unit = self.open[frontier].unwrap();
        self.units[unit].pages.push(page);
        if self.units[unit].pages.len() == self.config.unit_pages as usize {
            self.turn += 1;
            self.units[unit].closed_at = Some((self.host, self.turn));
            self.open[frontier] = None;
            self.erase_when_empty(unit);
        }
    }

    fn write(&mut self, device: &mut Device, logical: u32, class: u8) {
        let frontier = self.route[usize::from(class)];
        while self.open[frontier].is_none() {
            if self.free.len() > self.config.reserve_units as usize {
                self.open(frontier);
            } else {
                let victim = device
                    .victims
                    .pop_front()
                    .expect("the device collected less");
                self.collect(victim as usize);
            }
        }
        self.host += 1;
        // The new page is written before the old one dies: its unit may be closed in between.
        let before = self.position(logical);
        let page = Page {
            logical,
            class: class.into(),
            is_live: true,
        };
        self.append(frontier, page);
        if let Some(position) = before {
            self.kill_at(position);
        }
    }

    fn collect(&mut self, victim: usize) {
        self.allow(victim);
        let unit = std::mem::take(&mut self.units[victim]);
        let to = self.gc_of[unit.owner];
        for page in unit.pages.into_iter().filter(|page| page.is_live) {
            if self.open[to].is_none() {
                self.open(to);
            }
            self.moved[page.class] += 1;
            self.append(to, page);
        }
        self.erase(victim);
    }

    /// Checks that quota and policy allow this victim.
    fn allow(&self, victim: usize) {
        let full = self.config.unit_pages;
        let account = |unit: &usize| usize::from(self.account_of[self.units[*unit].owner]);
        let closed = (0..self.units.len()).filter(|unit| self.units[*unit].closed_at.is_some());
        let closed: Vec<usize> = closed.collect();
        assert!(closed.contains(&victim), "{victim} is not closed");
        if self.config.quota != Quota::None {
            let chosen = quotas::choose(self.config.quota, &self.held());
            assert_eq!(account(&victim), chosen, "not the account over its quota");
        }
        let own = closed
            .into_iter()
            .filter(|unit| account(unit) == account(&victim));
        let mut own: Vec<usize> = own.collect();
        own.sort_by_key(|unit| self.units[*unit].closed_at.unwrap().1);
        let valid = |unit: &usize| self.valid(*unit);
        let worth = |unit: &usize| {
            let (at, _) = self.units[*unit].closed_at.unwrap();
            let valid = self.valid(*unit);
            f64::from(full - valid) / f64::from(2 * valid) * (self.host - at + 1) as f64
        };
        match self.config.policy {
            Policy::Greedy => assert_eq!(Some(valid(&victim)), own.iter().map(valid).min()),
            Policy::Fifo => assert_eq!(victim, own[0]),
            // Any unit may be drawn; a full one only if all are full, which is impossible.
            Policy::Choice(_) => assert!(valid(&victim) < full),
            Policy::CostBenefit => {
                own.sort_unstable();
                let most = own.iter().map(worth).fold(0.0, f64::max);
                let first = own.iter().find(|unit| worth(unit) >= most);
                assert_eq!(Some(&victim), first);
            }
        }
    }

    /// Returns the pages of each account; unwritten pages count as valid.
    fn held(&self) -> Vec<AccountPages> {
        let mut held = vec![AccountPages::default(); self.accounts];
        for (number, unit) in self.units.iter().enumerate() {
            if unit.closed_at.is_none() && !self.open.contains(&Some(number)) {
                continue;
            }
            let dead = unit.pages.iter().filter(|page| !page.is_live).count() as u64;
            let account = &mut held[usize::from(self.account_of[unit.owner])];
            account.valid += u64::from(self.config.unit_pages) - dead;
            account.dead += dead;
            account.collectable += if unit.closed_at.is_some() { dead } else { 0 };
        }
        held
    }

    fn class_of(&self, logical: u32) -> Option<usize> {
        let (unit, index) = self.position(logical)?;
        Some(self.units[unit].pages[index].class)
    }
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Write(u32, u8),
    Trim(u32, u32),
}

fn policy() -> impl Strategy<Value = Policy> {
    prop_oneof![
        Just(Policy::Greedy),
        Just(Policy::Fifo),
        (1..12_u32).prop_map(|samples| Policy::Choice(NonZeroU32::new(samples).unwrap())),
        Just(Policy::CostBenefit),
    ]
}

fn quota() -> impl Strategy<Value = Quota> {
    prop_oneof![
        3 => Just(Quota::None),
        2 => Just(Quota::Even),
        2 => Just(Quota::Data),
    ]
}

fn isolation() -> impl Strategy<Value = Isolation> {
    prop_oneof![Just(Isolation::Initially), Just(Isolation::Persistently)]
}

/// Generates handles, the handle of each stream, and the stream of each class.
fn lists() -> impl Strategy<Value = (Vec<Isolation>, Vec<usize>, Vec<usize>)> {
    let handles = prop::collection::vec(isolation(), 1..4);
    handles.prop_flat_map(|handles| {
        let streams = prop::collection::vec(0..handles.len(), 1..5);
        streams.prop_flat_map(move |streams| {
            let classes = prop::collection::vec(0..streams.len(), 1..6);
            (Just(handles.clone()), Just(streams), classes)
        })
    })
}

prop_compose! {
    fn config()(
        (handles, streams, classes) in lists(),
        logical_pages in 20..200_u32,
        over_provisioning in 0.05..0.8_f64,
        unit_shift in 1..8_u32,
        whole in any::<bool>(),
        own in any::<bool>(),
        reserve_units in 1..4_u32,
        policy in policy(),
        quota in quota(),
        seed in any::<u64>(),
    ) -> Config {
        Config {
            logical_pages,
            over_provisioning,
            unit_pages: 1 << unit_shift,
            counting: if whole { Counting::WholeDevice } else { Counting::ClosedUnits },
            reserve_units,
            policy,
            quota,
            gc: if own { GcFrontier::Own } else { GcFrontier::WithHost },
            handles,
            streams,
            classes,
            seed,
            memory_bytes: u64::MAX,
        }
    }
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (any::<u32>(), any::<u8>()).prop_map(|(page, class)| Op::Write(page, class)),
        1 => (any::<u32>(), 1..40_u32).prop_map(|(page, pages)| Op::Trim(page, pages)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_device_is_equal_to_its_naive_model(
        config in config(),
        used in 0.3..=1.0_f64,
        ops in prop::collection::vec(op(), 1..900),
    ) {
        let Ok(mut device) = Device::new(config.clone()) else {
            // Too small for its frontiers, which `layout` tests.
            return Ok(());
        };
        let mut model = Model::new(&device);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of U")]
        let used = ((f64::from(config.logical_pages) * used) as u32).max(1);
        let classes = u8::try_from(config.classes.len()).unwrap();
        for op in ops {
            match op {
                Op::Write(page, class) => {
                    // Some pages are hotter than others.
                    let page = (page % used).min(page / 7 % used);
                    device.write(page, class % classes);
                    model.write(&mut device, page, class % classes);
                }
                Op::Trim(page, pages) => {
                    let first = page % used;
                    for page in first..(first + pages).min(used) {
                        device.trim(page);
                        model.kill(page);
                    }
                }
            }
            prop_assert!(device.victims.is_empty(), "the device collected more");
            prop_assert_eq!(device.check(), Ok::<(), Broken>(()));
        }
        prop_assert_eq!(device.counters.host_pages(), model.host);
        prop_assert_eq!(&device.counters.moved, &model.moved);
        prop_assert_eq!(device.counters.erased, model.erased);
        for page in 0..config.logical_pages {
            prop_assert_eq!(device.class_of(page), model.class_of(page));
        }
    }
}
