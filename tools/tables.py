"""The tables of docs/results.md and README.md as Markdown, from what tools/results has measured.

A ratio whose median is worse than what was asked for is **missed**; one whose interval contains 1, or what was asked for,
is **not shown**.
"""
import collections
import json
import math
import os

THROUGHPUT, CPU = "throughput_ops_s", "server_cpu_us_per_op"

# One ratio of a table: what was measured under a name, in which cell, of which metric and arms, and what was asked for.
Ratio = collections.namedtuple("Ratio", "name cell metric asked a b lower", defaults=(THROUGHPUT, None, "kernel", "saiga", False))
# Rows are (label, one list of ratios for each column).
Table = collections.namedtuple("Table", "title names columns rows")


def cost(name, cell, metric, asked=None, **arms):
    """A ratio of which less is better."""
    return Ratio(name, cell, metric, asked, lower=True, **arms)


def set_and_get(name, cell, asked):
    return [[Ratio(name, f"{test}-{cell}", asked=asked) for test in ("set", "get")]]


def both_engines(cell, asked_mariadb, asked_postgres, of=Ratio, metric=THROUGHPUT):
    """A row of the SQL table; `cell` has {} for the test."""
    return [[of("sql", f"mariadb-{cell.format('point-select')}", metric, asked_mariadb)],
            [of("sql", f"postgres-{cell.format('select')}", metric, asked_postgres)]]


def tpcc(metric, asked_mariadb=None, asked_postgres=None, of=cost):
    return [[of(f"tpcc-{engine}", "tpcc-t8-w2", metric, asked)]
            for engine, asked in (("mariadb", asked_mariadb), ("postgres", asked_postgres))]


def itself(name, cell):
    again = "kernel (again)"
    return [[Ratio(name, cell, b=again)], [cost(name, cell, "latency_p99_us", b=again)], [cost(name, cell, CPU, b=again)]]


