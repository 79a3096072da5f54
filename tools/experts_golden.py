#!/usr/bin/env python3
"""What src/describe/models/experts_golden_test.cc holds: losses of five tiny mixtures of experts, in f64, by numpy.

    pip install numpy
    tools/experts_golden.py

A twin written from the papers and from docs/concepts/experts.md, token by token, with no buffers: Mixtral
(arXiv:2401.04088), DeepSeekMoE (arXiv:2401.06066), Qwen3 (arXiv:2505.09388) and DeepSeek-V3 (arXiv:2412.19437: latent
attention, a first layer without experts, routers with a sigmoid); the last has experts in every second
layer, as Llama 4. Parameter k of a model, in Systole's order, has the
elements 0.3 sin(0.7 k + 0.37 i), and 1 more where it is a norm's scale.
"""

import math

import numpy as np

VOCAB, WIDTH, HEADS, KV, HEAD, LAYERS, MLP, SEQ, THETA, EPS = 11, 12, 4, 2, 6, 2, 8, 12, 50.0, 1e-6
TOKENS = [(5 * i + 1) % VOCAB for i in range(SEQ)]
SEGMENTS = [1] * 4 + [2] * 6 + [0] * 2  # two documents, then padding
POSITIONS = [0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 0, 0]
Q_RANK, KV_RANK, NOPE, ROPE, VALUE, DENSE_MLP = 7, 5, 4, 2, 3, 10  # of latent attention, of layers without experts
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


def heads_of(w, layer, x, c):
    """Queries and keys at their positions, and values: [token][head]."""
    q, k, value = [], [], []
    for i, token in enumerate(x):
        n = norm(token, w["norm1"][layer])
        if c["latent"]:
            low = norm(n @ w["kv_down"][layer], w["kv_norm"][layer])
            plain = np.einsum("r,rhd->hd", norm(n @ w["q_down"][layer], w["q_norm"][layer]), w["q"][layer])
            places = turn(n @ w["k_rope"][layer], POSITIONS[i])
            keys = np.einsum("r,rhd->hd", low, w["k"][layer])
            q.append([np.concatenate([a[:NOPE], turn(a[NOPE:], POSITIONS[i])]) for a in plain])
            k.append([np.concatenate([a, places]) for a in keys])
            value.append(np.einsum("r,rhd->hd", low, w["v"][layer]))
            continue
        mine, keys = (np.einsum("e,ehd->hd", n, w[name][layer]) for name in ("q", "k"))
        if c["qk_norm"]:
            mine = [norm(a, w["q_norm"][layer]) for a in mine]
            keys = [norm(a, w["k_norm"][layer]) for a in keys]
        q.append([turn(a, POSITIONS[i]) for a in mine])
        k.append([turn(a, POSITIONS[i]) for a in keys])
        value.append(np.einsum("e,ehd->hd", n, w["v"][layer]))
    return q, k, value


def attend(w, layer, x, c):
    q, k, value = heads_of(w, layer, x, c)
    out = []
    for i in range(SEQ):
        seen = [j for j in range(i + 1) if SEGMENTS[j] == SEGMENTS[i]]
        heads = []
        for h in range(HEADS):
            n = h * len(k[i]) // HEADS
            p = softmax(np.array([q[i][h] @ k[j][n] / math.sqrt(len(q[i][h])) for j in seen]))
            heads.append(sum(p[m] * value[j][n] for m, j in enumerate(seen)))
        out.append(x[i] + np.einsum("hd,hde->e", np.array(heads), w["o"][layer]))
    return out


def feed(w, layer, x):
    matrices = [w[name][layer] for name in ("mlp.gate", "mlp.up", "mlp.down")]
    return [v + swiglu(norm(v, w["norm2"][layer]), *matrices) for v in x]


