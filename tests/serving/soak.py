#!/usr/bin/env python3
"""Hours of mixed load against one server: nothing grows, no request is lost, nothing stays taken.

  tests/serving/soak.py PROGRAM [--minutes 120] [--threads 8] [--keep]

A tiny model is trained and served with `--follow latest`; threads send whole and streamed answers, several at once, with
schemas, vectors, prompts that fill the context, requests that are wrong, clients that leave, and clients that read slowly;
the server is asked to reload all the while. In the end, and once a minute, what was asked must be what was told: every
request has a status that fits it, or its client left. When all is quiet, no slot, no page and no place in the queue is
taken, and resident memory and open files are those after the warm-up, but for a margin. A program built with sanitizers
ends at their first finding. Prints one line; SYSTOLE_TEST_SEED repeats what was drawn.
"""
import argparse
import collections
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time

from harness import MODEL, Server, train

JSON = {"Content-Type": "application/json"}
SLOTS, WAITING = 4, 12
WARM_S, QUIET_S, ANSWER_S = 20, 60, 120
GROWTH_BYTES, GROWTH_SHARE = 24 << 20, 0.10  # that resident memory may be above that after the warm-up


class Counts:
    """What clients saw, by kind of request."""

    def __init__(self):
        self.lock = threading.Lock()
        self.seen = collections.Counter()
        self.wrong = []

    def add(self, kind, outcome):
        with self.lock:
            self.seen[kind, outcome] += 1

    def fault(self, text):
        with self.lock:
            self.wrong.append(text)

    def total(self, outcome=None):
        with self.lock:
            return sum(n for (_, one), n in self.seen.items() if outcome in (None, one))


class Client:
    """One thread's requests, each on a connection of its own."""

    def __init__(self, server, counts, seed):
        self.server, self.counts, self.random = server, counts, random.Random(seed)
        self.kinds = [(6, self.whole), (6, self.streamed), (3, self.leaves), (2, self.wrong_one), (1, self.reads_slowly),
                      (2, self.long_prompt), (2, self.vectors), (1, self.by_schema), (1, self.half_a_request)]

    def run(self, until):
        while time.monotonic() < until:
            kind = self.random.choices([k for _, k in self.kinds], [w for w, _ in self.kinds])[0]
            name = kind.__name__
            try:
                self.counts.add(name, kind())
            except Exception as why:  # pylint: disable=broad-except
                self.counts.add(name, "lost")
                self.counts.fault(f"{name}: {type(why).__name__}: {why}")

    def body(self, **more):
        ask = {"model": MODEL, "prompt": self.random.choice(["word", "a list that goes on", "line"]),
               "max_tokens": self.random.randint(1, 40)}
        return json.dumps({**ask, **more})

    def open(self, path, body):
        connection = http.client.HTTPConnection(self.server.host, self.server.port, timeout=ANSWER_S)
        connection.request("POST", path, body, JSON)
        return connection

    def ask(self, path, body, fits):
        """The outcome of a request that is answered as a whole; `fits` are the statuses that it may have."""
        status, _, text = self.server.raw("POST", path, body, JSON, ANSWER_S)
        if status not in fits:
            self.counts.fault(f"{path}: status {status}: {text[:200]!r} to {body[:200]}")
            return "lost"
        json.loads(text)
        return "answered" if status == 200 else f"refused {status}"

    def outcome_of_stream(self, status, text):
        if status == 429:
            return "refused 429"
        if status == 200 and text.endswith(b"data: [DONE]\n\n"):
            return "answered"
        self.counts.fault(f"a stream of status {status} ends with {text[-200:]!r}")
        return "lost"

    def whole(self):
        return self.ask("/v1/completions", self.body(n=self.random.choice([1, 1, 1, 3])), (200, 429))

    def streamed(self):
        status, _, text = self.server.raw("POST", "/v1/completions", self.body(stream=True), JSON, ANSWER_S)
        return self.outcome_of_stream(status, text)

    def leaves(self):
        connection = self.open("/v1/completions", self.body(stream=True, max_tokens=200))
        try:
            if self.random.random() < 0.7:
                reply = connection.getresponse()
                if reply.status not in (200, 429):
                    return self.outcome_of_stream(reply.status, reply.read())
                if reply.status == 200:
                    reply.read(self.random.randint(1, 400))
            return "left"
        finally:
            connection.close()

    def reads_slowly(self):
        connection = self.open("/v1/completions", self.body(stream=True, max_tokens=60, logprobs=5))
        try:
            reply = connection.getresponse()
            text = b""
            for _ in range(20):
                text += reply.read(64)
                time.sleep(0.05)
            return self.outcome_of_stream(reply.status, text + reply.read())
        finally:
            connection.close()

    def long_prompt(self):
        tokens = [self.random.randint(5, 250) for _ in range(self.random.choice([200, 250, 256, 257, 4000]))]
        body = self.body(prompt=tokens, max_tokens=4)
        return self.ask("/v1/completions", body, (200, 429) if len(tokens) <= 256 else (400,))

    def vectors(self):
        texts = ["word of a list"] * self.random.randint(1, 6)
        return self.ask("/v1/embeddings", json.dumps({"model": MODEL, "input": texts}), (200, 429))

    def by_schema(self):
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
        form = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
        return self.ask("/v1/completions", self.body(response_format=form, max_tokens=30), (200, 400, 429))

    def wrong_one(self):
        bodies = ["{", "[" * 2000, json.dumps({"model": "other", "prompt": "x"}), self.body(n=1000), self.body(max_tokens=-1),
                  self.body(temperature="hot"), self.body(stop=["x" * 100] * 9), "\xff\xfe"]
        return self.ask("/v1/completions", self.random.choice(bodies).encode("latin-1"), (400, 404, 422))

    def half_a_request(self):
        with socket.create_connection((self.server.host, self.server.port), ANSWER_S) as wire:
            wire.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"model\"")
            time.sleep(self.random.random() / 10)
        return "left"


