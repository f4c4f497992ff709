//! Texts and marks have the contrast that WCAG 2.2 requires (1.4.3 and 1.4.11), in both colour
//! schemes.

use std::collections::BTreeMap;

const STYLE: &str = include_str!("../src/html/report.css");

/// The colours of the n-th CSS block that defines `--page`: 0 is light, 1 is dark by button, 2 is
/// dark by system.
fn scheme(index: usize) -> BTreeMap<&'static str, &'static str> {
    let block = STYLE
        .split("--page:")
        .nth(index + 1)
        .expect("three schemes");
    let block = block.split('}').next().unwrap_or("");
    let pairs = block.split(';').filter_map(|pair| pair.split_once(':'));
    let mut colours: BTreeMap<_, _> = pairs
        .map(|(name, value)| (name.trim(), value.trim()))
        .collect();
    colours.insert("--page", block.split(';').next().unwrap_or("").trim());
    colours
}

fn luminance(colour: &str) -> f64 {
    let channel = |at: usize| {
        let byte = u8::from_str_radix(&colour[at..at + 2], 16).expect("#rrggbb");
        let share = f64::from(byte) / 255.0;
        if share <= 0.040_45 {
            share / 12.92
        } else {
            ((share + 0.055) / 1.055).powf(2.4)
        }
    };
    0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
}

fn contrast(one: &str, other: &str) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn the_formula_is_that_of_wcag() {
    assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 1e-9);
    assert!((contrast("#777777", "#ffffff") - 4.48).abs() < 0.01);
}

#[test]
fn texts_have_contrast_of_at_least_4_5_and_marks_of_at_least_3() {
    for index in [0, 1] {
        let colours = scheme(index);
        let texts = [
            "--ink",
            "--soft",
            "--better",
            "--worse",
            "--caution",
            "--neutral",
            "--link",
        ];
        for (names, backgrounds, least) in [
            (texts.as_slice(), ["--paper", "--page"].as_slice(), 4.5),
            (&["--ink", "--soft"], &["--caution-tint"], 4.5),
            (
                &[
                    "--series-0",
                    "--series-1",
                    "--series-2",
                    "--series-3",
                    "--series-4",
                ],
                &["--paper"],
                3.0,
            ),
        ] {
            for (name, background) in names
                .iter()
                .flat_map(|name| backgrounds.iter().map(move |background| (name, background)))
            {
                let found = contrast(colours[name], colours[background]);
                assert!(
                    found >= least,
                    "scheme {index}: the contrast of {name} on {background} is {found:.2}"
                );
            }
        }
    }
}

#[test]
fn button_and_system_give_the_same_dark_colours() {
    assert_eq!(scheme(1), scheme(2));
    assert!(!scheme(1).is_empty());
}
