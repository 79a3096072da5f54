"""The peer of train_bench: the same training steps in PyTorch, set up as its best user would.

A process that answers on standard output to lines on standard input, so that two sides can take turns:
  steps N    runs N steps, answers {"seconds": [..N..], "losses": [..N..]}
  memory     answers {"peak_bytes": high-water mark of resident memory}
  quit
Its first line says what it is. Batches come from a file of little-endian i32 token ids, `batch` rows of `seq + 1`
tokens a step, from its beginning again at its end: the same rows as the other side reads.

Modes: eager | compile, and of bf16 `autocast` (f32 parameters) | `params` (bf16 parameters, bf16 state).
"""

import argparse
import json
import math
import sys
import time

import numpy
import torch
import torch.nn.functional as F
from safetensors.torch import load_file


class Norm(torch.nn.Module):
    def __init__(self, config, width):
        super().__init__()
        self.eps = config["eps"]
        self.rms = config["norm"] == "rms"
        self.weight = torch.nn.Parameter(torch.ones(width))
        self.bias = torch.nn.Parameter(torch.zeros(width)) if config["bias"] and not self.rms else None

    def forward(self, x):
        if self.rms:
            return F.rms_norm(x, (x.shape[-1],), self.weight, self.eps)
        return F.layer_norm(x, (x.shape[-1],), self.weight, self.bias, self.eps)


def rotate(x, cos, sin):
    """x[b, h, t, d]: halves rotated, as Llama does."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Block(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        width, bias = config["width"], config["bias"]
        self.heads, self.kv_heads = config["heads"], config["kv_heads"]
        self.head = width // self.heads
        self.norm1, self.norm2 = Norm(config, width), Norm(config, width)
        self.qkv = torch.nn.Linear(width, (self.heads + 2 * self.kv_heads) * self.head, bias=bias)
        self.o = torch.nn.Linear(width, width, bias=bias)
        self.gated = config["gated"]
        self.up = torch.nn.Linear(width, (2 if self.gated else 1) * config["mlp"], bias=bias)
        self.down = torch.nn.Linear(config["mlp"], width, bias=bias)

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        sizes = [n * self.head for n in (self.heads, self.kv_heads, self.kv_heads)]
        q, k, v = (y.view(b, t, -1, self.head).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(sizes, dim=-1))
        if cos is not None:
            q, k = rotate(q, cos, sin).to(v.dtype), rotate(k, cos, sin).to(v.dtype)
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.heads != self.kv_heads)
        x = x + self.o(o.transpose(1, 2).reshape(b, t, -1))
        h = self.up(self.norm2(x))
        if self.gated:
            gate, up = h.chunk(2, dim=-1)
            h = F.silu(gate) * up
        else:
            h = F.gelu(h, approximate="tanh")
        return x + self.down(h)


class Decoder(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        width = config["width"]
        self.tokens = torch.nn.Embedding(config["vocabulary"], width)
        self.positions = torch.nn.Embedding(config["context"], width) if config["position"] == "learned" else None
        self.blocks = torch.nn.ModuleList(Block(config) for _ in range(config["layers"]))
        self.norm = Norm(config, width)
        self.head = None if config["tied"] else torch.nn.Linear(width, config["vocabulary"], bias=False)
        if self.positions is None:
            half = width // config["heads"] // 2
            angle = torch.outer(torch.arange(config["context"]), config["theta"] ** (-torch.arange(half) / half))
            self.register_buffer("cos", angle.cos(), persistent=False)
            self.register_buffer("sin", angle.sin(), persistent=False)

    def forward(self, tokens, labels):
        t = tokens.shape[1]
        x = self.tokens(tokens)
        cos = sin = None
        if self.positions is None:
            cos, sin = self.cos[:t], self.sin[:t]
        else:
            x = x + self.positions.weight[:t]
        for block in self.blocks:
            x = block(x, cos, sin)
        logits = F.linear(self.norm(x), self.tokens.weight if self.head is None else self.head.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())

    def load(self, path):
        """Weights by Hugging Face's names (GPT-2's or Llama's)."""
        given = load_file(path)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                parameter.copy_(self.from_hf(given, name))

    def from_hf(self, given, name):
        gpt2 = any(key.endswith("wte.weight") for key in given)
        prefix = "transformer." if gpt2 and "transformer.wte.weight" in given else ""
        parts = name.split(".")
        if gpt2:
            ends = {"tokens": "wte", "positions": "wpe", "norm": "ln_f"}
            if parts[0] != "blocks":
                return given[f"{prefix}{ends[parts[0]]}.{parts[1]}"]
            inner = {"norm1": "ln_1", "norm2": "ln_2", "qkv": "attn.c_attn", "o": "attn.c_proj", "up": "mlp.c_fc",
                     "down": "mlp.c_proj"}[parts[2]]
            value = given[f"{prefix}h.{parts[1]}.{inner}.{parts[3]}"]
            return value.t() if value.ndim == 2 else value
        if parts[0] != "blocks":
            return given[{"tokens": "model.embed_tokens", "norm": "model.norm", "head": "lm_head"}[parts[0]] + ".weight"]
        at = f"model.layers.{parts[1]}."
        names = {"norm1": ["input_layernorm"], "norm2": ["post_attention_layernorm"],
                 "qkv": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"], "o": ["self_attn.o_proj"],
                 "up": ["mlp.gate_proj", "mlp.up_proj"], "down": ["mlp.down_proj"]}[parts[2]]
        return torch.cat([given[f"{at}{n}.weight"] for n in names])


