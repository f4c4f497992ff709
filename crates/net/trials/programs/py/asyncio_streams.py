# about: asyncio streams: a server with 20 clients, deadlines, large writes with drain, EOF and abort
# upgraded: yes
import asyncio
import socket

import trial
from trial import say


async def serve(listener):
    served = asyncio.Semaphore(0)
    totals = {"lines": 0, "bytes": 0, "aborted": 0}

    async def handle(reader, writer):
        try:
            while line := await reader.readline():
                if line.startswith(b"big "):
                    size = int(line.split()[1])
                    writer.write(b"z" * size)
                    await writer.drain()
                    totals["bytes"] += size
                elif line == b"abort\n":
                    writer.transport.abort()
                    totals["aborted"] += 1
                    break
                else:
                    writer.write(line)
                totals["lines"] += 1
            writer.close()
            await writer.wait_closed()
        finally:
            served.release()

    server = await asyncio.start_server(handle, sock=listener)
    for _ in range(22):
        await served.acquire()
    server.close()
    await server.wait_closed()
    say(sorted(totals.items()))


async def talk(address, number):
    reader, writer = await asyncio.open_connection(*address)
    for i in range(60):
        writer.write(f"line {i} of {number}\n".encode())
        assert await reader.readline() == f"line {i} of {number}\n".encode()
    sock = writer.get_extra_info("socket")
    before = trial.received(sock.fileno())
    writer.write(b"big 300000\n")
    assert await reader.readexactly(300000) == b"z" * 300000
    carried = trial.received(sock.fileno()) - before
    writer.write_eof()
    assert await reader.read() == b""
    writer.close()
    return carried


async def run_clients(address):
    carried = await asyncio.gather(*(talk(address, number) for number in range(20)))
    with open(trial.os.environ["TRIAL_PROOF"], "a") as file:
        for each in carried:
            file.write(f"{'moved' if each < 150000 else 'kernel'} asyncio {each}\n")
    reader, writer = await asyncio.open_connection(*address)
    try:
        await asyncio.wait_for(reader.readline(), 0.05)
    except TimeoutError:
        say("deadline")
    writer.write(b"after the deadline\n")
    say(await reader.readline())
    writer.close()
    await writer.wait_closed()
    reader, writer = await asyncio.open_connection(*address)
    for _ in range(60):
        writer.write(b"warm\n")
        await reader.readline()
    writer.write(b"abort\n")
    try:
        say(await reader.read(10))
    except ConnectionResetError as error:
        say("reset", error.errno)


listener = socket.create_server(("127.0.0.1", 0), backlog=64)
address = listener.getsockname()


def client(meet):
    listener.close()
    asyncio.run(run_clients(address))


trial.run_sides(lambda meet: asyncio.run(serve(listener)), client)
