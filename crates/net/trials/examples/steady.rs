//! For authors of parity programs: checks that a program is deterministic on the kernel.
//!
//! `cargo run -p saiga-trials --example steady -- 20 epoll` runs each program whose name contains
//! `epoll` 20 times on the kernel and compares the outputs. Exits with 1 if one differs or does not
//! end as its header requires.

use std::{env, process::ExitCode};

use saiga_trials::{
    parity::{self, Arm},
    program,
};

fn main() -> ExitCode {
    let mut args = env::args().skip(1);
    let times: usize = args.next().and_then(|text| text.parse().ok()).unwrap_or(5);
    let filter = args.next().unwrap_or_default();
    let mut steady = true;
    for name in program::all().iter().filter(|name| name.contains(&filter)) {
        let program = program::load(name);
        for &variant in &program.variants {
            let first = parity::run(&program, variant, Arm::Kernel);
            let mut verdict = "steady";
            if first.outcome.ending != program.exit {
                verdict = "wrong ending";
                println!("{:#?}", first.outcome);
            }
            for _ in 1..times {
                let again = parity::run(&program, variant, Arm::Kernel);
                if again.outcome != first.outcome {
                    verdict = "DIFFERS";
                    println!("{:#?}\n{:#?}", first.outcome, again.outcome);
                    break;
                }
            }
            steady &= verdict == "steady";
            println!(
                "{name} {variant:?}: {verdict}; {} proofs",
                first.proofs.len()
            );
            if times == 1 {
                println!("{}{}", first.outcome.stdout, first.outcome.stderr);
            }
        }
    }
    if steady {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
