# about: smtplib against a server of its own: lines that are answered one by one, dot-stuffed messages, several recipients, a refusal, QUIT and reuse
# upgraded: yes
import smtplib
import socketserver
from email.message import EmailMessage

import trial
from trial import say

messages = []


class Handler(socketserver.StreamRequestHandler):
    def line(self, text):
        self.wfile.write(text.encode() + b"\r\n")

    def handle(self):
        self.line("220 here")
        while line := self.rfile.readline().decode().rstrip("\r\n"):
            word = line.split(":")[0].split()[0].upper()
            if word == "EHLO":
                self.line("250-here")
                self.line("250 SIZE 1000000")
            elif word == "DATA":
                self.line("354 go on")
                body = []
                while (part := self.rfile.readline()) != b".\r\n":
                    body.append(part[1:] if part.startswith(b"..") else part)
                messages.append(b"".join(body))
                self.line("250 taken")
            elif word == "RCPT" and "nobody" in line:
                self.line("550 no such user")
            elif word == "QUIT":
                self.line("221 bye")
                break
            else:
                self.line("250 fine")


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = False


server = Server(("127.0.0.1", 0), Handler)


def serve(meet):
    trial.serve_until(server, meet)
    for message in messages:
        say(len(message), message.count(b"\r\n"), message[-20:])


def post(meet):
    server.socket.close()
    with smtplib.SMTP(*server.server_address, local_hostname="there", timeout=20) as link:
        say(link.ehlo()[0], link.has_extn("size"))
        for lines in (1, 40, 20000):
            message = EmailMessage()
            message["From"], message["To"], message["Subject"] = "a@b", "c@d, e@f", f"{lines} lines"
            message.set_content("".join(f".line {i}\n" for i in range(lines)))
            say(link.send_message(message))
        say(sorted(link.sendmail("a@b", ["c@d", "nobody@d"], "Subject: two\r\n\r\n.\r\n..\r\nend")))
        try:
            link.sendmail("a@b", ["nobody@d"], "lost")
        except smtplib.SMTPRecipientsRefused as error:
            say(type(error).__name__, error.recipients)
        trial.prove(link.sock, lambda: [link.noop() for _ in range(200)], 1600)
    meet()


trial.run_sides(serve, post)
