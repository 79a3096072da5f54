#!/usr/bin/env python3
"""llama.cpp on the same numbers in f32: 512 tokens of a text, teacher-forced, against what `systole serve` says of them as an
echoed prompt.

  tests/serving/llama_cpp_logits.py PROGRAM PACKAGES [--backend cpu]

PACKAGES is the folder into whose subfolders tools/oracles/install puts packages from PyPI. The server reads the Q4_1 file
as it was published; llama.cpp reads one with its numbers in f32 (of a quantised file it would round the activations, too).
"""
import argparse
import json
import math
import pathlib
import shutil
import sys
import tempfile

from harness import Server, equal, holds, installed

import smollm2

TOKENS, MODEL = 512, "smollm2"
TEXT = pathlib.Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
# A product of length K in f32 rounds by about sqrt(K) 2^-24 of the size of its summands, and the roundings of a layer's
# products add to the residual stream as a random walk: q, k, v, o, gate and up have K = 576, of which four follow each
# other, and down has 1,536. There are 30 layers, two programs, and the head's product scales all by the logits' size.
ROUNDINGS = math.sqrt(30 * (4 * 576 + 1536) + 576) * 2**-24


def by_llama_cpp(path, tokens):
    """f64[tokens, vocabulary]; and what llama.cpp makes of the text, [tokens]."""
    import numpy
    from cyllama.llama import llama_cpp
    llama_cpp.disable_logging()

    class Model(llama_cpp.LlamaModel):
        n_vocab = 49152  # the package forgets it

    model = Model(str(path), llama_cpp.LlamaModelParams())
    options = llama_cpp.LlamaContextParams()
    options.n_ctx, options.n_batch, options.n_ubatch = 1024, TOKENS, TOKENS
    options.type_k = options.type_v = options.flash_attn_type = 0  # f32; no flash attention
    options.n_threads = options.n_threads_batch = 2
    context = llama_cpp.LlamaContext(model, options)
    text = model.get_vocab().tokenize(TEXT.read_text(encoding="utf-8"), False, False)[:TOKENS]
    batch = llama_cpp.LlamaBatch(n_tokens=TOKENS, embd=0, n_seq_max=1)
    batch.set_batch(tokens, 0, True)
    context.decode(batch)
    return numpy.array([context.get_logits_ith(i) for i in range(len(tokens))], dtype=numpy.float64), text


def spellings(path):
    """Of each token, as the server writes it (byte-level BPE: every character stands for a byte)."""
    from gguf import GGUFReader
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    bytes_of = {chr(b): b for b in kept}
    bytes_of.update({chr(256 + i): b for i, b in enumerate(b for b in range(256) if b not in kept)})
    for token in GGUFReader(path).fields["tokenizer.ggml.tokens"].contents():
        spelled = bytes(bytes_of.get(c, 63) for c in token)
        try:
            yield spelled.decode()
        except UnicodeDecodeError:
            yield "bytes:" + "".join(f"\\x{b:02X}" for b in spelled)


def compare(program, packages, backend):
    import numpy
    source = smollm2.quantised(packages / "smollm2")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="systole-llama-"))
    try:
        with Server(program, folder, str(source), "--name", MODEL, "--context", "1024", "--slots", "16", backend=backend) as s:
            def ask(path, body):
                status, _, reply = s.raw("POST", path, json.dumps(body))
                equal(status, 200, f"the status of {path}: {reply[:200]}")
                return json.loads(reply)
            tokens = ask("/tokenize", {"prompt": TEXT.read_text(encoding="utf-8")[:4000]})["tokens"][:TOKENS]
            equal(len(tokens), TOKENS, "tokens of the text")
            ours = ask("/v1/completions", {"model": MODEL, "prompt": tokens, "max_tokens": 0, "echo": True, "logprobs": 5})
        equal(s.process.returncode, 0, "the server's exit code")
        smollm2.write_f32_gguf(source, folder / "f32.gguf")
        logits, text = by_llama_cpp(folder / "f32.gguf", tokens)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    equal(text, tokens, "llama.cpp's tokens of the text")
    size = numpy.abs(logits).max()
    tolerance = 2 * ROUNDINGS * size
    logs = logits - numpy.log(numpy.exp(logits - size).sum(axis=1, keepdims=True)) - size
    names = list(spellings(source))
    token_of = {name: token for token, name in reversed(list(enumerate(names)))}
    ours = ours["choices"][0]["logprobs"]
    worst, same, near = 0.0, 0, 0
    for i in range(1, TOKENS):
        row, top = logs[i - 1], ours["top_logprobs"][i]
        differences = [abs(ours["token_logprobs"][i] - row[tokens[i]])]
        differences += [abs(logprob - row[token_of[name]]) for name, logprob in top.items() if name in token_of]
        worst = max(worst, *differences)
        best = numpy.argsort(row)[-2:]
        apart = row[best[1]] - row[best[0]]
        # A log probability is a logit less one of the sum of all, so its tolerance is twice that of a logit.
        if apart <= 2 * tolerance:
            near += 1
            continue
        same += 1
        equal(max(top, key=top.get), names[best[1]], f"the likeliest token after {i}, {apart} before the next")
    print(f"{TOKENS - 1} places: largest difference of a log probability {worst:.2e}, tolerance {2 * tolerance:.2e} "
          f"(logits up to {size:.1f}); likeliest tokens equal in {same}, {near} too near to say")
    holds(worst <= 2 * tolerance, f"log probabilities differ by {worst}, more than {2 * tolerance}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("packages", type=pathlib.Path)
    parser.add_argument("--backend", default="cpu")
    options = parser.parse_args()
    packages = options.packages.resolve()
    for section in ("smollm2", "llama-cpp"):
        installed(packages, section)
    return compare(str(options.program.resolve()), packages, options.backend)


if __name__ == "__main__":
    sys.exit(main())
