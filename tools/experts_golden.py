#!/usr/bin/env python3
"""What src/describe/models/experts_golden_test.cc holds: losses of two tiny mixtures of experts, in f64, by numpy.

    pip install numpy
    tools/experts_golden.py

A twin written from the papers and from docs/concepts/experts.md, token by token, with no buffers: Mixtral
(arXiv:2401.04088) and DeepSeekMoE (arXiv:2401.06066). Parameter k of a model, in Systole's order, has the elements
0.3 sin(0.7 k + 0.37 i), and 1 more where it is a norm's scale.
"""

import math

import numpy as np

VOCAB, WIDTH, HEADS, KV, HEAD, LAYERS, MLP, SEQ, THETA, EPS = 11, 12, 4, 2, 6, 2, 8, 12, 50.0, 1e-6
TOKENS = [(5 * i + 1) % VOCAB for i in range(SEQ)]
SEGMENTS = [1] * 4 + [2] * 6 + [0] * 2  # two documents, then padding
POSITIONS = [0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 0, 0]
LABELS = [6, 0, 5, -1, 4, 9, 3, 8, 2, -1, -1, -1]


class Filler:
    def __init__(self):
        self.k = 0

    def __call__(self, *shape, one=False):
        values = 0.3 * np.sin(0.7 * self.k + 0.37 * np.arange(math.prod(shape))) + (1.0 if one else 0.0)
        self.k += 1
        return values.reshape(shape)


def norm(x, scale):
    return x / np.sqrt(np.mean(x * x) + EPS) * scale


def turn(x, position):
    half = len(x) // 2
    angle = position * THETA ** (-2 * np.arange(half) / len(x))
    a, b = x[:half], x[half:]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)])


def softmax(x):
    e = np.exp(x - np.max(x))
    return e / np.sum(e)


def swiglu(x, gate, up, down):
    g = x @ gate
    return (g / (1 + np.exp(-g)) * (x @ up)) @ down


def attend(w, layer, x):
    q = [np.einsum("e,ehd->hd", norm(v, w["norm1"][layer]), w["q"][layer]) for v in x]
    k = [np.einsum("e,ehd->hd", norm(v, w["norm1"][layer]), w["k"][layer]) for v in x]
    value = [np.einsum("e,ehd->hd", norm(v, w["norm1"][layer]), w["v"][layer]) for v in x]
    out = []
    for i in range(SEQ):
        seen = [j for j in range(i + 1) if SEGMENTS[j] == SEGMENTS[i]]
        heads = np.zeros((HEADS, HEAD))
        for h in range(HEADS):
            n = h * KV // HEADS
            mine = turn(q[i][h], POSITIONS[i])
            p = softmax(np.array([mine @ turn(k[j][n], POSITIONS[j]) / math.sqrt(HEAD) for j in seen]))
            heads[h] = sum(p[m] * value[j][n] for m, j in enumerate(seen))
        out.append(x[i] + np.einsum("hd,hde->e", heads, w["o"][layer]))
    return out


def mix(w, layer, x, c):
    """The block's second half; also what it adds to the balancing loss, and how many choices were dropped."""
    places = c["group"] if c["dropless"] else math.ceil(c["factor"] * c["group"] * c["k"] / c["experts"])
    taken, wanted, mass, dropped, out = {}, np.zeros(c["experts"]), np.zeros(c["experts"]), 0, []
    for i in range(SEQ):
        n = norm(x[i], w["norm2"][layer])
        p = softmax(n @ w["router"][layer])
        chosen = sorted(range(c["experts"]), key=lambda e: (-p[e], e))[: c["k"]]
        total = sum(p[e] for e in chosen) if c["normalized"] else 1.0
        y = np.zeros(WIDTH)
        for e in chosen if SEGMENTS[i] else []:
            wanted[e] += 1
            group = (i // c["group"], e)
            taken[group] = taken.get(group, 0) + 1
            if taken[group] > places:
                dropped += 1
                continue
            y += p[e] / total * swiglu(n, w["gate"][layer][e], w["up"][layer][e], w["down"][layer][e])
        if c["shared"]:
            y += swiglu(n, w["shared.gate"][layer], w["shared.up"][layer], w["shared.down"][layer])
        if SEGMENTS[i]:
            mass += p
        out.append(x[i] + y)
    tokens = sum(1 for s in SEGMENTS if s)
    balance = c["experts"] * np.sum(wanted / (tokens * c["k"]) * mass / tokens)
    return out, balance, dropped


def model(name, c):
    put, w = Filler(), {}
    w["embed"] = put(VOCAB, WIDTH)
    w["norm1"] = put(LAYERS, WIDTH, one=True)
    w["q"], w["k"], w["v"] = (put(LAYERS, WIDTH, n, HEAD) for n in (HEADS, KV, KV))
    w["o"] = put(LAYERS, HEADS, HEAD, WIDTH)
    w["norm2"] = put(LAYERS, WIDTH, one=True)
    w["router"] = put(LAYERS, WIDTH, c["experts"])
    w["gate"], w["up"] = (put(LAYERS, c["experts"], WIDTH, MLP) for _ in range(2))
    w["down"] = put(LAYERS, c["experts"], MLP, WIDTH)
    if c["shared"]:
        w["shared.gate"], w["shared.up"] = (put(LAYERS, WIDTH, MLP * c["shared"]) for _ in range(2))
        w["shared.down"] = put(LAYERS, MLP * c["shared"], WIDTH)
    w["norm"] = put(WIDTH, one=True)
    w["head"] = put(VOCAB, WIDTH)
    x, balance, dropped = [w["embed"][t] for t in TOKENS], 0.0, 0
    for layer in range(LAYERS):
        x, b, d = mix(w, layer, attend(w, layer, x), c)
        balance, dropped = balance + b, dropped + d
    loss, labels = 0.0, 0
    for i in range(SEQ):
        if LABELS[i] < 0:
            continue
        loss -= math.log(softmax(w["head"] @ norm(x[i], w["norm"]))[LABELS[i]])
        labels += 1
    print(f"{name}: loss {loss:.12f}, with balance {loss + c['balance'] * balance * labels:.12f}, dropped {dropped}")


model("mixtral", dict(experts=4, k=2, group=SEQ, dropless=True, factor=0, normalized=True, shared=0, balance=0.01))
model("deepseek", dict(experts=6, k=3, group=4, dropless=False, factor=0.75, normalized=False, shared=2, balance=0.5))
