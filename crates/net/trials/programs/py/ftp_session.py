# about: ftplib against a server of its own: one lasting control connection and a new passive data connection per transfer, both ways, with a restart
# upgraded: any
import ftplib
import io
import socket
import socketserver

import trial
from trial import say

files = {"small": b"small\r\n", "large": bytes(i * 11 % 253 for i in range(700000))}


class Handler(socketserver.StreamRequestHandler):
    def line(self, text):
        self.wfile.write(text.encode() + b"\r\n")

    def data(self):
        connection, _ = self.passive.accept()
        self.passive.close()
        return connection

    def handle(self):
        self.line("220 here")
        skip = 0
        for line in self.rfile:
            word, _, rest = line.decode().strip().partition(" ")
            if word == "USER":
                self.line("331 and the word")
            elif word == "PASV":
                self.passive = socket.create_server(("127.0.0.1", 0))
                port = self.passive.getsockname()[1]
                self.line(f"227 here (127,0,0,1,{port >> 8},{port & 255})")
            elif word == "REST":
                skip = int(rest)
                self.line("350 from there")
            elif word == "RETR" and rest not in files:
                self.passive.close()
                self.line("550 no such file")
            elif word in ("RETR", "NLST"):
                self.line("150 now")
                text = files[rest][skip:] if word == "RETR" else "\r\n".join(sorted(files)).encode() + b"\r\n"
                skip = 0
                with self.data() as connection:
                    connection.sendall(text)
                self.line("226 done")
            elif word == "STOR":
                self.line("150 now")
                text = b""
                with self.data() as connection:
                    while part := connection.recv(30000):
                        text += part
                files[rest] = text
                self.line("226 done")
            elif word == "SIZE":
                self.line(f"213 {len(files[rest])}")
            elif word == "QUIT":
                self.line("221 bye")
                break
            else:
                self.line("200 fine")


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = False


server = Server(("127.0.0.1", 0), Handler)


def serve(meet):
    trial.serve_until(server, meet)
    say(sorted((name, len(text)) for name, text in files.items()))


def transfer(meet):
    server.socket.close()
    link = ftplib.FTP()
    say(link.connect(*server.server_address, timeout=20))
    say(link.login("me", "word"))
    for _ in range(5):
        say(link.nlst())
        parts = []
        link.retrbinary("RETR large", parts.append)
        say(b"".join(parts) == files["large"])
    parts = []
    link.retrbinary("RETR large", parts.append, rest=699000)
    say(b"".join(parts) == files["large"][699000:])
    lines = []
    link.retrlines("RETR small", lines.append)
    say(lines, link.storbinary("STOR new", io.BytesIO(b"n" * 300000)), link.size("new"))
    try:
        link.retrbinary("RETR missing", parts.append)
    except ftplib.error_perm as error:
        say(error)
    for _ in range(100):
        link.voidcmd("NOOP")
    say(link.quit())
    meet()


trial.run_sides(serve, transfer)
