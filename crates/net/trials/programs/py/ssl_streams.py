# about: TLS through the ssl module, blocking and not, on what was a plain upgraded connection: bytes, renewed keys, its own end
# upgraded: yes
import socket
import ssl
import subprocess

from trial import recv_exactly, run_pair, say

subprocess.run(
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
    "-subj /CN=localhost -keyout key.pem -out cert.pem".split(),
    check=True,
    capture_output=True,
)


def echo(secure):
    while data := secure.recv(10000):
        secure.sendall(data)


def server(sock, meet):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("cert.pem", "key.pem")
    with context.wrap_socket(sock, server_side=True) as secure:
        say(secure.version(), secure.cipher() is not None)
        echo(secure)
        say("closed:", secure.unwrap().recv(5))


def client(sock, meet):
    context = ssl.create_default_context(cafile="cert.pem")
    secure = context.wrap_socket(sock, server_hostname="localhost")
    for size in (1, 100, 16384, 16385, 300000):
        data = bytes(i * 7 % 251 for i in range(1000)) * (size // 1000 + 1)
        half = size // 2
        secure.sendall(data[:half])
        secure.sendall(data[half:size])
        say(size, recv_exactly(secure, size) == data[:size])
    secure.settimeout(0)
    try:
        secure.recv(1)
    except ssl.SSLWantReadError as error:
        say(type(error).__name__)
    secure.settimeout(20)
    say("pending", secure.pending())
    plain = secure.unwrap()
    plain.sendall(b"plain")
    plain.shutdown(socket.SHUT_WR)
    say("end", plain.recv(1))


run_pair(server, client)
