//! Compares one program on three arms: the kernel, `libsaiga.so` with every connection upgraded at
//! once, and `libsaiga.so` with upgrades and downgrades at random moments.
//!
//! All runs must end the same way and print the same bytes, and the program's own proofs (see
//! `programs/c/witness.h`) must be as its header says.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use crate::{
    bounded::{self, Ending, Outcome},
    compile, library,
    moves::{MoveCounter, Moves},
    program::{self, Language, Program, Upgraded, Variant},
    scale::{Rng, by_scale},
};

/// The stack under a program's sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arm {
    Kernel,
    /// Under the library, every connection upgraded at its first message.
    Library,
    /// Under the library, with upgrades and downgrades at random moments given by the seed.
    Random(u64),
    /// Under the library as shipped: a connection shows evidence before its upgrade.
    Shipped,
}

/// Makes `command` run on `arm`, with a fixed environment.
pub fn set_environment(command: &mut Command, arm: Arm) {
    command.env_clear();
    for kept in ["PATH", "HOME"] {
        if let Some(value) = env::var_os(kept) {
            command.env(kept, value);
        }
    }
    command
        .env("LC_ALL", "C.UTF-8")
        .env("PYTHONHASHSEED", "0")
        .env("PYTHONDONTWRITEBYTECODE", "1");
    match arm {
        Arm::Kernel => {}
        Arm::Library | Arm::Shipped => {
            command.env("LD_PRELOAD", library::path());
        }
        Arm::Random(seed) => {
            command.env("LD_PRELOAD", library::with_chaos());
            command.env("SAIGA_CHAOS", format!("{seed},unseen"));
        }
    }
    if matches!(arm, Arm::Library | Arm::Random(_)) {
        command.env("SAIGA_EVIDENCE_MESSAGES", "0");
    }
}

/// Output of one run, and the kernel's counts of its connections.
#[derive(Debug)]
pub struct Trial {
    pub outcome: Outcome,
    /// One line per proof: `moved` or `kernel`, and the bytes that TCP carried.
    pub proofs: Vec<String>,
    /// Moves of both sides' connections, if the program prints them; none on the kernel.
    pub moves: Moves,
}

/// Runs `program` once.
///
/// # Panics
/// If the program cannot be compiled or started.
pub fn run(program: &Program, variant: Variant, arm: Arm) -> Trial {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let proof = folder.path().join("proof");
    let mut command = match program.language {
        Language::C => Command::new(compile::program(program, variant)),
        Language::Python => {
            let mut command = Command::new(python());
            command.args(["-B", "-S", "-s"]).arg(&program.source);
            command
        }
    };
    set_environment(&mut command, arm);
    command
        .args(&program.args)
        .envs(program.env.iter().cloned())
        .current_dir(folder.path());
    command
        .env("TRIAL_PROOF", &proof)
        .env("TRIAL_WITNESS", compile::helper());
    let mut outcome = bounded::run(command, program.limit);
    if let Ending::TimedOut(place) = &mut outcome.ending {
        for side in ["server.out", "client.out"] {
            let said = fs::read_to_string(folder.path().join(side)).unwrap_or_default();
            place.push_str(&format!("\n{side} so far:\n{said}"));
        }
    }
    let written = fs::read_to_string(&proof).unwrap_or_default();
    let mut moves = Moves::default();
    let mut proofs = Vec::new();
    for line in written.lines() {
        match Moves::parse(line) {
            Some(more) => moves += more,
            None => proofs.push(line.to_owned()),
        }
    }
    Trial {
        outcome,
        proofs,
        moves,
    }
}

