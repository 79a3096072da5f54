"""What exact costs: steps of `exact: true` beside the same steps without, in turns.

A gpt of about 10M parameters, 8 rows of 512 tokens, on one rank of one thread and on two ranks of one thread each over
shared memory (data parallel and fully sharded; the same rows on each side). Prints the medians of the steps' times after
the first three, and their ratio; asked is 1.10 at most.

  bench/exact_bench.py SYSTOLE [STEPS [one|data|fsdp...]]
"""

import glob
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

WORKLOAD = """systole: 1
name: exact-cost
model: { family: gpt, layers: 4, width: 384, heads: 6, context: 512, vocabulary: 4096 }
data:
  train: { files: text.txt }
  tokenizer: { vocabulary: 2048 }
  folder: data
train:
  batch: 8
  steps: 8
  optimizer: { rate: 1e-3 }
  precision: bf16
checkpoint: { every: never, asynchronous: false }
resources: { threads: 1 }
"""
LAYOUTS = {"one": [], "data": ["--set", "mesh={data: 2}"], "fsdp": ["--set", "mesh={fsdp: 2}"]}


def text(path):
    draw = random.Random(1)
    words = ["".join(draw.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(draw.randint(2, 9))) for _ in range(4000)]
    with open(path, "w") as file:
        for _ in range(9000):
            file.write(" ".join(draw.choice(words) for _ in range(draw.randint(20, 200))) + "\n")


def step(systole, folder, name, words):
    run = subprocess.run([systole, "run", "job.yaml", "--folder", name, *words], cwd=folder, capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(run.stdout + run.stderr)
    seconds = []
    for path in glob.glob(f"{folder}/{name}/events/*.jsonl"):
        for line in open(path):
            event = json.loads(line)
            if event.get("event") == "step_ended":
                seconds.append(event["seconds"])
    return [sum(s.values()) if isinstance(s, dict) else s for s in seconds[3:]]


def main():
    systole = os.path.abspath(sys.argv[1])
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    with tempfile.TemporaryDirectory() as folder:
        text(f"{folder}/text.txt")
        with open(f"{folder}/job.yaml", "w") as file:
            file.write(WORKLOAD)
        subprocess.run([systole, "data", "build", "job.yaml"], cwd=folder, capture_output=True)
        for layout in sys.argv[3:] or LAYOUTS:
            times = {"false": [], "true": []}
            for turn in range(2):
                for exact in times:
                    words = [*LAYOUTS[layout], "--set", f"train.exact={exact}", "--set", f"train.steps={steps}"]
                    times[exact] += step(systole, folder, f"{layout}-{exact}-{turn}", words)
            usual, exact = (statistics.median(times[key]) for key in ("false", "true"))
            print(f"{layout:<5} {usual * 1e3:8.1f} ms a step, exact {exact * 1e3:8.1f} ms: {exact / usual:.3f}", flush=True)


if __name__ == "__main__":
    main()