ONE = ["measured"]
TABLES = [
    Table("One arm against itself", ["itself-redis", "itself-mariadb", "itself-postgres"],
          ["throughput", "latency p99", "server CPU per operation"], [
              ("Redis, set, 50 clients, one core", itself("itself-redis", "set-c50-one-core")),
              ("Redis, set, 50 clients, two cores", itself("itself-redis", "set-c50-two-cores")),
              ("TPC-C, MariaDB", itself("itself-mariadb", "tpcc-t8-w2")),
              ("TPC-C, PostgreSQL", itself("itself-postgres", "tpcc-t8-w2"))]),
    Table("Redis", ["redis-full"], ONE, [
        ("set / get, 50 clients", set_and_get("redis-full", "c50-best", 6)),
        ("set / get, 200 clients", set_and_get("redis-full", "c200-best", 6)),
        ("set / get, 1000 clients", set_and_get("redis-full", "c1000-best", 3)),
        ("set / get, 1 client, two cores, same placement", set_and_get("redis-full", "c1-two-cores", 15)),
        ("set / get, 1 client, one core, same placement", set_and_get("redis-full", "c1-one-core", 2.5)),
        ("set / get, 50 clients, pipeline of 16", set_and_get("redis-full", "c50-p16-best", 1.3)),
        ("set / get, 50 clients, 4,096-byte values", set_and_get("redis-full", "c50-4096b-best", 1)),
        ("set / get, 50 clients, 100,000-byte values", set_and_get("redis-full", "c50-100k-best", 1)),
        ("server CPU per operation, set / get, 50 clients",
         [[cost("redis-full", f"{test}-c50-best", CPU, 0.25) for test in ("set", "get")]]),
        ("set, 1 and 50 clients, a program that hogs one core or both, same placement",
         [[Ratio("redis-full", f"set-c{clients}-{where}-hog-{hog}", asked=1) for clients in (1, 50)
           for where in ("one-core", "two-cores", "unpinned") for hog in ("0", "1", "both")]]),
        ("set, 50 clients, `io-threads 2`", [[Ratio("redis-full", "set-c50-io2-unpinned", asked=3)]]),
        ("set, 50 clients, two client threads", [[Ratio("redis-full", "set-c50-threads2-unpinned", asked=1)]]),
        ("a connection for one PING", [[Ratio("redis-full", "connect-c50-best", asked=0.95)]])]),
    Table("README: Redis", ["redis-demo"], ["gain", "server CPU per operation"], [
        (label, [[Ratio("redis-demo", cell)], [cost("redis-demo", cell, CPU)]]) for label, cell in (
            ("set, 1 client", "set-c1-best"), ("set, 50 clients", "set-c50-best"), ("set, 200 clients", "set-c200-best"),
            ("get, 50 clients", "get-c50-best"), ("set, 50 clients, pipeline of 16", "set-c50-p16-best"),
            ("set, 50 clients, 100,000-byte values", "set-c50-100k-best"))]),
    Table("Servers that are joined", ["redis-replica", "redis-cluster"], ONE, [
        ("master and two replicas, set / get", set_and_get("redis-replica", "c50-replica-best", 2)),
        ("cluster of six, set / get", set_and_get("redis-cluster", "c50-cluster-best", 2))]),
    Table("MariaDB and PostgreSQL", ["sql"], ["MariaDB, sysbench", "PostgreSQL, pgbench"], [
        ("reads, 16 connections", both_engines("{}-c16-best", 1.25, 1.15)),
        ("reads, 64 connections", both_engines("{}-c64-best", 1.25, 1.15)),
        ("reads and writes, 16 connections", [[Ratio("sql", "mariadb-read-write-c16-best", asked=1)],
                                              [Ratio("sql", "postgres-tpcb-c16-best", asked=1)]]),
        ("reads, 1 connection", both_engines("{}-c1-best", 1, 1)),
        ("reads, 1 connection, two cores, same placement", both_engines("{}-c1-two-cores", None, None)),
        ("latency p50, 1 connection, two cores, same placement",
         both_engines("{}-c1-two-cores", 0.25, 0.25, cost, "latency_p50_us")),
        ("server CPU per operation, reads, 16 connections", both_engines("{}-c16-best", None, 0.88, cost, CPU)),
        ("server CPU per operation, reads, 64 connections", both_engines("{}-c64-best", None, 0.88, cost, CPU)),
        ("slowest hundredth, reads, 16 connections", both_engines("{}-c16-best", None, None, cost, "latency_p99_us")),
        ("slowest hundredth, reads, 64 connections", both_engines("{}-c64-best", None, None, cost, "latency_p99_us")),
        ("slowest hundredth, reads, 16 connections, two cores, same placement",
         both_engines("{}-c16-two-cores", None, 1.2, cost, "latency_p99_us")),
        ("slowest hundredth, reads, 64 connections, two cores, same placement",
         both_engines("{}-c64-two-cores", None, 1.2, cost, "latency_p99_us")),
        ("connect, one query, close", [[Ratio("sql", "mariadb-churn-c4-best", asked=0.97)],
                                       [Ratio("sql", "postgres-churn-c4-best", asked=0.97)]])]),
    Table("TPC-C", ["tpcc-mariadb", "tpcc-postgres", "tpcc-hog"], ["MariaDB", "PostgreSQL"], [
        ("transactions per second", tpcc(THROUGHPUT, 1.1, 1, Ratio)),
        ("latency p50 of New-Order", tpcc("latency_p50_us")),
        ("latency p99 of New-Order", tpcc("latency_p99_us")),
        ("server CPU per transaction", tpcc(CPU)),
        ("beside an endless loop", [[Ratio("tpcc-hog", "tpcc-t8-w2", asked=1.1)], []]),
        ("beside an endless loop, server CPU", [[cost("tpcc-hog", "tpcc-t8-w2", CPU)], []])]),
    Table("Many connections", ["redis-idle"], ONE, [
        (f"set, 50 active clients beside 19,000 idle ones, against none, {where}",
         [[Ratio("redis-idle", f"set-c50-{cell}", asked=0.9, a="saiga", b="saiga+idle")]])
        for where, cell in (("best of each arm", "best"), ("one core", "one-core"), ("two cores", "two-cores"),
                            ("unpinned", "unpinned"))] + [
        ("server CPU per operation beside 19,000 idle clients, one core",
         [[cost("redis-idle", "set-c50-one-core", CPU, a="saiga", b="saiga+idle")]])]),
]


