"""What the same inputs in both runs of a pair do to the spread of their ratio, for tools/bench-tpcc --seeds.

Pairs of runs on one server under kernel TCP, in random order; each run on data that are restored from one snapshot.
"""
import json
import math
import os
import random
import statistics

KINDS = ("same", "other")
# How long a run gathers speed; it is short because there are many.
RAMP_UP = "1500ms"
# The approximation in `chi_square` is good for so many.
FEWEST = 6
# Of the order of pairs, and of their inputs.
ORDER = 13


def planned(kinds, pairs):
    """Kind and seeds of each pair, in the order in which they are run."""
    order = [kind for kind in kinds for _ in range(pairs)]
    random.Random(ORDER).shuffle(order)
    return [(kind, (2 * number + 1, 2 * number + (1 if kind == "same" else 2))) for number, kind in enumerate(order)]


def measure(server, run_client, props, options, say):
    """The logarithm of the ratio of two runs, for each pair; `run_client` runs a step of saiga."""
    snapshot = os.path.join(server.folder, "snapshot")
    server.stop()
    run_client("snapshot", "take", server.data, "--to", snapshot, "--assume-stopped")
    found = []
    for kind, seeds in planned(options.seeds, options.pairs):
        rates = []
        for seed in seeds:
            run_client("snapshot", "restore", snapshot, "--assume-stopped")
            server.start_again()
            said = run_client("bench", "tpcc", "run", "--props", props, "--for", f"{options.seconds}s", "--ramp-up", RAMP_UP,
                              "--no-check", "--json", "--seed", str(seed), good=(0, 1))
            server.stop()
            rates.append(json.loads(said)["run"]["metrics"]["throughput_ops_s"])
        found.append({"kind": kind, "seeds": seeds, "throughput_ops_s": rates, "log_ratio": math.log(rates[1] / rates[0])})
        say(f"{server.name} pair {len(found)}/{len(options.seeds) * options.pairs}, {kind} seed: {found[-1]['log_ratio']:+.4f}")
    return found


def chi_square(probability, freedom):
    """A quantile, by Wilson and Hilferty: within 1 % from five degrees of freedom on."""
    z = statistics.NormalDist().inv_cdf(probability)
    part = 2 / (9 * freedom)
    return freedom * (1 - part + z * math.sqrt(part)) ** 3


def spread(values):
    """Standard deviation with its 95 % interval for normal values."""
    deviation, freedom = statistics.stdev(values), len(values) - 1
    ends = [deviation * math.sqrt(freedom / chi_square(probability, freedom)) for probability in (0.975, 0.025)]
    return deviation, ends


def text(results, options):
    lines = ["Natural logarithm of the throughput of a pair's second run divided by that of its first, in the order of time.",
             f"Each run: {options.warehouses} warehouses, restored from the same snapshot, {options.terminals} terminals, kernel "
             "TCP;", f"saiga bench tpcc run --props FILE --for {options.seconds}s --ramp-up {RAMP_UP} --no-check --json --seed N"]
    for server in results:
        lines += ["", f"{server['name']} {server['version']}"]
        lines += [f"{one['kind']} seed: {one['log_ratio']:+.4f}" for one in server["pairs"]]
        for kind in options.seeds:
            values = [one["log_ratio"] for one in server["pairs"] if one["kind"] == kind]
            deviation, (low, high) = spread(values)
            lines.append(f"{kind} seed: standard deviation {deviation:.4f} ({low:.4f} to {high:.4f}), {len(values)} pairs")
    return "\n".join(lines)
