"""SPDY/3.1 as an API server speaks it to a kubelet behind an upgrade: streams that it opens, each with the header
`streamtype`, and bytes both ways. Frames are those of https://www.chromium.org/spdy/spdy-protocol/spdy-protocol-draft3-1/;
windows are not kept, nor does the API server keep any.
"""
import struct
import time
import zlib

SYN_STREAM, SYN_REPLY, PING = 1, 2, 6
FIN = 1
MOST_DATA = 16 << 10

# What header blocks are compressed against: names with their lengths before them, then text (2.6.10.1 of the draft).
NAMES = """options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow
authorization cache-control connection content-base content-encoding content-language content-length content-location
content-md5 content-range content-type date etag expect expires from host if-match if-modified-since if-none-match if-range
if-unmodified-since last-modified location max-forwards pragma proxy-authenticate proxy-authorization range referer
retry-after server te trailer transfer-encoding upgrade user-agent vary via warning www-authenticate method get
status 200_OK version HTTP/1.1 url public set-cookie keep-alive origin"""
TEXT = ("100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
        "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
        "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
        "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
        "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
        "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.")
DICTIONARY = b"".join(struct.pack(">I", len(name)) + name.replace("_", " ").encode() for name in NAMES.split()) + TEXT.encode()


class Streams:
    """`by_type`: streamtype -> number of its stream. One thread alone reads and writes: a TLS socket allows no more."""

    def __init__(self, socket):
        self.socket, self.buffer, self.by_type, self.ended = socket, b"", {}, False
        self.inflate = zlib.decompressobj(zdict=DICTIONARY)
        self.deflate = zlib.compressobj(zdict=DICTIONARY)
        socket.settimeout(0.01)

    def hear(self):
        """What came: (stream, bytes, whether it is the last) each. `ended` once the other side is gone."""
        try:
            more = self.socket.recv(64 << 10)
            self.buffer += more
            self.ended = not more
        except TimeoutError:
            pass
        except OSError:
            self.ended = True
        heard = []
        while len(self.buffer) >= 8:
            first, second = struct.unpack(">II", self.buffer[:8])
            flags, length = second >> 24, second & 0xFFFFFF
            if len(self.buffer) < 8 + length:
                break
            body, self.buffer = self.buffer[8:8 + length], self.buffer[8 + length:]
            if not first >> 31:
                heard.append((first, body, bool(flags & FIN)))
            elif first & 0xFFFF == SYN_STREAM:
                self._open(body)
            elif first & 0xFFFF == PING:
                self._control(PING, 0, body)
        return heard

    def _open(self, body):
        stream = struct.unpack(">I", body[:4])[0] & 0x7FFFFFFF
        headers, at = self.inflate.decompress(body[10:]), 4
        words = []
        for _ in range(2 * struct.unpack(">I", headers[:4])[0]):
            length = struct.unpack(">I", headers[at:at + 4])[0]
            words.append(headers[at + 4:at + 4 + length].decode())
            at += 4 + length
        self.by_type[dict(zip(words[::2], words[1::2])).get("streamtype", "")] = stream
        none = self.deflate.compress(struct.pack(">I", 0)) + self.deflate.flush(zlib.Z_SYNC_FLUSH)
        self._control(SYN_REPLY, 0, struct.pack(">I", stream) + none)

    def say(self, streamtype, data, last=False):
        if streamtype not in self.by_type:
            return
        for at in range(0, max(len(data), 1), MOST_DATA):
            piece = data[at:at + MOST_DATA]
            flags = FIN if last and at + MOST_DATA >= len(data) else 0
            self._send(struct.pack(">II", self.by_type[streamtype], flags << 24 | len(piece)) + piece)

    def _control(self, kind, flags, body):
        self._send(struct.pack(">HHI", 0x8003, kind, flags << 24 | len(body)) + body)

    def _send(self, frame):
        end = time.monotonic() + 30
        view = memoryview(frame)
        while view and not self.ended:
            try:
                view = view[self.socket.send(view):]
            except TimeoutError:
                self.ended = time.monotonic() > end
            except OSError:
                self.ended = True
