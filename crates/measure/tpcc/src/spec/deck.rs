//! The transaction mix: each terminal draws from shuffled decks of cards (TPC-C §5.2.4.2).

use fastrand::Rng;

/// The types of transactions, in the order of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

impl Kind {
    pub const ALL: [Self; 5] = [
        Self::NewOrder,
        Self::Payment,
        Self::OrderStatus,
        Self::Delivery,
        Self::StockLevel,
    ];

    /// The index of the value in [`ALL`](Self::ALL).
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Self::NewOrder => 0,
            Self::Payment => 1,
            Self::OrderStatus => 2,
            Self::Delivery => 3,
            Self::StockLevel => 4,
        }
    }

    /// The name in BenchmarkSQL's result files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NewOrder => "NEW_ORDER",
            Self::Payment => "PAYMENT",
            Self::OrderStatus => "ORDER_STATUS",
            Self::Delivery => "DELIVERY",
            Self::StockLevel => "STOCK_LEVEL",
        }
    }

    /// Smallest valid share of all transactions, in per cent (§5.2.3); `None` for New-Order.
    #[must_use]
    pub fn least_share(self) -> Option<f64> {
        match self {
            Self::NewOrder => None,
            Self::Payment => Some(43.0),
            Self::OrderStatus | Self::Delivery | Self::StockLevel => Some(4.0),
        }
    }
}

/// The number of cards of each transaction in a deck, in the order of [`Kind::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mix([u32; 5]);

impl Mix {
    /// The deck of §5.2.4.2, of 23 cards.
    pub const SPECIFIED: Self = Self([10, 10, 1, 1, 1]);

    /// A deck of a hundred cards from weights in per cent; New-Order gets the rest. If the weights
    /// equal the smallest shares of §5.2.3, independent draws, as in BenchmarkSQL, fall below these
    /// shares by chance. Draws from a deck do not.
    ///
    /// # Errors
    /// Returns the sum of the weights if the sum exceeds 100.
    pub fn from_weights(weights: Weights) -> Result<Self, u32> {
        let Weights {
            payment,
            order_status,
            delivery,
            stock_level,
        } = weights;
        let others = [payment, order_status, delivery, stock_level];
        let sum = others.into_iter().fold(0, u32::saturating_add);
        let new_order = 100u32.checked_sub(sum).ok_or(sum)?;
        Ok(Self([
            new_order,
            payment,
            order_status,
            delivery,
            stock_level,
        ]))
    }

    /// The share of a transaction in the deck, in per cent.
    #[must_use]
    pub fn share(self, kind: Kind) -> f64 {
        let all: u32 = self.0.iter().sum();
        100.0 * f64::from(self.0[kind.index()]) / f64::from(all.max(1))
    }

    /// Number of cards in a deck.
    #[must_use]
    pub fn cards_in_deck(self) -> u32 {
        self.0.iter().sum()
    }

    fn cards(self) -> Vec<Kind> {
        let of = |(kind, count)| std::iter::repeat_n(kind, count as usize);
        Kind::ALL.into_iter().zip(self.0).flat_map(of).collect()
    }
}

/// Shares in per cent of all transactions; New-Order gets the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weights {
    pub payment: u32,
    pub order_status: u32,
    pub delivery: u32,
    pub stock_level: u32,
}

/// Chooses the transactions of one terminal.
#[derive(Debug)]
pub struct Chooser {
    mix: Mix,
    /// Remaining cards of the current deck.
    left: Vec<Kind>,
}

impl Chooser {
    #[must_use]
    pub fn new(mix: Mix) -> Self {
        Self {
            mix,
            left: Vec::new(),
        }
    }

    /// Draws the next transaction. Shuffles a new deck when the current deck is used up.
    pub fn draw(&mut self, rng: &mut Rng) -> Kind {
        if self.left.is_empty() {
            self.left = self.mix.cards();
            rng.shuffle(&mut self.left);
        }
        self.left.pop().unwrap_or(Kind::NewOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(mix: Mix, draws: usize) -> [usize; 5] {
        let (mut rng, mut chooser) = (Rng::with_seed(3), Chooser::new(mix));
        let mut counts = [0; 5];
        for _ in 0..draws {
            counts[chooser.draw(&mut rng).index()] += 1;
        }
        counts
    }

    #[test]
    fn every_deck_has_its_cards_in_another_order() {
        assert_eq!(counts(Mix::SPECIFIED, 23), [10, 10, 1, 1, 1]);
        assert_eq!(
            counts(Mix::SPECIFIED, 23_000),
            [10_000, 10_000, 1000, 1000, 1000]
        );
        let (mut rng, mut chooser) = (Rng::with_seed(3), Chooser::new(Mix::SPECIFIED));
        let mut deal = || -> Vec<Kind> { (0..23).map(|_| chooser.draw(&mut rng)).collect() };
        assert_ne!(deal(), deal());
    }

    #[test]
    fn new_order_gets_what_the_weights_leave() {
        let usual = Weights {
            payment: 43,
            order_status: 4,
            delivery: 5,
            stock_level: 6,
        };
        let mix = Mix::from_weights(usual).unwrap();
        assert_eq!(counts(mix, 1000), [420, 430, 40, 50, 60]);
        let all = Weights {
            payment: 100,
            order_status: 0,
            delivery: 0,
            stock_level: 0,
        };
        assert_eq!(
            counts(Mix::from_weights(all).unwrap(), 1000),
            [0, 1000, 0, 0, 0]
        );
        let over = Weights {
            stock_level: 49,
            ..usual
        };
        assert_eq!(Mix::from_weights(over), Err(101));
    }

    #[test]
    fn the_specified_deck_and_the_usual_weights_meet_the_least_shares() {
        let usual = Weights {
            payment: 43,
            order_status: 4,
            delivery: 4,
            stock_level: 4,
        };
        for mix in [Mix::SPECIFIED, Mix::from_weights(usual).unwrap()] {
            for kind in Kind::ALL {
                assert!(
                    kind.least_share()
                        .is_none_or(|least| mix.share(kind) >= least),
                    "{kind:?}"
                );
            }
        }
    }
}
