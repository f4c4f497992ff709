"""statements PORT ROUNDS: keeps values of many sizes in the table trial.kept and reads them
back, by prepared statements in the binary protocol of MySQL, as root without a password.

Every second value goes there in pieces (COM_STMT_SEND_LONG_DATA), the others inside the
execution. Ends with 1 when a value comes back changed."""

import random
import socket
import struct
import sys

SIZES = [0, 1, 250, 251, 4095, 4096, 65535, 65536, 1 << 20, (1 << 24) - 20, 1 << 24, 20_000_000]
WHOLE = (1 << 24) - 1  # A longer message goes in several packets.
PIECE = 100_000

PREPARE, EXECUTE, LONG_DATA = 0x16, 0x17, 0x18
LONG, BLOB = 0x03, 0xFB
# Long passwords, protocol 4.1, transactions, what 4.1 does with passwords, plug-ins for them.
CAPABILITIES = 0x1 | 0x200 | 0x2000 | 0x8000 | 0x80000


class Session:
    """A connection, message by message."""

    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = self.sock.makefile("rb")
        self.receive()  # Its greeting.
        login = struct.pack("<IIB23x", CAPABILITIES, 1 << 30, 45)
        self.number = 1
        self.send(login + b"root\0" + b"\0" + b"caching_sha2_password\0", self.number)
        while self.receive()[0] != 0:  # It may say first that an empty password will do.
            pass

    def send(self, body, number=0):
        while True:
            part, body = body[:WHOLE], body[WHOLE:]
            header = struct.pack("<I", len(part))[:3] + bytes([number])
            self.sock.sendall(header + part)
            number = (number + 1) % 256
            if len(part) < WHOLE:
                return

    def receive(self):
        whole = b""
        while True:
            header = self.reader.read(4)
            if len(header) < 4:
                sys.exit("the server has closed the connection")
            length = int.from_bytes(header[:3], "little")
            whole += self.reader.read(length)
            if length < WHOLE:
                break
        if whole[:1] == b"\xff":
            sys.exit(f"the server refuses: {whole[3:]!r}")
        return whole

    def prepare(self, text):
        self.send(bytes([PREPARE]) + text.encode())
        _, statement, columns, parameters = struct.unpack_from("<BIHH", self.receive())
        for count in (parameters, columns):
            self.skip(count)
        return statement

    def skip(self, count):
        """Descriptions and the end behind them."""
        for _ in range(count + (count > 0)):
            self.receive()

    def execute(self, statement, kinds, values):
        body = struct.pack("<BIBI", EXECUTE, statement, 0, 1)
        body += b"\0" * ((len(kinds) + 7) // 8) + b"\1"
        body += b"".join(struct.pack("<BB", kind, 0) for kind in kinds)
        self.send(body + values)
        return self.receive()

    def row(self, first):
        """The one value of the one row of a result that begins with `first`."""
        self.skip(first[0])
        row = self.receive()
        self.receive()  # The end of the rows.
        value, length = counted(row[2:])  # Behind a zero and the bits of what is null.
        if len(value) != length:
            sys.exit(f"{len(value)} bytes of {length}")
        return value


def counted(field):
    """What follows a length, and the length."""
    widths = {0xFC: 2, 0xFD: 3, 0xFE: 8}
    width = widths.get(field[0], 0)
    length = int.from_bytes(field[1 : 1 + width], "little") if width else field[0]
    return field[1 + width :], length


def with_length(value):
    size = len(value)
    if size < 251:
        return bytes([size]) + value
    for mark, width in ((0xFC, 2), (0xFD, 3), (0xFE, 8)):
        if size < 1 << (8 * width):
            return bytes([mark]) + size.to_bytes(width, "little") + value
    raise ValueError(size)


def main():
    session, dice = Session(int(sys.argv[1])), random.Random(9)
    keep = session.prepare("REPLACE INTO trial.kept VALUES (?, ?)")
    read = session.prepare("SELECT body FROM trial.kept WHERE id = ?")
    for turn in range(int(sys.argv[2])):
        for number, size in enumerate(SIZES):
            value, key = dice.randbytes(size), struct.pack("<i", number)
            if (turn + number) % 2:
                for at in range(0, max(size, 1), PIECE):
                    piece = value[at : at + PIECE]
                    session.send(struct.pack("<BIH", LONG_DATA, keep, 1) + piece)
                done = session.execute(keep, [LONG, BLOB], key)
            else:
                done = session.execute(keep, [LONG, BLOB], key + with_length(value))
            if done[0] != 0:
                sys.exit(f"not kept: {done!r}")
            came = session.row(session.execute(read, [LONG], key))
            if came != value:
                sys.exit(f"{size} bytes came back changed")


main()
