"""What systemd does for a socket unit: listens, then becomes the service with the listener at descriptor 3.

Usage: activate.py PORT COMMAND [ARGS]..."""

import os
import socket
import sys

listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
os.dup2(listener.fileno(), 3, inheritable=True)
if listener.fileno() == 3:
    os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execvp(sys.argv[2], sys.argv[2:])
