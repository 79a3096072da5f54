"""Systole beside PyTorch: training steps of the same model from the same weights on the same rows, in turns.

For each case the fastest of PyTorch's ways is found (eager, compiled; of bf16 autocast or bf16 parameters). Both sides
run the same 20 steps from the same weights and their losses are held against each other; then they take turns, PAIRS
times, a step or more each. Medians, and half the distance between the quartiles.

Then generation with a cache, one side after the other.

  bench/compare.py BUILD_FOLDER [CASE...]
      cases: quick-f32 quick-bf16 llama-f32 llama-bf16 gpt2-f32 gpt2-bf16 gpt2-bf16-8 generate
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

import make_weights

HERE = os.path.dirname(os.path.abspath(__file__))
PAIRS = int(os.environ.get("PAIRS", "7"))
LOSS_STEPS = int(os.environ.get("LOSS_STEPS", "20"))
LONG_STEP = 20  # seconds: of steps that take longer one is timed, where one chooses among PyTorch's ways
PASSIVE = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "2000"}  # as the program sets them (operate/cli/main.cc)
GPT = {"position": "learned", "norm": "layer", "bias": True, "gated": False, "tied": True, "eps": 1e-5, "theta": 1e4}
LLAMA = {"position": "rotary", "norm": "rms", "bias": False, "gated": True, "tied": False, "eps": 1e-5, "theta": 1e4}
MODELS = {
    "quick": GPT | {"layers": 3, "width": 128, "heads": 4, "kv_heads": 4, "mlp": 512, "vocabulary": 2048, "context": 256},
    "llama": LLAMA | {"layers": 8, "width": 512, "heads": 8, "kv_heads": 4, "mlp": 1408, "vocabulary": 32000,
                      "context": 512},
    "gpt2": GPT | {"layers": 12, "width": 768, "heads": 12, "kv_heads": 12, "mlp": 3072, "vocabulary": 50304,
                   "context": 512},
}
# name: model, precision, rows, at least so many times the fastest PyTorch, tolerance of losses (relative)
CASES = {
    "quick-f32": ("quick", "f32", 16, 1.2, 1e-4),
    "quick-bf16": ("quick", "bf16", 16, 1.2, 2e-2),
    "llama-f32": ("llama", "f32", 2, 1.2, 1e-4),
    "llama-bf16": ("llama", "bf16", 2, 1.2, 2e-2),
    "gpt2-f32": ("gpt2", "f32", 2, 1.0, 1e-4),
    "gpt2-bf16": ("gpt2", "bf16", 2, 1.1, 2e-2),
    "gpt2-bf16-8": ("gpt2", "bf16", 8, 1.1, 2e-2),
}


class Side:
    """A process that answers questions."""

    def __init__(self, name, words):
        self.name = name
        environment = os.environ | PASSIVE if name == "Systole" else None
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.hello = self.read()["peer"]

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended with {self.process.wait()}")
        return json.loads(line)

    def ask(self, question):
        self.process.stdin.write(question + "\n")
        self.process.stdin.flush()
        return self.read()

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def weights(scratch, model):
    folder = os.path.join(scratch, model)
    if not os.path.exists(folder):
        make_weights.write(MODELS[model], 400_000, folder)
        json.dump(MODELS[model], open(os.path.join(folder, "shape.json"), "w"))
    return folder


def systole(build, folder, model, precision, rows):
    c = MODELS[model]
    workload = os.path.join(folder, "job.yaml")
    with open(workload, "w") as file:
        file.write(f"""systole: 1
name: bench
model: {{ weights: {folder}, context: {c["context"]} }}
data: {{ train: {{ files: none }}, tokenizer: {{ vocabulary: {c["vocabulary"]} }} }}
train:
  batch: {rows}
  steps: 1000000
  precision: {precision}
  optimizer: {{ kind: adamw, rate: 1e-4, schedule: constant, warmup: 0 }}
checkpoint: {{ asynchronous: false, every: never }}
""")
    return Side("Systole", [os.path.join(build, "bench/train_bench"), workload, os.path.join(folder, "tokens.i32")])


def torch(folder, model, precision, rows, mode, bf16):
    return Side(f"PyTorch {mode} {bf16}".strip(), [
        sys.executable, os.path.join(HERE, "torch_train.py"), "--config", os.path.join(folder, "shape.json"), "--weights",
        os.path.join(folder, "model.safetensors"), "--tokens", os.path.join(folder, "tokens.i32"), "--batch", str(rows),
        "--seq", str(MODELS[model]["context"]), "--precision", precision, "--mode", mode, "--bf16", bf16 or "autocast",
        "--threads", str(len(os.sched_getaffinity(0)))])


def fastest_torch(folder, model, precision, rows):
    """The fastest of PyTorch's ways after each has warmed up; it starts anew, from the weights as they were."""
    ways = []
    for mode in ("eager", "compile"):
        for bf16 in ("autocast", "params") if precision == "bf16" else ("",):
            side = torch(folder, model, precision, rows, mode, bf16)
            seconds = side.ask("steps 1")["seconds"]
            seconds = side.ask("steps 3" if seconds[0] < LONG_STEP else "steps 1")["seconds"]
            print(f"    {side.name}: {1e3 * min(seconds):.1f} ms, {side.ask('memory')['peak_bytes'] / 2**20:.0f} MiB",
                  flush=True)
            side.end()
            ways.append((min(seconds), mode, bf16))
    _, mode, bf16 = min(ways)
    side = torch(folder, model, precision, rows, mode, bf16)
    side.losses = side.ask(f"steps {LOSS_STEPS}")["losses"]
    return side