class Trainer:
    def __init__(self, args):
        config = json.load(open(args.config))
        torch.manual_seed(0)
        torch.set_num_threads(args.threads)
        self.args = args
        self.model = Decoder(config)
        if args.weights:
            self.model.load(args.weights)
        if args.precision == "bf16" and args.bf16 == "params":
            self.model.to(torch.bfloat16)
        matrices = [p for p in self.model.parameters() if p.ndim >= 2]
        vectors = [p for p in self.model.parameters() if p.ndim < 2]
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": args.decay}, {"params": vectors, "weight_decay": 0.0}],
            lr=args.rate, betas=(0.9, 0.95), eps=1e-8, fused=True)
        self.call = torch.compile(self.model) if args.mode == "compile" else self.model
        self.ids = numpy.fromfile(args.tokens, dtype="<i4")
        self.at = 0

    def rows(self):
        size = self.args.batch * (self.args.seq + 1)
        if self.at + size > len(self.ids):
            self.at = 0
        rows = torch.from_numpy(self.ids[self.at:self.at + size].astype(numpy.int64)).view(self.args.batch, -1)
        self.at += size
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()

    def step(self):
        tokens, labels = self.rows()
        autocast = self.args.precision == "bf16" and self.args.bf16 == "autocast"
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = self.call(tokens, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip, foreach=True)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.item()


def answer(value):
    print(json.dumps(value), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    parser.add_argument("--weights", default="")
    parser.add_argument("--tokens", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--seq", type=int, required=True)
    parser.add_argument("--precision", choices=["f32", "bf16"], required=True)
    parser.add_argument("--mode", choices=["eager", "compile"], default="eager")
    parser.add_argument("--bf16", choices=["autocast", "params"], default="autocast")
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--decay", type=float, default=0.1)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--threads", type=int, required=True)
    trainer = Trainer(parser.parse_args())
    answer({"peer": f"PyTorch {torch.__version__}"})
    for line in sys.stdin:
        words = line.split()
        if words[0] == "steps":
            seconds, losses = [], []
            for _ in range(int(words[1])):
                began = time.perf_counter()
                losses.append(trainer.step())
                seconds.append(time.perf_counter() - began)
            answer({"seconds": seconds, "losses": losses})
        elif words[0] == "memory":
            status = open("/proc/self/status").read()
            answer({"peak_bytes": int(status.split("VmHWM:")[1].split()[0]) * 1024})
        else:
            return


if __name__ == "__main__":
    main()