def resident(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def make_quiet(server, counts):
    """Waits until nothing runs or waits; what stays taken is a fault."""
    until = time.monotonic() + QUIET_S
    while True:
        taken = {name: server.metric(name) for name in
                 ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc")}
        if not any(taken.values()):
            return
        if time.monotonic() > until:
            counts.fault(f"still taken {QUIET_S} s after the last request: {taken}")
            return
        time.sleep(0.1)


def load(server, counts, options, seconds, seed):
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=Client(server, counts, f"{seed} {i}").run, args=(until,))
               for i in range(options.threads)]
    for thread in threads:
        thread.start()
    reloads = 0
    while any(thread.is_alive() for thread in threads):
        time.sleep(1)
        if server.process.poll() is not None:
            break
        server.process.send_signal(signal.SIGHUP)
        reloads += 1
    for thread in threads:
        thread.join()
    return reloads


def soak(options, folder, seed, counts):
    """(bytes after the warm-up, at the end, open files then and at the end, reloads)"""
    with Server(options.program, folder, MODEL, "--slots", str(SLOTS), "--waiting", str(WAITING), "--cache-tokens", "640",
                "--pooling", "mean", "--follow", "latest", "--access-log", "access.log") as server:
        pid = server.process.pid
        load(server, counts, options, WARM_S, f"{seed} warm")
        make_quiet(server, counts)
        before, files, reloads, turn = resident(pid), open_files(pid), 0, 0
        until = time.monotonic() + 60 * options.minutes
        now, held = before, files
        while time.monotonic() < until and server.process.poll() is None and not counts.wrong:
            turn += 1
            reloads += load(server, counts, options, min(60, until - time.monotonic()), f"{seed} {turn}")
            make_quiet(server, counts)
            now, held = resident(pid), open_files(pid)
        if server.process.poll() is not None:
            raise RuntimeError("the server ended:\n" + (folder / "serve.out").read_text(encoding="utf-8")[-4000:])
        if server.metric("systole:access_log_lost_total"):
            counts.fault("lines of the access log were lost")
    if server.process.returncode != 0:
        counts.fault(f"the server ended with {server.process.returncode}: "
                     + (folder / "serve.out").read_text(encoding="utf-8")[-2000:])
    return before, now, files, held, reloads


def check_log(folder, counts):
    """Each line of the access log is whole, and its parts are its time."""
    lines = 0
    for line in open(folder / "access.log", encoding="utf-8"):
        told = json.loads(line)
        lines += 1
        if abs(sum(told["parts_s"].values()) - told["total_s"]) > 1e-6:
            counts.fault(f"a request whose parts are not its time: {line}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--keep", action="store_true", help="keep the folder of the run")
    options = parser.parse_args()
    seed = os.environ.get("SYSTOLE_TEST_SEED") or str(random.SystemRandom().randrange(1, 2**31))
    # AddressSanitizer keeps what was freed, up to 256 MiB of it, and that fills for an hour: it is full after the warm-up.
    os.environ["ASAN_OPTIONS"] = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "quarantine_size_mb=8"]))
    folder, counts = pathlib.Path(tempfile.mkdtemp(prefix="systole-soak-")), Counts()
    try:
        train(options.program, folder, 256)
        before, now, files, held, reloads = soak(options, folder, seed, counts)
        lines = check_log(folder, counts)
        if lines < counts.total("answered"):
            counts.fault(f"{lines} lines of the access log for {counts.total('answered')} answers")
        if now > before * (1 + GROWTH_SHARE) + GROWTH_BYTES:
            counts.fault(f"resident memory grew from {before >> 20} to {now >> 20} MiB")
        if held > files + 4:
            counts.fault(f"open files grew from {files} to {held}")
    finally:
        if options.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder)
    for text in counts.wrong[:20]:
        print(f"soak: {text}", file=sys.stderr)
    refused = counts.total() - sum(counts.total(outcome) for outcome in ("answered", "left", "lost"))
    print(f"soak: {options.minutes:g} min, seed {seed}: {counts.total()} requests: {counts.total('answered')} answered, "
          f"{refused} refused, {counts.total('left')} left, {counts.total('lost')} lost; "
          f"{reloads} reloads; {lines} log lines; resident {before >> 20} -> {now >> 20} MiB, files {files} -> {held}: "
          + ("failed" if counts.wrong else "passed"))
    return 1 if counts.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
