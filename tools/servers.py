"""Database servers of our own for the measuring tools: each in a new folder, on a free port of the loopback.

Root starts them as an unprivileged user. They are ended by their pid.
"""
import contextlib
import json
import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

TICKS = os.sysconf("SC_CLK_TCK")
USER = "saiga"
PASSWORD = "saiga"


class Failed(Exception):
    """The measurement cannot be made."""


def program(name):
    """Debian keeps servers out of everybody's path."""
    places = [shutil.which(name), f"/usr/sbin/{name}"]
    versions = "/usr/lib/postgresql"
    if os.path.isdir(versions):
        newest = sorted(os.listdir(versions), key=lambda it: [int(n) for n in it.split(".") if n.isdigit()])
        places = [f"{versions}/{it}/bin/{name}" for it in reversed(newest)] + places
    for place in places:
        if place and os.access(place, os.X_OK):
            return place
    raise Failed(f"{name} is missing: tools/setup test")


def free_port():
    """Below the ephemeral range, so that no outgoing connection takes it before the server does."""
    for turn in range(12_000):
        port = 20_000 + (os.getpid() * 61 + turn) % 12_000
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise Failed("no port from 20000 to 31999 is free")


def processes():
    """Parent and CPU seconds of every process: its own, and its own with those of children that have ended."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue  # It has just ended.
        own = (int(fields[11]) + int(fields[12])) / TICKS
        found[int(pid)] = (int(fields[1]), own, own + (int(fields[13]) + int(fields[14])) / TICKS)
    return found


@contextlib.contextmanager
def unbroken():
    """Puts off Ctrl-C and SIGTERM: within this, there is a process that nobody knows of yet."""
    came = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda number, _frame: came.append(number)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before):
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)


class Server:
    """A server in a folder of its own; its data may lie elsewhere.

    Whoever has `detached` it must stop it: by itself, or by `load`ing `state`, which is there as soon as the server is.
    """
    # What the server is started by, such as `saiga run`.
    under = []
    # A clean end writes all that is in memory.
    patience_s = 120
    # The kernel may take its time on a busy machine.
    killed_s = 120

    def __init__(self, folder, data=None, detached=False, state=None):
        os.makedirs(folder)
        self.folder, self.data = folder, data or os.path.join(folder, "data")
        self.port, self.pid, self.process = free_port(), None, None
        self.log = os.path.join(folder, "log")
        self.detached, self.state = detached, state
        self.as_user = []
        if os.getuid() == 0:
            owner = self.owner()
            os.chown(folder, owner.pw_uid, owner.pw_gid)
            if data:
                os.chown(data, owner.pw_uid, owner.pw_gid)
            self.as_user = ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]

    def owner(self):
        for name in (self.user, "nobody"):
            try:
                return pwd.getpwnam(name)
            except KeyError:
                continue
        raise Failed(f"root cannot run {self.name}: there is neither a user {self.user} nor nobody")

    def as_owner(self, *command):
        done = subprocess.run(self.as_user + list(command), cwd=self.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise Failed(f"{command[0]}: {done.stdout.strip()[-2000:]}")
        return done.stdout

    def discard_log(self):
        """Nothing: the log is one ring."""

    def start_again(self):
        """As before, after `stop`."""
        self.start(*self.started)

    def start(self, command, ready):
        self.started = command, ready
        ends_with_us = [] if self.detached else ["setpriv", "--pdeathsig", "KILL"]
        with open(self.log, "w") as log, unbroken():
            self.process = subprocess.Popen(ends_with_us + self.as_user + self.under + command, cwd=self.folder,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=self.detached)
            self.pid = self.process.pid
            if self.state:
                self.save()
        for _ in range(600):
            with open(self.log) as log:
                if ready in log.read():
                    return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        with open(self.log) as log:
            raise Failed(f"{self.name} does not come up:\n{log.read()[-2000:]}")

    def cpu_s(self):
        """Of the server and its children, those that have ended included."""
        all_of_them = processes()
        root = all_of_them.get(self.pid, (0, 0.0, 0.0))[2]
        return root + sum(own for parent, own, _ in all_of_them.values() if parent == self.pid)

    def stop(self):
        """Returns when it is gone, whoever started it. One that does not end when it is asked to is killed."""
        if self.pid is None or (self.process is not None and self.process.poll() is not None):
            return
        # It may end at any moment by itself, and another process may have its number.
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            with os.fdopen(os.pidfd_open(self.pid)) as process:
                with open(f"/proc/{self.pid}/cmdline") as file:
                    is_ours = self.process is not None or self.data in file.read()
                if is_ours:
                    self.end(process)
        if self.process is not None:
            self.process.wait()

    def end(self, process):
        """Ends what a pidfd stands for."""
        for number, patience_s in (self.stop_signal, self.patience_s), (signal.SIGKILL, self.killed_s):
            signal.pidfd_send_signal(process.fileno(), number)
            if select.select([process], [], [], patience_s)[0]:
                return
            print(f"{self.name} (process {self.pid}) does not end on {number.name}", file=sys.stderr)
        raise Failed(f"{self.name} (process {self.pid}) cannot be ended")

    def save(self):
        """So that another process can `load` it."""
        part = f"{self.state}.part"
        with open(part, "w") as file:
            json.dump({"kind": type(self).__name__, "folder": self.folder, "data": self.data, "port": self.port,
                       "pid": self.pid}, file)
        os.replace(part, self.state)


class MariaDb(Server):
    name, user, stop_signal = "MariaDB", "mysql", signal.SIGTERM
    storage = ["--skip-log-bin", "--innodb-buffer-pool-size=1G", "--innodb-log-file-size=1G"]
    driver = "com.mysql.cj.jdbc.Driver"
    options = []

    def install(self, storage):
        self.as_owner("mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal",
                      "--skip-test-db", f"--datadir={self.data}", *storage)

    def daemon(self):
        return program("mariadbd")

    def client(self):
        return program("mariadb")

    def discard_log(self):
        """Deletes the binary logs that the load of the tables has written."""
        self.as_owner(self.client(), "--no-defaults", "-uroot", f"--socket={self.folder}/socket",
                      "-e", "purge binary logs before now() + interval 1 day")

    def prepare(self, connections, storage=None):
        storage = storage or self.storage
        self.install(storage)
        grants = os.path.join(self.folder, "grants.sql")
        with open(grants, "w") as file:
            file.write(f"create database tpcc;\ncreate user {USER}@'%' identified by '{PASSWORD}';\n"
                       f"grant all on tpcc.* to {USER}@'%';\n")
        os.chmod(grants, 0o644)
        self.start([self.daemon(), "--no-defaults", f"--datadir={self.data}", f"--tmpdir={self.folder}",
                    f"--socket={self.folder}/socket", f"--pid-file={self.folder}/pid", f"--port={self.port}",
                    "--bind-address=127.0.0.1", "--skip-name-resolve", "--innodb-flush-log-at-trx-commit=1",
                    f"--max-connections={connections + 50}", "--back-log=128", f"--init-file={grants}", *self.options,
                    *storage], "ready for connections")
        self.version = self.as_owner(self.daemon(), "--no-defaults", "--version").split("Ver ")[-1].split()[0]

    def url(self):
        return f"jdbc:mysql://127.0.0.1:{self.port}/tpcc?useServerPrepStmts=true&rewriteBatchedStatements=true"


class MySql(MariaDb):
    """MySQL's own server, as tools/mysql unpacks it."""
    name = "MySQL"
    # Its X protocol would open a second port, and Debian's folder for files is not there.
    options = ["--mysqlx=OFF", "--secure-file-priv=NULL"]

    def install(self, storage):
        self.as_owner(self.daemon(), "--no-defaults", "--initialize-insecure", f"--datadir={self.data}", *storage)

    def unpacked(self, name):
        place = os.path.join(os.environ.get("SAIGA_MYSQL", "target/mysql"), name)
        if not os.access(place, os.X_OK):
            raise Failed(f"{place} is missing: tools/mysql target/mysql")
        return os.path.abspath(place)

    def daemon(self):
        return self.unpacked("mysqld")

    def client(self):
        return self.unpacked("mysql")