/// Runs the program `name` on all arms, in every variant, and compares the runs.
///
/// # Panics
/// Shows both outputs if they differ, and the proofs if they are not as the header says. Also if
/// the run on the kernel does not end as the header says.
pub fn check(name: &str) {
    let program = program::load(name);
    let mut random = Moves::default();
    for &variant in &program.variants {
        let kernel = run(&program, variant, Arm::Kernel);
        assert_eq!(
            kernel.outcome.ending,
            program.exit,
            "{name} ({variant:?}) fails on the kernel already\n{}",
            show(&kernel.outcome)
        );
        assert!(
            kernel
                .proofs
                .iter()
                .all(|proof| proof.starts_with("kernel")),
            "{name}: the witness is wrong on the kernel: {:?}",
            kernel.proofs
        );
        let mut expected = kernel.outcome;
        if program.deviates.is_some() {
            expected.stdout = fs::read_to_string(program.source.with_extension("library"))
                .unwrap_or_else(|error| panic!("{name} deviates, but its .library file: {error}"));
        }
        compare(&program, variant, Arm::Library, &expected);
        if program.spared.is_none() {
            for seed in seeds(name) {
                random += compare(&program, variant, Arm::Random(seed), &expected);
            }
        }
    }
    check_moves(random);
}

/// Checks that over the whole suite, connections of the random arm were upgraded and downgraded
/// many times: otherwise its runs would compare the kernel with itself.
fn check_moves(random: Moves) {
    static MOVES: MoveCounter = MoveCounter::new();
    let all = program::all().len();
    let Some(sum) = MOVES.end(random, all) else {
        return;
    };
    println!("random arm, {all} programs: {sum:?}");
    let least = all as u64;
    assert!(
        sum.upgrades >= least && sum.downgrades >= least,
        "the random arm of {all} programs moved next to nothing: {sum:?}"
    );
}

fn compare(program: &Program, variant: Variant, arm: Arm, expected: &Outcome) -> Moves {
    let name = &program.name;
    let trial = run(program, variant, arm);
    let again = match arm {
        Arm::Random(seed) => format!("\nagain: SAIGA_TRIALS_SEED={seed}"),
        Arm::Kernel | Arm::Library | Arm::Shipped => String::new(),
    };
    assert!(
        *expected == trial.outcome,
        "{name} ({variant:?}): the arms differ\n--- expected\n{}\n--- {arm:?}\n{}\n--- proofs {:?}{again}",
        show(expected),
        show(&trial.outcome),
        trial.proofs
    );
    check_proofs(program, arm, &trial.proofs);
    trial.moves
}

/// The seeds of a program's random runs: `SAIGA_TRIALS_SEED`, or one fixed seed (soak: eight).
fn seeds(name: &str) -> Vec<u64> {
    if let Some(given) = env::var("SAIGA_TRIALS_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
    {
        return vec![given];
    }
    let own = name.bytes().fold(0u64, |seed, byte| {
        seed.wrapping_mul(31).wrapping_add(byte.into())
    });
    let mut rng = Rng::new(own);
    (0..by_scale(1, 8)).map(|_| rng.below(1 << 32)).collect()
}

fn check_proofs(program: &Program, arm: Arm, proofs: &[String]) {
    let (name, wanted) = match program.upgraded {
        Upgraded::Any => return,
        // A channel may end at any moment of such a run, also during the proof.
        Upgraded::Yes if arm != Arm::Library => return,
        Upgraded::Yes => (&program.name, "moved"),
        Upgraded::No => (&program.name, "kernel"),
    };
    assert!(
        !proofs.is_empty(),
        "{name} proves nothing: call warm_up() or say 'upgraded: any'"
    );
    assert!(
        proofs.iter().all(|proof| proof.starts_with(wanted)),
        "{name}: every connection should be '{wanted}': {proofs:?}"
    );
}

fn show(outcome: &Outcome) -> String {
    format!(
        "{}stderr: {}\n{}",
        outcome.stdout, outcome.stderr, outcome.ending
    )
}

/// Path of the interpreter itself, not of a version manager's wrapper.
///
/// # Panics
/// If there is no python3.
pub fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let output = Command::new("python3")
            .args(["-c", "import sys; print(sys.executable)"])
            .output()
            .unwrap_or_else(|error| panic!("no python3 ({error}); apt-get install python3"));
        PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
    })
}
