"""A network of a pod's own: several pods have the same port, and each is reached at its address on this machine."""
import ctypes
import fcntl
import os
import socket
import struct
import threading

CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: the other side hears of it as of a port where nobody listens


class Network:
    """A namespace with a loopback, and `path` of it for nsenter. A connection to one of `ports` at `address`, which is of
    this machine's loopback, goes on to that port in it; nothing leads out of it. OSError: one of them is taken."""

    def __init__(self, address, ports):
        self.listeners, self.fd, self.failure = [], None, None
        try:
            for port in ports:
                self.listeners.append(socket.create_server((address, port)))
            maker = threading.Thread(target=self._make, daemon=True)
            maker.start()
            maker.join()
            if self.failure:
                raise self.failure
        except OSError:
            self.close()
            raise
        self.path = f"/proc/{os.getpid()}/fd/{self.fd}"

    def close(self):
        for listener in self.listeners:
            try:
                listener.shutdown(socket.SHUT_RDWR)  # or `accept` would wait on
            except OSError:
                pass
            listener.close()
        self.listeners = []
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None

    def _make(self):
        """A namespace is of this thread and of those that it starts; all others stay where they are."""
        try:
            if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "unshare: no network of its own")
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
                fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))
            self.fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            for listener in self.listeners:
                threading.Thread(target=take, args=(listener, listener.getsockname()[1]), daemon=True).start()
        except OSError as failure:
            self.failure = failure


def take(listener, port):
    """Connects what comes to the port of this thread's network."""
    while True:
        try:
            outer, _ = listener.accept()
        except OSError:  # closed
            return
        try:
            inner = socket.create_connection(("127.0.0.1", port), timeout=5)
        except OSError:
            outer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            outer.close()
            continue
        inner.settimeout(None)
        for side in (outer, inner):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # it adds no delay of its own
        threading.Thread(target=carry, args=(outer, inner), daemon=True).start()


def carry(outer, inner):
    with outer, inner:
        back = threading.Thread(target=pump, args=(inner, outer), daemon=True)
        back.start()
        pump(outer, inner)
        back.join()


def pump(one, other):
    """What `one` says, to `other`, until it says no more or one of them is gone."""
    try:
        while data := one.recv(64 << 10):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        for side in (one, other):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
