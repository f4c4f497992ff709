"""Sets, gets and checks values on many memcached connections at once.

Usage: memcached_client.py PORT CONNECTIONS ROUNDS. Prints "checked N" at the end.
memcached_client.py PORT CONNECTIONS killed: goes on until the server is killed; prints "under way" when
every connection has been used a while, and at the end how many were "ended", with no wrong answer before."""

import itertools
import random
import socket
import sys
import threading

WHILE = 10
used, ended = threading.Semaphore(0), []
SIZES = (0, 1, 17, 1000, 1500, 8192, 65536, 300_000, 900_000)


def value_of(key, version, size):
    mark = f"{key}/{version};".encode()
    return (mark * (size // len(mark) + 1))[:size]


class Gone(Exception):
    """The server has ended the connection, in the middle of an answer or between two."""


class Line:
    """One connection that speaks the text protocol."""

    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.file = self.sock.makefile("rb")

    def say(self, *parts):
        try:
            self.sock.sendall(b"".join(parts))
        except ConnectionError as error:
            raise Gone from error

    def bytes(self, size):
        try:
            data = self.file.read(size)
        except ConnectionError as error:
            raise Gone from error
        if len(data) < size:
            raise Gone
        return data

    def line(self):
        try:
            line = self.file.readline()
        except ConnectionError as error:
            raise Gone from error
        if not line.endswith(b"\n"):
            raise Gone
        assert line.endswith(b"\r\n"), f"no line: {line!r}"
        return line[:-2]

    def set(self, key, value):
        self.say(f"set {key} 0 0 {len(value)}\r\n".encode(), value, b"\r\n")
        answer = self.line()
        assert answer == b"STORED", answer

    def get(self, *keys):
        self.say(f"get {' '.join(keys)}\r\n".encode())
        found = {}
        while (line := self.line()) != b"END":
            word, key, _flags, size = line.split()
            assert word == b"VALUE", line
            found[key.decode()] = self.bytes(int(size))
            assert self.bytes(2) == b"\r\n"
        return found


def work(number, port, rounds, counts, errors):
    try:
        dice = random.Random(number)
        line, versions = Line(port), {}
        line.set(f"n{number}", b"0")
        for version in range(rounds) if rounds else itertools.count():
            key = f"k{number}-{dice.randrange(8)}"
            size = dice.choice(SIZES)
            versions[key] = value_of(key, version, size)
            line.set(key, versions[key])
            asked = dice.sample(sorted(versions), min(len(versions), 3))
            assert line.get(*asked) == {k: versions[k] for k in asked}, "a wrong value"
            # A burst of small commands in one write, all answers counted.
            line.say(f"incr n{number} 1\r\n".encode() * 20)
            last = [line.line() for _ in range(20)][-1]
            assert int(last) == (version + 1) * 20, last
            counts[number] += 22
            if version == WHILE:
                used.release()
        line.sock.close()
    except Gone:
        ended.append(number)
    except BaseException as error:  # reported by the main thread
        errors.append(f"connection {number}: {error!r}")
    finally:
        used.release()


def main():
    port, connections = map(int, sys.argv[1:3])
    rounds = 0 if sys.argv[3] == "killed" else int(sys.argv[3])
    counts, errors = [0] * connections, []
    threads = [
        threading.Thread(target=work, args=(number, port, rounds, counts, errors))
        for number in range(connections)
    ]
    for thread in threads:
        thread.start()
    if not rounds:
        for _ in threads:
            used.acquire()
        print("under way", flush=True)
    for thread in threads:
        thread.join()
    if ended and rounds:
        errors.append(f"connections {sorted(ended)} were ended")
    if errors:
        sys.exit("\n".join(errors))
    print("checked", sum(counts)) if rounds else print("ended", len(ended))


main()
