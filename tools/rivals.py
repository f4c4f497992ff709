"""Other load generators beside saiga, for tools/bench-tpcc --rival: their commands, and what they say they did.

Each has tables of its own in the same database of the same server, and as many connections as saiga.
"""
import json
import os
import re
import shutil
import subprocess

from servers import PASSWORD, USER, Failed


class Rival:
    """A load generator and the server that it is told to load."""

    def __init__(self, server, options):
        self.server, self.options = server, options
        self.is_postgres = server.name == "PostgreSQL"
        self.database = "postgres" if self.is_postgres else "tpcc"

    def said(self, *command):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        return done.stdout


class GoTpc(Rival):
    """TPC-C by go-tpc: the same mix and warehouses without think times. A transaction draws its warehouse and its type."""
    name = "go-tpc"
    # What saiga may use of its client CPU per transaction.
    demand = 0.5

    def program(self):
        path = os.path.join(os.environ.get("SAIGA_GO_TPC", "target/go-tpc"), "go-tpc")
        if not os.access(path, os.X_OK):
            raise Failed(f"{path} is missing: tools/go-tpc target/go-tpc")
        return os.path.abspath(path)

    def version(self):
        return self.said(self.program(), "version").rpartition("Release version:")[2].strip()

    def command(self, step, *more):
        driver, parameters = ("postgres", "sslmode=disable") if self.is_postgres else ("mysql", "tls=false")
        return [self.program(), "tpcc", step, "--driver", driver, "--host", "127.0.0.1", "--port", str(self.server.port),
                "--user", USER, "--password", PASSWORD, "--db", self.database, "--conn-params", parameters,
                "--warehouses", str(self.options.warehouses), "--threads", str(self.options.terminals), *more]

    def load(self):
        # Its check takes more than ten minutes on MariaDB (go-tpc issue 176).
        return self.command("prepare", "--no-check")

    def run(self):
        return self.command("run", "--time", f"{self.options.seconds}s", "--ignore-error", "--silence", "--interval", "24h",
                            "--output", "json")

    def read(self, said):
        """Transactions that were done, transactions that failed, seconds, and statements (go-tpc does not count them)."""
        rows = [row for line in said.splitlines() if line.startswith("[{") for row in json.loads(line)]
        rows = [row for row in rows if row.get("Prefix", "").startswith("[Summary]")]
        if not rows:
            raise Failed(f"go-tpc said no figures: {said[-2000:]}")
        counts = [0, 0]
        for row in rows:
            counts[row["Operation"].endswith("_ERR")] += int(row["Count"])
        return *counts, max(float(row["Takes(s)"]) for row in rows), None


class Sysbench(Rival):
    """sysbench's own oltp_read_write, 20 statements on one table: Debian has no TPC-C for sysbench."""
    name = "sysbench"
    demand = None

    def program(self):
        path = shutil.which("sysbench")
        if not path:
            raise Failed("sysbench is missing: tools/setup test")
        return path

    def version(self):
        return self.said(self.program(), "--version").split()[1]

    def command(self, step, *more):
        driver = "pgsql" if self.is_postgres else "mysql"
        place = {"host": "127.0.0.1", "port": self.server.port, "user": USER, "password": PASSWORD, "db": self.database}
        return [self.program(), "oltp_read_write", f"--db-driver={driver}",
                *(f"--{driver}-{key}={value}" for key, value in place.items()), "--table-size=100000",
                f"--threads={self.options.terminals}", *more, step]

    def load(self):
        return self.command("prepare")

    def run(self):
        return self.command("run", f"--time={self.options.seconds}")

    def read(self, said):
        """As GoTpc.read. A transaction that fails is tried again and counted among the errors."""
        def figure(label):
            found = re.search(rf"^\s*{label}:\s+([0-9.]+)", said, re.MULTILINE)
            if not found:
                raise Failed(f"sysbench said no {label}: {said[-2000:]}")
            return float(found[1])
        return figure("transactions"), figure("ignored errors"), figure("total time"), figure("queries")


RIVALS = {kind.name: kind for kind in (GoTpc, Sysbench)}
