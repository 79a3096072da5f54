#!/usr/bin/env python3
"""Files of records, images, and byte-level BPE, beside their own libraries: records a second on one thread, in turns.

  bench/data_compare.py BUILD_FOLDER [CASE...]
      --rounds 5                rounds; a round asks both sides of a case once
      --peers BUILD_FOLDER/oracles    where libraries are installed (tools/oracles/install), or are already
      --folder PATH             keeps the files there; otherwise in a folder that is removed

data_bench makes the files: 65,536 records of words, 1.45 kB each, and 64 JPEG of 500 x 375. Both sides read the same ones from the page cache,
each in a process of its own that stays, on one processor. Figures are medians of the rounds, a ratio is Systole's beside
the library's, with its spread over the rounds. Both count the bytes that they got, and must agree. A library that cannot be
had here (exit 3 of tools/oracles/install) is skipped by name; one that is there and does not start is an error. Ends with
1 if a figure is below what is asked of it.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SECTIONS = {"array_record": "records", "grain": "grain", "tensorflow": "tensorflow", "webdataset": "archives",
            "streaming": "archives", "pyarrow": "parquet", "tokenizers": "small", "pillow": "images"}
# our case, the library, its way and file, at least so many times it, at least so many records/s (None: not asked)
CASES = [
    ("words.tfrecord order", "tensorflow", "one words.tfrecord", None, 1.3e6),
    ("words.tfrecord order", "tensorflow", "batch words.tfrecord", None, 1.3e6),
    ("zstd-1.array_record order", "array_record", "order zstd-1", None, None),
    ("zstd-1.array_record random", "array_record", "random zstd-1", 2.0, None),
    ("plain-1.array_record random", "array_record", "random plain-1", 2.0, None),
    ("zstd-256.array_record order", "array_record", "order zstd-256", 1.0, None),
    ("zstd-1.array_record batch", "array_record", "batch zstd-1", None, 3e5),
    ("zstd-1.array_record batch", "grain", "dataset zstd-1", None, 3e5),
    ("zstd-1.array_record batch", "grain", "loader zstd-1", None, 3e5),
    ("words.tar order", "webdataset", "order words.tar", None, 1e6),
    ("words.tar.zst order", None, None, None, None),
    ("words.parquet order", "pyarrow", "table words", 1.0, None),
    ("words.parquet order", "pyarrow", "each words", 1.0, None),
    ("words.csv order", "pyarrow", "csv words", None, None),
    ("mds order", "streaming", "order mds", 10.0, None),
    ("mds random", "streaming", "random mds", 10.0, None),
    ("jpeg decode", "pillow", "decode photos", None, None),
    ("jpeg train", "pillow", "train photos", None, 1300),
    ("bpe gpt2", "tokenizers", "bpe gpt2", 1.0, None),
    ("bpe llama3", "tokenizers", "bpe llama3", 1.0, None),
    ("bpe gpt4o", "tokenizers", "bpe gpt4o", 1.0, None),
]


class Side:
    """A process that answers questions, on one processor."""

    def __init__(self, words, paths=()):
        core = {max(os.sched_getaffinity(0))}
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment, preexec_fn=lambda: os.sched_setaffinity(0, core))
        if not self.process.stdout.readline():
            raise SystemExit(f"{' '.join(words)}: ended with {self.process.wait()} before it was ready")

    def ask(self, question):
        self.process.stdin.write(question + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"'{question}' ended with {self.process.wait()}")
        answer = json.loads(line)
        return answer["records"] / answer["seconds"], answer

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def install(section, peers):
    folder = os.path.join(peers, section)
    done = subprocess.run([os.path.join(HERE, "../tools/oracles/install"), section, folder], stderr=subprocess.PIPE,
                          check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(f"tools/oracles/install {section}: exit {done.returncode}\n{done.stderr.decode()}")
    return folder if done.returncode == 0 else None


def line_of(case, library, way, own, peer, times, rate):
    """A line of the table, and whether what is asked of it is met."""
    median = statistics.median(own)
    line, met = f"{case:28} {median:11,.0f}", rate is None or median >= rate
    asked = [f"{rate:,.0f}"] if rate else []
    if peer:
        ratios = [a / b for a, b in zip(own, peer)]
        spread = f"{statistics.median(ratios):.2f} × ({min(ratios):.2f}–{max(ratios):.2f})"
        line += f" {library + ' ' + way.split()[0]:22} {statistics.median(peer):10,.0f} {spread:26}"
        if times:
            asked.append(f"{times:.1f} ×")
            met = met and statistics.median(ratios) >= times
    else:
        line += f" {(library or '') + (' is not there' if library else ''):60}"
    verdict = "" if not asked else f" {' and '.join(asked)}: {'met' if met else 'BELOW'}"
    return line + verdict, met


def measure(own_side, peer_side, case, way, rounds):
    own, peer = [], []
    for number in range(rounds + 1):  # the first is to warm up
        rate, answer = own_side.ask(case)
        if peer_side:
            peer_rate, found = peer_side.ask(way)
            if found["records"] == answer["records"] and found["bytes"] != answer["bytes"]:
                raise SystemExit(f"{case}: {answer['bytes']} bytes, and the library read {found['bytes']}")
        if number > 0:
            own.append(rate)
            peer += [peer_rate] if peer_side else []
    return own, peer


def run(options, folder):
    asked = {case[1] for case in options.cases if case[1]}
    peers = {library: install(SECTIONS[library], options.peers) for library in sorted(asked)}
    with_tokenizers = peers.get("tokenizers") is not None
    program = os.path.join(HERE, "data_peers.py")
    if with_tokenizers and not os.path.exists(os.path.join(folder, "gpt2.json")):
        subprocess.run([sys.executable, program, "tokenizers-train", folder], check=True,
                       env=os.environ | {"PYTHONPATH": peers["tokenizers"]})
    own_side = Side([os.path.join(options.build, "src/execute/data/data_bench"), folder])
    sides, all_met = {}, True
    print(f"{'':28} {'records/s':>11} {'beside':22} {'records/s':>10} {'ratio':26} asked")
    for case, library, way, times, rate in options.cases:
        if case.startswith("bpe") and not with_tokenizers:
            print(f"{case:28} tokenizers is not there")
            continue
        if library and library not in sides:
            words = [sys.executable, program, library, folder]
            sides[library] = Side(words, [peers[library]]) if peers[library] else None
        side = sides.get(library)
        own, peer = measure(own_side, side, case, way, options.rounds)
        line, met = line_of(case, library, way, own, peer, times, rate)
        all_met = all_met and met
        print(line, flush=True)
    for side in [own_side, *filter(None, sides.values())]:
        side.end()
    return 0 if all_met else 1


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers")
    parser.add_argument("--folder")
    options = parser.parse_intermixed_args()
    options.peers = options.peers or os.path.join(options.build, "oracles")
    options.cases = [case for case in CASES if not options.cases or any(one in case[0] for one in options.cases)]
    if options.folder:
        os.makedirs(options.folder, exist_ok=True)
        return run(options, options.folder)
    with tempfile.TemporaryDirectory() as folder:
        return run(options, folder)


if __name__ == "__main__":
    sys.exit(main())
