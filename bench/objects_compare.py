#!/usr/bin/env python3
"""Reads of an object by gs:// and s3:// beside parallel curl, from the same server on loopback, in turns.

  bench/objects_compare.py BUILD_FOLDER [--mebibytes 1024] [--rounds 5]

The server is this script in a process of its own: it sends ranges of one file with sendfile, and knows of both
interfaces what a read needs, with the checksums that they state. Systole reads the object into memory and checks its
CRC-32C; curl fetches the same ranges of 8 MiB, 8 at a time, and drops them. Figures are medians, a ratio is Systole's beside curl's.
Ends with 1 if Systole is slower than 0.95 × curl, or takes more than 1.2 × its processor seconds.
"""
import argparse
import base64
import http.server
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time

PART, PARALLEL, SPEED, PROCESSOR = 8 << 20, 8, 0.95, 1.2
GCS, S3 = "/storage/v1/b/bucket/o/object", "/bucket/object"


def serve(path, crc):
    size = os.path.getsize(path)
    file = os.open(path, os.O_RDONLY)
    stated = base64.b64encode(struct.pack(">I", crc)).decode()

    class Object(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *words):
            pass

        def handle(self):
            try:
                super().handle()
            except ConnectionError:  # a hedged read: the slower of two requests is closed
                pass

        def do_HEAD(self):
            self.answer(200, 0, size)

        def do_GET(self):
            begin, end = 0, size - 1
            if wanted := self.headers.get("Range"):
                begin, end = (int(number) for number in wanted.removeprefix("bytes=").split("-"))
            self.answer(206 if wanted else 200, begin, end + 1 - begin)
            self.wfile.flush()
            while begin <= end:
                begin += os.sendfile(self.connection.fileno(), file, begin, end + 1 - begin)

        def answer(self, status, begin, count):
            self.send_response(status)
            names = {"Content-Length": count, "ETag": '"1"', "x-amz-checksum-crc32c": stated,
                     "x-goog-generation": "1", "x-goog-hash": f"crc32c={stated}", "x-goog-stored-content-length": size}
            if status == 206:
                names["Content-Range"] = f"bytes {begin}-{begin + count - 1}/{size}"
            for name, value in names.items():
                self.send_header(name, str(value))
            self.end_headers()

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Object)
    print(server.server_port, flush=True)
    server.serve_forever()


class Systole:
    def __init__(self, program, kind, endpoint, size):
        self.process = subprocess.Popen([program, kind, endpoint, str(size)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def read(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return answer["seconds"], answer["processor_seconds"]


def curl(url, size, scratch):
    config = os.path.join(scratch, "curl")
    with open(config, "w", encoding="utf-8") as file:
        for begin in range(0, size, PART):
            last = min(size, begin + PART) - 1
            file.write("next\n" if begin else "")
            file.write(f'url = "{url}"\nsilent\nshow-error\nrange = {begin}-{last}\noutput = "/dev/null"\n')
    begin = time.perf_counter()
    words = ["curl", "--no-progress-meter", "-Z", "--parallel-immediate", "--parallel-max", str(PARALLEL), "-K", config]
    process = subprocess.Popen(words)
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"curl ended with {status}")
    return time.perf_counter() - begin, used.ru_utime + used.ru_stime


def compare(kind, own, peer, gibibytes):
    speeds = [b[0] / a[0] for a, b in zip(own, peer)]
    costs = [a[1] / b[1] for a, b in zip(own, peer)]
    speed, cost = statistics.median(speeds), statistics.median(costs)
    line = f"{kind}://"
    for name, side in (("", own), ("curl ", peer)):
        seconds, processor = (statistics.median(one[i] for one in side) / gibibytes for i in (0, 1))
        line += f"  {name}{1 / seconds:.2f} GiB/s, {processor:.2f} processor s/GiB"
    met = speed >= SPEED and cost <= PROCESSOR
    print(f"{line}; {speed:.2f} × ({min(speeds):.2f}–{max(speeds):.2f}) its speed, asked {SPEED}; {cost:.2f} × "
          f"({min(costs):.2f}–{max(costs):.2f}) its processor seconds, asked {PROCESSOR}: {'met' if met else 'BELOW'}")
    return met


def main():
    if sys.argv[1] == "serve":
        return serve(sys.argv[2], int(sys.argv[3]))
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("--mebibytes", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    program, size = os.path.join(options.build, "bench/objects_bench"), options.mebibytes << 20
    all_met = True
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "object")
        made = subprocess.run([program, "make", path, str(size)], check=True, stdout=subprocess.PIPE)
        words = [sys.executable, __file__, "serve", path, str(json.loads(made.stdout)["crc32c"])]
        server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        endpoint = f"http://127.0.0.1:{int(server.stdout.readline())}"
        try:
            for kind, url in (("gs", endpoint + GCS + "?alt=media"), ("s3", endpoint + S3)):
                systole = Systole(program, kind, endpoint, size)
                systole.read(), curl(url, size, scratch)
                turns = [(systole.read(), curl(url, size, scratch)) for _ in range(options.rounds)]
                all_met = compare(kind, *zip(*turns), size / (1 << 30)) and all_met
                systole.process.stdin.close()
                systole.process.wait()
        finally:
            server.terminate()
            server.wait()
    return 0 if all_met else 1


if __name__ == "__main__":
    sys.exit(main())