class Results:
    """What lies below the folder of tools/results."""

    def __init__(self, out):
        self.out, self.read = out, {}

    def of(self, name):
        """The result.json of a comparison; None while there is none."""
        if name not in self.read:
            path = os.path.join(self.out, name, "result.json")
            self.read[name] = None
            if os.path.exists(path):
                with open(path) as file:
                    self.read[name] = json.load(file)
        return self.read[name]

    def comparison(self, one):
        found = self.of(one.name) or {"comparisons": []}
        wanted = (one.cell, one.metric, one.a, one.b)
        matching = (it for it in found["comparisons"] if (it["cell"], it["metric"], it["a"], it["b"]) == wanted)
        return next(matching, None)

    def mean(self, name, cells, metric, a, b):
        """Geometric mean of the ratios of `cells`, those of one placement each."""
        found = [self.comparison(Ratio(name, cell, metric, None, a, b)) for cell in cells]
        logs = [math.log(it["ratio"]["median"]) for it in found if it]
        return math.exp(sum(logs) / len(logs)) if logs else None


def digits(factor):
    """A factor for people."""
    return f"{factor:.2f}" if factor < 9.95 else f"{factor:.1f}" if factor < 19.95 else f"{factor:.0f}"


def mark(median, interval, asked, lower):
    """What a ratio shows of what was asked for; empty where it shows it."""
    if asked is not None and (median > asked if lower else median < asked):
        return ", **missed**"
    if interval is None:
        return ", **not shown** (no interval)"
    low, high = interval
    unclear = [goal for goal in (1.0, asked) if goal is not None and low <= goal <= high]
    return ", **not shown**" if unclear else ""


