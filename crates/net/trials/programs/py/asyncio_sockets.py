# about: asyncio's loop.sock_* calls, sendfile, add_reader, and cancellation of a pending receive
# upgraded: yes
import asyncio
import tempfile

import trial
from trial import say

SIZE = 500000


def pattern(size):
    return bytes(i * 7 % 253 for i in range(4096)) * (size // 4096 + 1)


async def serve(sock):
    loop = asyncio.get_running_loop()
    sock.setblocking(False)
    task = asyncio.create_task(loop.sock_recv(sock, 10))
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        say("cancelled")
    await loop.sock_sendall(sock, b"go")
    say(await loop.sock_recv(sock, 10))
    with tempfile.TemporaryFile() as file:
        file.write(pattern(SIZE)[:SIZE])
        file.seek(0)
        say("sendfile", await loop.sock_sendfile(sock, file))
    arrived = loop.create_future()
    loop.add_reader(sock, lambda: arrived.done() or arrived.set_result(sock.recv(10)))
    say(await arrived)
    loop.remove_reader(sock)


async def ask(sock):
    loop = asyncio.get_running_loop()
    sock.setblocking(False)
    say(await loop.sock_recv(sock, 10))
    await loop.sock_sendall(sock, b"ready")
    buffer, data = bytearray(70000), bytearray()
    while len(data) < SIZE:
        got = await loop.sock_recv_into(sock, buffer)
        data += buffer[:got]
    say(len(data), data == pattern(SIZE)[:SIZE])
    await loop.sock_sendall(sock, b"last")
    say(await loop.sock_recv(sock, 10))


trial.run_pair(
    lambda sock, meet: asyncio.run(serve(sock)),
    lambda sock, meet: asyncio.run(ask(sock)),
)
