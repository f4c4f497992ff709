# about: asyncio with TLS: start_server and open_connection, start_tls on a connection that was plain, many at once, drain, and both kinds of end
# upgraded: any
import asyncio
import ssl
import subprocess

import trial
from trial import say

subprocess.run(
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
    "-subj /CN=localhost -keyout key.pem -out cert.pem".split(),
    check=True,
    capture_output=True,
)
CLIENTS = 6


async def handle(reader, writer, context, done):
    if await reader.readline() == b"STARTTLS\n":
        writer.write(b"ready\n")
        await writer.drain()
        await writer.start_tls(context)
        while line := await reader.readline():
            writer.write(line * 200)
            await writer.drain()
    writer.close()
    done.release()


async def serve(listener, meet):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("cert.pem", "key.pem")
    done = asyncio.Semaphore(0)
    server = await asyncio.start_server(lambda r, w: handle(r, w, context, done), sock=listener)
    for _ in range(CLIENTS + 1):
        await done.acquire()
    server.close()
    await server.wait_closed()
    say("served")


async def talk(address, number):
    context = ssl.create_default_context(cafile="cert.pem")
    reader, writer = await asyncio.open_connection(*address)
    writer.write(b"STARTTLS\n")
    await reader.readline()
    await writer.start_tls(context, server_hostname="localhost")
    right = 0
    for i in range(40):
        line = b"%d of %d\n" % (i, number)
        writer.write(line)
        right += await reader.readexactly(len(line) * 200) == line * 200
    writer.close()
    return right


async def ask(address):
    say(await asyncio.gather(*(talk(address, number) for number in range(CLIENTS))))
    reader, writer = await asyncio.open_connection(*address)
    writer.write(b"no\n")
    say(await reader.read())
    writer.close()


def main():
    import socket

    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()

    def client_side(meet):
        listener.close()
        asyncio.run(ask(address))

    trial.run_sides(lambda meet: asyncio.run(serve(listener, meet)), client_side)


main()