def mix(w, layer, x, c):
    """The block's second half; also what it adds to the balancing loss, and how many choices were dropped."""
    places = c["group"] if c["dropless"] else math.ceil(c["factor"] * c["group"] * c["k"] / c["experts"])
    taken, wanted, mass, dropped, out = {}, np.zeros(c["experts"]), np.zeros(c["experts"]), 0, []
    for i in range(SEQ):
        n = norm(x[i], w["norm2"][layer])
        logits = n @ w["router"][layer]
        p = 1 / (1 + np.exp(-logits)) if c["sigmoid"] else softmax(logits)
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
            y += c["scale"] * p[e] / total * swiglu(n, w["gate"][layer][e], w["up"][layer][e], w["down"][layer][e])
        if c["shared"]:
            y += swiglu(n, w["shared.gate"][layer], w["shared.up"][layer], w["shared.down"][layer])
        if SEGMENTS[i]:
            mass += p / np.sum(p)
        out.append(x[i] + y)
    tokens = sum(1 for s in SEGMENTS if s)
    balance = c["experts"] * np.sum(wanted / (tokens * c["k"]) * mass / tokens)
    return out, balance, dropped


def attention_weights(put, layers, c):
    w = {"norm1": put(layers, WIDTH, one=True)}
    if c["latent"]:
        w["q_down"], w["q_norm"] = put(layers, WIDTH, Q_RANK), put(layers, Q_RANK, one=True)
        w["q"] = put(layers, Q_RANK, HEADS, NOPE + ROPE)
        w["kv_down"], w["kv_norm"] = put(layers, WIDTH, KV_RANK), put(layers, KV_RANK, one=True)
        w["k_rope"] = put(layers, WIDTH, ROPE)
        w["k"], w["v"] = put(layers, KV_RANK, HEADS, NOPE), put(layers, KV_RANK, HEADS, VALUE)
        w["o"] = put(layers, HEADS, VALUE, WIDTH)
    else:
        w["q"], w["k"], w["v"] = (put(layers, WIDTH, n, HEAD) for n in (HEADS, KV, KV))
        w["o"] = put(layers, HEADS, HEAD, WIDTH)
        if c["qk_norm"]:
            w["q_norm"], w["k_norm"] = put(layers, HEAD, one=True), put(layers, HEAD, one=True)
    w["norm2"] = put(layers, WIDTH, one=True)
    return w


def expert_weights(put, layers, c):
    w = {"router": put(layers, WIDTH, c["experts"])}
    w["gate"], w["up"] = (put(layers, c["experts"], WIDTH, MLP) for _ in range(2))
    w["down"] = put(layers, c["experts"], MLP, WIDTH)
    if c["shared"]:
        w["shared.gate"], w["shared.up"] = (put(layers, WIDTH, MLP * c["shared"]) for _ in range(2))
        w["shared.down"] = put(layers, MLP * c["shared"], WIDTH)
    return w


DEFAULTS = dict(latent=False, qk_norm=False, sigmoid=False, scale=1.0, dense=0)


def model(name, c):
    c = DEFAULTS | c
    put = Filler()
    embed = put(VOCAB, WIDTH)
    dense = attention_weights(put, c["dense"], c) if c["dense"] else {}
    if c["dense"]:
        dense["mlp.gate"], dense["mlp.up"] = (put(c["dense"], WIDTH, DENSE_MLP) for _ in range(2))
        dense["mlp.down"] = put(c["dense"], DENSE_MLP, WIDTH)
    w = attention_weights(put, LAYERS - c["dense"], c) | expert_weights(put, LAYERS - c["dense"], c)
    w["norm"] = put(WIDTH, one=True)
    w["head"] = put(VOCAB, WIDTH)
    x, balance, dropped = [embed[t] for t in TOKENS], 0.0, 0
    for layer in range(c["dense"]):
        x = feed(dense, layer, attend(dense, layer, x, c))
    for layer in range(LAYERS - c["dense"]):
        x, b, d = mix(w, layer, attend(w, layer, x, c), c)
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
model(
    "qwen3",
    dict(experts=4, k=2, group=SEQ, dropless=True, factor=0, normalized=True, shared=0, balance=0.01, qk_norm=True),
)
# Of two layers the second has experts, so the first is a dense layer in front of it.
model(
    "every second layer",
    dict(experts=6, k=3, group=4, dropless=False, factor=1, normalized=False, shared=1, balance=0.5, dense=1),
)
model(
    "deepseek-v3",
    dict(experts=6, k=3, group=4, dropless=False, factor=1, normalized=True, shared=1, balance=0.5, latent=True,
         sigmoid=True, scale=2.5, dense=1),
)
