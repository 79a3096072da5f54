#!/usr/bin/env python3
"""Load on OpenAI-compatible servers, side by side: tokens a second, time to first token, time of a token.

  bench/serve_load.py NAME=COMMAND...        COMMAND starts a server on port {port}, in the foreground
      --streams 1,4,16   clients, each of which asks again as soon as it has its answer
      --rate 2           instead: requests a second at random times (Poisson), the same times for every server
      --long 2023        instead: one stream is held while a prompt of so many tokens arrives
      --input 128 --output 64 --requests 48 --rounds 3 --vocabulary 40000

  bench/serve_load.py "systole=build/release/src/operate/cli/systole serve model.gguf --weights int8 --port {port}" \\
                      "llama=llama-server -m model.gguf --port {port} -np 16"

The servers run on all cores but the last, the clients on the last. Each round asks every server in turn, with prompts of
random tokens that no server has seen. A figure is the median of the rounds; where there are several servers, a ratio is
the first's beside another's. The standard library of Python is all that it needs. Ends with 1 where an answer is not
whole.
"""
import argparse
import asyncio
import json
import os
import random
import shlex
import socket
import statistics
import subprocess
import sys
import time
import urllib.request

CORES = sorted(os.sched_getaffinity(0))


class Server:
    def __init__(self, words):
        self.name, _, command = words.partition("=")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        cores = set(CORES[:-1] or CORES)
        began = time.monotonic()
        self.process = subprocess.Popen(shlex.split(command.replace("{port}", str(self.port))),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        preexec_fn=lambda: os.sched_setaffinity(0, cores))
        while time.monotonic() < began + 300:
            if self.process.poll() is not None:
                sys.exit(f"{self.name}: ended with {self.process.returncode}: {command}")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/models", timeout=5) as reply:
                    self.model = json.load(reply)["data"][0]["id"]
                    self.ready_s = time.monotonic() - began
                    return
            except (OSError, ValueError, KeyError):
                time.sleep(0.02)
        self.end()
        sys.exit(f"{self.name}: not ready within 300 s")

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


async def ask(server, prompt, output):
    """Seconds of one streamed answer: when it began, and when each piece of text arrived; and its tokens."""
    body = json.dumps({"model": server.model, "prompt": prompt, "max_tokens": output, "min_tokens": output,
                       "ignore_eos": True, "temperature": 0, "stream": True,
                       "stream_options": {"include_usage": True}}).encode()
    began = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                 b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    times, tokens = [], 0
    while line := await reader.readline():
        if not line.startswith(b"data: {"):
            if line.startswith(b"HTTP/1.1 ") and b" 200 " not in line:
                raise RuntimeError(f"{server.name}: {line.decode().strip()}: {(await reader.read()).decode()[-300:]}")
            continue
        event = json.loads(line[6:])
        if event.get("choices"):
            times.append(time.monotonic())
        tokens = (event.get("usage") or {}).get("completion_tokens", tokens)
    writer.close()
    if tokens != output:
        raise RuntimeError(f"{server.name}: {tokens} tokens of {output}")
    return began, times, tokens


class Load:
    def __init__(self, options, seed):
        self.options = options
        self.random = random.Random(seed)

    def prompt(self, length):
        return [self.random.randrange(1000, self.options.vocabulary) for _ in range(length)]

    async def closed(self, server, streams):
        """Each of `streams` clients asks one request after another."""
        prompts = [self.prompt(self.options.input) for _ in range(max(self.options.requests, streams))]

        async def client():
            answers = []
            while prompts:
                answers.append(await ask(server, prompts.pop(), self.options.output))
            return answers

        began = time.monotonic()
        lists = await asyncio.gather(*[client() for _ in range(streams)])
        return figures([a for answers in lists for a in answers], time.monotonic() - began)

    async def poisson(self, server, rate):
        async def later(at, prompt):
            await asyncio.sleep(at)
            return await ask(server, prompt, self.options.output)

        at, asked = 0.0, []
        for _ in range(self.options.requests):
            at += self.random.expovariate(rate)
            asked.append(later(at, self.prompt(self.options.input)))
        began = time.monotonic()
        answers = await asyncio.gather(*asked)
        return figures(answers, time.monotonic() - began)

    async def held(self, server, length):
        """How long a running stream waits for a piece at most while a long prompt is computed."""
        stream = asyncio.create_task(ask(server, self.prompt(self.options.input), 256))
        await asyncio.sleep(1)
        began, times, _ = await ask(server, self.prompt(length), 8)
        _, pieces, _ = await stream
        gaps = [b - a for a, b in zip(pieces, pieces[1:]) if b > began and a < times[0]]
        return {"held up, ms": 1e3 * max(gaps, default=0), "its first token, ms": 1e3 * (times[0] - began)}


def percentile(values, p):
    return sorted(values)[min(len(values) - 1, int(len(values) * p))]


def figures(answers, seconds):
    first = [1e3 * (times[0] - began) for began, times, _ in answers]
    each = [1e3 * (times[-1] - times[0]) / max(tokens - 1, 1) for _, times, tokens in answers]
    return {"tokens/s": sum(tokens for _, _, tokens in answers) / seconds,
            "first token p50, ms": percentile(first, 0.5), "p95": percentile(first, 0.95),
            "p99": percentile(first, 0.99),
            "a token p50, ms": percentile(each, 0.5), "p95 ": percentile(each, 0.95)}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("servers", nargs="+")
    parser.add_argument("--streams", default="1,4,16")
    parser.add_argument("--rate", type=float)
    parser.add_argument("--long", type=int)
    parser.add_argument("--input", type=int, default=128)
    parser.add_argument("--output", type=int, default=64)
    parser.add_argument("--requests", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--vocabulary", type=int, default=40000)
    options = parser.parse_args()
    if options.long:
        cases = [(f"beside a prompt of {options.long}", lambda load, server: load.held(server, options.long))]
    elif options.rate:
        cases = [(f"{options.rate:g} a second", lambda load, server: load.poisson(server, options.rate))]
    else:
        cases = [(f"{n} streams", lambda load, server, n=n: load.closed(server, n))
                 for n in map(int, options.streams.split(","))]
    servers = []
    try:
        for words in options.servers:
            servers.append(Server(words))
            print(f"{servers[-1].name}: ready in {servers[-1].ready_s:.2f} s")
        os.sched_setaffinity(0, {CORES[-1]})
        for server in servers:  # what a first request pays for alone
            asyncio.run(ask(server, Load(options, 0).prompt(16), 4))
        for name, case in cases:
            found = {server.name: [] for server in servers}
            for turn in range(options.rounds):
                for server in servers:
                    found[server.name].append(asyncio.run(case(Load(options, turn + 1), server)))
            report(name, found)
    except RuntimeError as failure:
        sys.exit(str(failure))
    finally:
        for server in servers:
            server.end()


def report(case, found):
    medians = {name: {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}
               for name, rounds in found.items()}
    first = next(iter(medians.values()))
    for name, values in medians.items():
        line = ", ".join(f"{key} {value:,.1f}" for key, value in values.items())
        beside = "" if values is first or "tokens/s" not in values else \
            f"; the first has {first['tokens/s'] / values['tokens/s']:.2f} × its tokens/s"
        print(f"{case}: {name}: {line}{beside}", flush=True)


if __name__ == "__main__":
    main()
