# about: asyncio transports: pause_reading, write limits and their callbacks, half-close, abort, many small writes, get_extra_info
# upgraded: yes
import asyncio

from trial import run_pair, say

TOTAL = 2_000_000


class Slow(asyncio.Protocol):
    """Reads with pauses, answers how much there was."""

    def __init__(self, done):
        self.done, self.size, self.calls = done, 0, 0

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.size += len(data)
        self.calls += 1
        if self.calls % 3 == 0:
            self.transport.pause_reading()
            asyncio.get_running_loop().call_soon(self.transport.resume_reading)

    def eof_received(self):
        self.transport.write(b"%d" % self.size)
        return False

    def connection_lost(self, error):
        self.done.set_result(error)


class Eager(asyncio.Protocol):
    """Writes until it is told to pause, goes on when it may."""

    def __init__(self, done):
        self.done, self.left, self.pauses, self.reply = done, TOTAL, 0, b""

    def connection_made(self, transport):
        self.transport = transport
        transport.set_write_buffer_limits(high=40000)
        self.going = True
        self.go_on()

    def go_on(self):
        while self.going and self.left > 0:
            self.transport.write(b"e" * min(1777, self.left))
            self.left -= min(1777, self.left)
        if self.left == 0 and self.transport.can_write_eof():
            self.left = -1
            self.transport.write_eof()

    def pause_writing(self):
        self.going = False
        self.pauses += 1

    def resume_writing(self):
        self.going = True
        # Later: a write_eof from in here makes asyncio shut the socket down twice, and the second
        # time the peer may have ended as well (ENOTCONN).
        asyncio.get_running_loop().call_soon(self.go_on)

    def data_received(self, data):
        self.reply += data

    def connection_lost(self, error):
        self.done.set_result(error)


async def adopt(sock, protocol):
    sock.setblocking(False)
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    transport, own = await loop.connect_accepted_socket(lambda: protocol(done), sock)
    peer = transport.get_extra_info("peername")
    return peer[0], own, await done


def server(sock, meet):
    host, own, error = asyncio.run(adopt(sock, Slow))
    say(host, own.size, error)


def client(sock, meet):
    host, own, error = asyncio.run(adopt(sock, Eager))
    say(host, own.reply, error)


run_pair(server, client)