def spread(times):
    quarters = statistics.quantiles(times, n=4)
    return (quarters[2] - quarters[0]) / 2 / statistics.median(times)


def run(build, name, scratch):
    model, precision, rows, wanted, tolerance = CASES[name]
    folder = weights(scratch, model)
    print(f"{name}: {rows} x {MODELS[model]['context']} tokens a step", flush=True)
    ours = systole(build, folder, model, precision, rows)
    ours.losses = ours.ask(f"steps {LOSS_STEPS}")["losses"]
    theirs = fastest_torch(folder, model, precision, rows)
    apart = max(abs(a - b) / b for a, b in zip(ours.losses, theirs.losses))
    print(f"    losses of {LOSS_STEPS} steps: {ours.losses[0]:.5f} to {ours.losses[-1]:.5f}, at most {apart:.1e} apart "
          f"(asked {tolerance:.0e})", flush=True)
    if not apart <= tolerance:
        raise SystemExit(f"{name}: the losses differ, so no speed is told")
    steps = max(1, round(1 / min(ours.ask("steps 2")["seconds"])))
    mine, other, ratios = [], [], []
    for _ in range(PAIRS):
        a = statistics.median(ours.ask(f"steps {steps}")["seconds"])
        b = statistics.median(theirs.ask(f"steps {steps}")["seconds"])
        mine.append(a)
        other.append(b)
        ratios.append(b / a)
    rate = ours.ask("matmul")
    flops = step_flops(MODELS[model], rows)
    tokens = rows * MODELS[model]["context"]
    memory = [side.ask("memory")["peak_bytes"] for side in (ours, theirs)]
    ours.end()
    theirs.end()
    ratio = statistics.median(ratios)
    print(f"    {'':12}{'Systole':>14}  {theirs.name}\n"
          f"    {'a step':12}{1e3 * statistics.median(mine):11.1f} ms  {1e3 * statistics.median(other):.1f} ms"
          f"   (± {100 * spread(mine):.1f}%, {100 * spread(other):.1f}%)\n"
          f"    {'tokens/s':12}{tokens / statistics.median(mine):14.0f}  {tokens / statistics.median(other):.0f}\n"
          f"    {'peak memory':12}{memory[0] / 2**20:10.0f} MiB  {memory[1] / 2**20:.0f} MiB\n"
          f"    {ratio:.2f} x PyTorch (asked {wanted}); {100 * flops / statistics.median(mine) / rate[precision]:.0f}% of "
          f"this machine's 2048^3 product in {precision}, {rate[precision] / 1e9:.0f} GFLOP/s", flush=True)
    return name, ratio, wanted, memory


def generate(build, scratch):
    folder = weights(scratch, "gpt2")
    print("generation: gpt2, f32", flush=True)
    subprocess.run([os.path.join(build, "bench/generate_bench"), folder], check=True, env=os.environ | PASSIVE)
    subprocess.run([sys.executable, os.path.join(HERE, "torch_generate.py"), folder], check=True)


def step_flops(c, rows):
    """Model FLOPs: 6 a matmul parameter a token, and the causal half of attention."""
    kv = c["width"] // c["heads"] * c["kv_heads"]
    block = c["width"] * (2 * c["width"] + 2 * kv) + (3 if c["gated"] else 2) * c["width"] * c["mlp"]
    tokens = rows * c["context"]
    attention = c["layers"] * tokens * c["context"] / 2 * c["width"] * 4 * 3
    return 6 * (c["layers"] * block + c["vocabulary"] * c["width"]) * tokens + attention


def main():
    build, names = sys.argv[1], sys.argv[2:] or [*CASES, "generate"]
    with tempfile.TemporaryDirectory() as scratch:
        rows = [run(build, name, scratch) for name in names if name != "generate"]
        if "generate" in names:
            generate(build, scratch)
    if not rows:
        return
    print("\ncase            x PyTorch   asked   peak memory / PyTorch's")
    for name, ratio, wanted, memory in rows:
        print(f"{name:14}{ratio:9.2f}{wanted:9.1f}{memory[0] / memory[1]:15.2f}{'' if ratio >= wanted else '   missed'}")


if __name__ == "__main__":
    main()
