"""A command beside a container's own, as the API server asks a kubelet for it: POST /exec/NAMESPACE/POD/CONTAINER, then
streams `error`, `stdin`, `stdout`, `stderr` (spdy.py). How it ended is a Status on `error`."""
import json
import os
import pty
import subprocess

from spdy import Streams

PROTOCOL = "v4.channel.k8s.io"


def status_of(code):
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
            "message": f"command terminated with non-zero exit code: exit status {code}",
            "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]}}


class Running:
    """The command, and what of it is read: by name, descriptors that give b"" at their end."""

    def __init__(self, words, environment, tty, has_input):
        self.input = None
        if tty:
            ours, theirs = pty.openpty()
            self.process = subprocess.Popen(words, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
            os.close(theirs)
            self.outputs = {"stdout": ours}
            self.input = ours if has_input else None
        else:
            self.process = subprocess.Popen(words, env=environment, start_new_session=True, bufsize=0,
                                            stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.outputs = {"stdout": self.process.stdout.fileno(), "stderr": self.process.stderr.fileno()}
            self.input = self.process.stdin.fileno() if has_input else None
        self.tty = tty
        for fd in self.outputs.values():
            os.set_blocking(fd, False)

    def read(self):
        """(name, bytes) of each that said something."""
        said = []
        for name, fd in list(self.outputs.items()):
            try:
                data = os.read(fd, 32 << 10)
            except BlockingIOError:
                continue
            except OSError:  # a terminal that nobody holds any more
                data = b""
            if data:
                said.append((name, data))
            else:
                del self.outputs[name]
        return said

    def write(self, data, last):
        if self.input is None:
            return
        try:
            os.write(self.input, data)
            if last and not self.tty:
                self.process.stdin.close()
        except OSError:  # it hears no more
            last = True
        if last:
            self.input = None


def wanted(query):
    """The streams that will be opened."""
    flags = [("input", "stdin"), ("output", "stdout")] + ([] if query.get("tty") == ["1"] else [("error", "stderr")])
    return {"error"} | {stream for flag, stream in flags if query.get(flag) == ["1"]}


def serve(handler, container, query):
    handler.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
                        b"X-Stream-Protocol-Version: " + PROTOCOL.encode() + b"\r\n\r\n")
    handler.wfile.flush()
    handler.close_connection = True
    streams, early = Streams(handler.connection), []
    while not wanted(query) <= set(streams.by_type) and not streams.ended:
        early += streams.hear()
    tty = query.get("tty") == ["1"]
    words, environment = container.inside(query.get("command", []), tty)
    running = Running(words, environment, tty, "stdin" in streams.by_type)
    while not streams.ended:
        for stream, data, last in early + streams.hear():
            if stream == streams.by_type.get("stdin"):
                running.write(data, last)
        early = []
        said = running.read()
        for name, data in said:
            streams.say(name, data)
        if not said and running.process.poll() is not None and (not running.outputs or running.tty):
            break
    if running.process.poll() is None:  # whoever asked is gone
        running.process.kill()
    code = running.process.wait()
    streams.say("error", json.dumps(status_of(code if code >= 0 else 128 - code)).encode(), last=True)
    for name in ("stdout", "stderr"):
        streams.say(name, b"", last=True)
