# about: makefile in text and binary, buffered and not: iteration, readinto, newline forms, write of large text, copyfileobj, sendfile, and ends
# upgraded: yes
import io
import shutil
import socket

import trial
from trial import recv_exactly, say


def server(sock, meet):
    text = sock.makefile("w", encoding="utf-8", newline="\r\n")
    text.write("first\nsecond\nüñí\n")
    text.flush()
    print("printed", 1, 2, file=text, flush=True)
    meet()
    text.write("long " * 50000 + "\n")
    text.close()  # the connection stays open
    raw = sock.makefile("wb", buffering=0)
    say("raw write", raw.write(b"raw") == 3)
    with open("file", "wb") as file:
        file.write(bytes(range(256)) * 3000)
    with open("file", "rb") as file:
        file.seek(1000)
        say("sendfile", sock.sendfile(file, offset=1000, count=300000), file.tell())
        shutil.copyfileobj(file, raw)
    raw.close()
    sock.shutdown(socket.SHUT_WR)
    say(recv_exactly(sock, 4), sock.recv(1))


def client(sock, meet):
    text = sock.makefile("r", encoding="utf-8", newline=None)
    say([next(text) for _ in range(4)])
    stream = text.detach()  # which has read nothing ahead: the rest is sent only now
    meet()
    say(len(stream.readline()))
    say(stream.read(3))
    expected = bytes(range(256)) * 3000
    buffer = bytearray(100000)
    got = bytearray()
    while len(got) < 300000:
        count = stream.readinto(memoryview(buffer)[: min(100000, 300000 - len(got))])
        got += buffer[:count]
    say("sent file", got == expected[1000:301000])
    rest = io.BytesIO()
    shutil.copyfileobj(stream, rest)
    say("copied file", rest.getvalue() == expected[301000:], stream.read(1), stream.read1(1))
    stream.close()
    sock.sendall(b"done")
    try:
        stream.read(1)
    except ValueError as error:
        say(error)


trial.run_pair(server, client)
