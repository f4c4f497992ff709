"""Sets, gets and checks values on many memcached connections at once.

Usage: memcached_client.py PORT CONNECTIONS ROUNDS. Prints "checked N" at the end."""

import random
import socket
import sys
import threading

SIZES = (0, 1, 17, 1000, 1500, 8192, 65536, 300_000, 900_000)


def value_of(key, version, size):
    mark = f"{key}/{version};".encode()
    return (mark * (size // len(mark) + 1))[:size]


class Line:
    """One connection that speaks the text protocol."""

    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.file = self.sock.makefile("rb")

    def say(self, *parts):
        self.sock.sendall(b"".join(parts))

    def line(self):
        line = self.file.readline()
        assert line.endswith(b"\r\n"), f"cut off: {line!r}"
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
            found[key.decode()] = self.file.read(int(size))
            assert self.file.read(2) == b"\r\n"
        return found


def work(number, port, rounds, counts, errors):
    try:
        dice = random.Random(number)
        line, versions = Line(port), {}
        line.set(f"n{number}", b"0")
        for version in range(rounds):
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
        line.sock.close()
    except BaseException as error:  # reported by the main thread
        errors.append(f"connection {number}: {error!r}")


def main():
    port, connections, rounds = map(int, sys.argv[1:])
    counts, errors = [0] * connections, []
    threads = [
        threading.Thread(target=work, args=(number, port, rounds, counts, errors))
        for number in range(connections)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        sys.exit("\n".join(errors))
    print("checked", sum(counts))


main()
