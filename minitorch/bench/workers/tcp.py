"""Worker: one end of a full-duplex TCP stream, the yardstick of a network. `python tcp.py
listen|connect HOST PORT`.

Both ends send and receive at the same time, as both ranks of a ring do.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from protocol import channel, serve  # type: ignore[import-not-found]


def connect(role: str, host: str, port: int, patience: float = 10.0) -> socket.socket:
    """Open the stream."""
    if role == "listen":
        with socket.create_server((host, port)) as server:
            return server.accept()[0]
    deadline = time.monotonic() + patience
    while True:
        try:
            return socket.create_connection((host, port))
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def exchange(stream: socket.socket, size: int) -> float:
    """Seconds for `size` bytes each way, both at once, begun together."""
    stream.sendall(b"!")
    stream.recv(1)
    data, into = bytes(size), memoryview(bytearray(size))
    begin = time.perf_counter()
    sender = threading.Thread(target=stream.sendall, args=(data,))
    sender.start()
    got = 0
    while got < size:
        got += stream.recv_into(into[got:])
    sender.join()
    stream.sendall(b"!")  # the other end has everything too
    stream.recv(1)
    return time.perf_counter() - begin


def main() -> None:
    """Connect, then serve."""
    answers = channel()
    stream = connect(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    serve({"exchange": lambda size: exchange(stream, size)}, answers)


if __name__ == "__main__":
    main()
