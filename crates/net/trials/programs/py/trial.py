"""What every Python parity program shares: a server and a client process, the
warm-up that lets their connection be upgraded, barriers, and output that comes
out in one order. The C programs' trial.h says the same in more detail."""

import ctypes
import os
import signal
import socket
import sys
import threading
import traceback

_witness = ctypes.CDLL(os.environ["TRIAL_WITNESS"])
_witness.trial_received.restype = ctypes.c_longlong
_lines = []


def say(*words):
    """One line of this side's output."""
    _lines.append(" ".join(str(word) for word in words))


def flush(file=1):
    """Writes what was said so far."""
    text = "".join(line + "\n" for line in _lines).encode()
    _lines.clear()
    while text:
        text = text[os.write(file, text) :]


def received(sock):
    """Bytes that TCP itself has received on `sock`, asked past the library."""
    fd = sock if isinstance(sock, int) else sock.fileno()
    return _witness.trial_received(fd)


def prove(sock, traffic, at_least):
    """Runs `traffic`, in which `sock` receives `at_least` bytes, and tells the
    harness whether TCP carried them."""
    before = received(sock)
    result = traffic()
    carried = received(sock) - before
    with open(os.environ["TRIAL_PROOF"], "a") as file:
        file.write(f"{'moved' if carried < at_least // 2 else 'kernel'} python {carried}\n")
    return result


def recv_exactly(sock, size):
    data = bytearray()
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            raise EOFError(f"end after {len(data)} of {size} bytes")
        data += part
    return bytes(data)


def round_trips(sock, role, count, size=64):
    for i in range(count):
        mark = bytes([i % 251])
        if role == "client":
            sock.sendall(mark * size)
        assert recv_exactly(sock, size) == mark * size, "corrupt round trip"
        if role == "server":
            sock.sendall(mark * size)


def warm_up(sock, role):
    """As warm_up() of trial.h: 50 messages each way, then the proof."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    round_trips(sock, role, 50)
    prove(sock, lambda: round_trips(sock, role, 16, 512), 16 * 512)


class Barrier:
    """meet() of trial.h: both sides come, then both go on."""

    def __init__(self, inward, outward):
        self.inward, self.outward = inward, outward

    def __call__(self):
        os.write(self.outward, b"m")
        if os.read(self.inward, 1) != b"m":
            raise EOFError("the other side has left")


def _start(name, body, out):
    pid = os.fork()
    if pid:
        return pid
    code = 0
    libc = ctypes.CDLL(None)
    libc.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    try:
        body()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        say(f"{name}:", traceback.format_exc().strip().splitlines()[-1])
        traceback.print_exc()
        sys.stderr.flush()
        code = 99
    flush(out)
    os._exit(code)


def run_sides(server, client):
    """Two processes: server(meet) and client(meet); prints what they said."""
    to_server, to_client = os.pipe(), os.pipe()
    outs = [os.open(f"{name}.out", os.O_RDWR | os.O_CREAT | os.O_TRUNC) for name in ("server", "client")]

    def server_body():
        os.close(to_server[1]), os.close(to_client[0])
        server(Barrier(to_server[0], to_client[1]))

    def client_body():
        os.close(to_client[1]), os.close(to_server[0])
        client(Barrier(to_client[0], to_server[1]))

    pids = [_start("server", server_body, outs[0]), _start("client", client_body, outs[1])]
    for fd in to_server + to_client:
        os.close(fd)
    worst = 0
    for name, pid, out in zip(("server", "client"), pids, outs):
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        worst = max(worst, abs(code))
        say(f"[{name} ended {code}]")
        say(os.pread(out, 1 << 20, 0).decode().rstrip("\n"))
    flush()
    sys.exit(worst)


def serve_until(server, meet):
    """Lets a server of socketserver work in a thread until the other side is done, then ends it."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    meet()
    server.shutdown()
    thread.join()
    server.server_close()


def run_pair(server, client, host="127.0.0.1", cold=False):
    """As run_pair() of trial.h: server(sock, meet) and client(sock, meet)."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, 0), family=family)
    address = listener.getsockname()

    def server_side(meet):
        sock, _ = listener.accept()
        listener.close()
        if not cold:
            warm_up(sock, "server")
        server(sock, meet)

    def client_side(meet):
        listener.close()
        sock = socket.create_connection(address[:2])
        if not cold:
            warm_up(sock, "client")
        client(sock, meet)

    run_sides(server_side, client_side)