def figure(value):
    """A measured value for people."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def shown(results, one):
    found = results.comparison(one)
    if found is None:
        return "not measured"
    ratio, interval = found["ratio"], found["ratio"]["ci95"]
    ends = f" ({digits(interval[0])}-{digits(interval[1])})" if interval else ""
    medians = f", {figure(found['a_median'])} to {figure(found['b_median'])} {found['unit']}"
    text = f"{digits(ratio['median'])}x{ends}{medians}"
    # Without a demand it is the interval that says something.
    return text + (mark(ratio["median"], interval, one.asked, one.lower) if one.asked is not None else "")


def together(results, column):
    """The ratios of a field: each, or where there are many of them the range."""
    found = [results.comparison(one) for one in column]
    if len(column) <= 4 or not all(found):
        return " / ".join(shown(results, one) for one in column)
    medians = [it["ratio"]["median"] for it in found]
    marks = [mark(it["ratio"]["median"], it["ratio"]["ci95"], one.asked, one.lower) for it, one in zip(found, column)]
    marked = [f"{text} in {marks.count(text)} of {len(marks)}" for text in dict.fromkeys(marks) if text]
    return f"{digits(min(medians))}x to {digits(max(medians))}x" + "".join(marked)


def asked_for(columns):
    """What was asked for in each column, or once where that is the same."""
    each = [next((f"{one.asked:g}x" for one in column if one.asked is not None), "") for column in columns]
    return each[0] if len(set(each)) == 1 else " / ".join(text or "-" for text in each)


def row(*cells):
    return "| " + " | ".join(cells) + " |"


def markdown(results, table):
    """The lines of a table; none where nothing of it was measured."""
    measured = [name for name in table.names if results.of(name)]
    if not measured:
        return []
    lines = [f"## {table.title}", ""]
    for name in measured:
        one = results.of(name)
        build = one["versions"].get("saiga_commit", "unknown")
        counted = sum(run["rejected"] is None for run in one["runs"])
        lines.append(f"`{' '.join(one['command'])}`, {counted} of {len(one['runs'])} runs count, "
                     f"{(one.get('started') or 'no date')[:10]}, build {build} ({name}/result.json)")
    lines += ["", row("cell", "asked for", *table.columns), "|---" * (2 + len(table.columns)) + "|"]
    for label, columns in table.rows:
        lines.append(row(label, asked_for(columns), *(together(results, column) for column in columns)))
    return lines + [""]


def waiting(results):
    """What each part of the wait policy is worth (docs/waiting.md)."""
    first = results.of("wait-redis")
    if not first:
        return []
    groups = []
    for title, name, begins, is_hogged in (
            ("Redis", "wait-redis", "set", False), ("beside a hog", "wait-redis-hog", "set", True),
            ("MariaDB", "wait-sql", "mariadb", False), ("beside a hog", "wait-sql", "mariadb", True),
            ("PostgreSQL", "wait-sql", "postgres", False), ("beside a hog", "wait-sql", "postgres", True)):
        cells = [it["id"] for it in (results.of(name) or {"cells": []})["cells"]]
        groups.append((title, name, [cell for cell in cells if cell.startswith(begins) and "best" not in cell
                                     and ("hog" in cell) == is_hogged]))
    lines = ["## Waiting: throughput and server CPU per operation without a part, as multiples of those with it", "",
             row("left out", *(title for title, _, _ in groups)), "|---" * (1 + len(groups)) + "|"]
    for arm in (it["name"] for it in first["arms"] if it["name"].startswith("without-")):
        both = [[results.mean(name, cells, metric, "saiga", arm) for metric in (THROUGHPUT, CPU)]
                for _, name, cells in groups]
        texts = ["; ".join("-" if it is None else f"{it:.2f}" for it in pair) for pair in both]
        lines.append(row(f"`{arm.removeprefix('without-')}`", *texts))
    return lines + [""]


def libraries(results):
    """Today's library against another one, where there is such an arm."""
    lines = []
    for name, begins in (("library-redis", ""), ("sql", "mariadb"), ("sql", "postgres")):
        found = results.of(name)
        arms = [it["name"] for it in found["arms"]] if found else []
        cells = [it["id"] for it in found["cells"]] if found else []
        cells = [cell for cell in cells if cell.startswith(begins) and not cell.endswith("best")]
        for other in (arm for arm in arms if arm not in ("kernel", "unix", "saiga")):
            today, before = (results.mean(name, cells, THROUGHPUT, "kernel", arm) for arm in ("saiga", other))
            lines.append(row(f"{begins or 'Redis'}, {len(cells)} cells of same placement", other, f"{before:.2f}x",
                             f"{today:.2f}x"))
    if not lines:
        return []
    return ["## Another library, geometric means", "", row("cells", "library", "its gain", "today's gain"), "|---" * 4 + "|",
            *lines, ""]


def texts(results, files):
    """What tools print themselves: (title, path below the folder)."""
    lines = []
    for title, path in files:
        whole = os.path.join(results.out, path)
        if os.path.exists(whole):
            with open(whole) as file:
                lines += [f"## {title}", "", f"({path})", "", "```", *file.read().rstrip().split("\n"), "```", ""]
    return lines


def host(results):
    """The machine and the build of the first comparison that is there."""
    first = next((one for table in TABLES for one in map(results.of, table.names) if one), None)
    if first is None:
        return []
    machine = first["host"]
    return [f"{machine['cpu']}, {machine['cores']} CPUs, Linux {machine['kernel']}; saiga {first['versions']['saiga']}", ""]


def everything(out, files):
    """All tables that can be made from `out`."""
    results = Results(out)
    lines = host(results) + [line for table in TABLES for line in markdown(results, table)]
    return "\n".join([*lines, *libraries(results), *waiting(results), *texts(results, files)])