class Postgres(Server):
    name, user, stop_signal = "PostgreSQL", "postgres", signal.SIGINT
    storage = ["shared_buffers=1GB", "max_wal_size=4GB"]
    driver = "org.postgresql.Driver"

    def prepare(self, connections, storage=None):
        secret = os.path.join(self.folder, "secret")
        with open(secret, "w") as file:
            file.write(PASSWORD + "\n")
        os.chmod(secret, 0o644)
        self.as_owner(program("initdb"), "-D", self.data, "-U", USER, "--auth-host=scram-sha-256",
                      "--auth-local=scram-sha-256", "--pwfile", secret, "--no-locale", "-E", "UTF8")
        settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "synchronous_commit=on",
                    f"max_connections={connections + 50}", *(storage or self.storage)]
        options = [word for setting in settings for word in ("-c", setting)]
        self.start([program("postgres"), "-D", self.data, "-p", str(self.port), *options], "ready to accept connections")
        self.version = self.as_owner(program("postgres"), "--version").split()[2]

    def url(self):
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres?prepareThreshold=1"


KINDS = {"mariadb": MariaDb, "mysql": MySql, "postgres": Postgres}


def load(path):
    """A server that another process has started and saved."""
    with open(path) as file:
        saved = json.load(file)
    name = saved.pop("kind")
    kind = next(it for it in KINDS.values() if it.__name__ == name)
    server = kind.__new__(kind)
    vars(server).update(saved, process=None)
    return server


def write_props(server, warehouses, terminals, fixed=True):
    path = os.path.join(server.folder, f"{warehouses}.props")
    with open(path, "w") as file:
        file.write(f"db={'postgres' if server.name == 'PostgreSQL' else 'mysql'}\ndriver={server.driver}\n"
                   f"conn={server.url()}\nuser={USER}\npassword={PASSWORD}\nwarehouses={warehouses}\nloadWorkers=4\n"
                   f"terminals={terminals}\nrunMins=1\nrunTxnsPerTerminal=0\nlimitTxnsPerMin=0\n"
                   f"terminalWarehouseFixed={str(fixed).lower()}\nnewOrderWeight=45\npaymentWeight=43\norderStatusWeight=4\n"
                   "deliveryWeight=4\nstockLevelWeight=4\n")
    return path
