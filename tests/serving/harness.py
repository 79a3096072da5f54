"""What the checks of tests/serving share: a served model, what must hold, and a row per check."""
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

START_S, STOP_S = 120, 30
MODEL = "tiny-1"
WORKLOAD = """systole: 1
name: tiny
model: { family: gpt, layers: 1, width: 16, heads: 2, context: CONTEXT }
data:
  train: { files: text.txt, document: line }
  held_out: { fraction: 10% }
  tokenizer: { kind: sentencepiece, vocabulary: 300 }
  folder: data
train: { batch: 1, steps: 2, optimizer: { kind: adamw, rate: 1e-3 }, precision: f32 }
checkpoint: { every: 2, keep: 1 }
"""


def train(program, folder, context):
    """A tiny model of so many positions, after two steps: MODEL."""
    (folder / "text.txt").write_text("".join(
        f"word {i * 7 % 50} of a list that goes on for a while, in its {i}th line\n" for i in range(300)), encoding="utf-8")
    (folder / "job.yaml").write_text(WORKLOAD.replace("CONTEXT", str(context)), encoding="utf-8")
    made = subprocess.run([program, "run", "job.yaml", "--backend", "reference"], cwd=folder, text=True, check=False,
                          env={**os.environ, "NO_COLOR": "1", "HOME": str(folder)}, capture_output=True)
    if made.returncode != 0:
        raise RuntimeError(f"the model was not trained:\n{made.stdout}{made.stderr}")


class Server:
    """`systole serve MODEL` until the block ends."""

    def __init__(self, program, folder, model, *more, backend="reference", log="serve.out"):
        self.said = open(folder / log, "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [program, "serve", model, "--backend", backend, "--port", "0", *more], cwd=folder, text=True,
            env={**os.environ, "NO_COLOR": "1", "HOME": str(folder)}, stdout=self.said, stderr=subprocess.STDOUT)
        until = time.monotonic() + START_S
        self.url = None
        while self.url is None:
            text = (folder / log).read_text(encoding="utf-8")
            found = re.search(r"http://([\d.]+):(\d+)/v1", text)
            if found:
                self.url, self.host, self.port = found[0], found[1], int(found[2])
            elif self.process.poll() is not None or time.monotonic() > until:
                self.process.kill()
                raise RuntimeError(f"the server did not start:\n{text}")
            else:
                time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.said.close()

    def raw(self, method, path, body=None, headers=None, timeout=60):
        """(status, headers in lower case, body) of one request without the client."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            reply = connection.getresponse()
            return reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read()
        finally:
            connection.close()

    def metric(self, name, headers=None):
        text = self.raw("GET", "/metrics", headers=headers)[2].decode()
        return float(re.search(rf"^{re.escape(name)}{{[^}}]*}} (\S+)$", text, re.M)[1])


CHECKS = []


def check(of):
    """Registers a check; `of`: the server it needs, "open" or "small"."""
    def register(function):
        CHECKS.append((function.__name__, of, function))
        return function
    return register


def equal(actual, expected, what=""):
    if actual != expected:
        raise AssertionError(f"{what or 'it'} is {actual!r}, not {expected!r}")


def holds(good, what):
    if not good:
        raise AssertionError(what)


def refused(call, kind, status, param=None, code=None):
    """The client's error of a request that must be refused, with OpenAI's fields."""
    try:
        call()
    except kind as error:
        equal(error.status_code, status, "the status")
        if param is not None:
            equal(error.param, param, "param")
        if code is not None:
            equal(error.code, code, "code")
        holds(error.body and error.body.get("message"), f"no message in {error.body}")
        return error
    raise AssertionError(f"it was answered instead of {kind.__name__}")


def error_of(reply, status):
    """The error object of a raw reply."""
    equal(reply[0], status, "the status")
    error = json.loads(reply[2])["error"]
    equal(sorted(error), ["code", "message", "param", "type"], "the fields of the error")
    return error


def report(results, suite_name="OpenAIClient", skipped=""):
    """Prints a row per (name, seconds, what is wrong or None), and writes the report that tools/run-tests asks for.
    `skipped`: why there are none."""
    if skipped:
        print(f"skipped: {skipped}")
        results = []
    width = max((len(name) for name, _, _ in results), default=0)
    for name, seconds, problem in results:
        print(f"{name:<{width}}  {'FAILED' if problem else 'ok':<6} {seconds:6.2f} s" + (f"  {problem}" if problem else ""))
    failed = sum(bool(problem) for _, _, problem in results)
    print(f"{len(results) - failed} passed, {failed} failed")
    kind, _, path = os.environ.get("GTEST_OUTPUT", "").partition(":")
    if kind == "xml":
        root = xml.Element("testsuites")
        suite = xml.SubElement(root, "testsuite")
        for name, seconds, problem in results:
            case = xml.SubElement(suite, "testcase", classname=suite_name, name=name, status="run",
                                  time=f"{seconds:.3f}")
            if problem:
                xml.SubElement(case, "failure", message=problem)
        if skipped:
            case = xml.SubElement(suite, "testcase", classname=suite_name, name="all", status="run", time="0")
            xml.SubElement(case, "skipped", message=skipped)
        xml.ElementTree(root).write(path)
    return 1 if failed else 0


def installed(packages, section):
    """The folder with that section of tools/oracles/requirements.txt, which can be imported from then on."""
    folder = packages / section
    subprocess.run([pathlib.Path(__file__).resolve().parents[2] / "tools/oracles/install", section, folder], check=True)
    sys.path.append(str(folder))
    return folder
