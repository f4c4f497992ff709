"""An asyncio echo server and its client.

Usage: aio.py serve PORT | aio.py ask PORT CONNECTIONS MESSAGES."""

import asyncio
import hashlib
import sys


async def answer(reader, writer):
    """Each message is a line with a length, then so many bytes; the answer their digest and they."""
    while line := await reader.readline():
        data = await reader.readexactly(int(line))
        writer.write(hashlib.sha256(data).digest() + data)
        await writer.drain()
    writer.close()


async def serve(port):
    server = await asyncio.start_server(answer, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


async def ask(number, port, messages):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    for at in range(messages):
        size = (number * 7919 + at * 104_729) % (1, 100, 5000, 400_000)[at % 4] + 1
        data = bytes([(number + at) % 256]) * size
        writer.write(b"%d\n" % size + data)
        await writer.drain()
        digest = await reader.readexactly(32)
        assert await reader.readexactly(size) == data, "wrong bytes"
        assert digest == hashlib.sha256(data).digest(), "wrong digest"
    writer.write_eof()
    assert await reader.read() == b"", "bytes after the end"
    writer.close()
    return messages


async def ask_all(port, connections, messages):
    asked = await asyncio.gather(*(ask(number, port, messages) for number in range(connections)))
    print("checked", sum(asked))


if sys.argv[1] == "serve":
    asyncio.run(serve(int(sys.argv[2])))
else:
    asyncio.run(ask_all(*map(int, sys.argv[2:])))
