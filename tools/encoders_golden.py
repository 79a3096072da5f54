#!/usr/bin/env python3
"""What src/describe/models/encoders_golden_test.cc holds: logits of a tiny bert and two tiny t5s by transformers, in f64.

    pip install torch transformers==5.23.0
    tools/encoders_golden.py

Parameter k of a model, in Systole's order, has the elements 0.3 sin(0.7 k + 0.37 i), and 1 more where it is a norm's
scale. T5's norms take their statistics in f32 even here.
"""

import math

import torch
from transformers import BertConfig, BertForMaskedLM, T5Config, T5ForConditionalGeneration

torch.set_default_dtype(torch.float64)
VOCAB, WIDTH, HEADS, LAYERS, MLP = 11, 12, 3, 2, 20


class Filler:
    """Parameters one after another."""

    def __init__(self):
        self.k = 0

    def __call__(self, *shape, one=False):
        i = torch.arange(math.prod(shape), dtype=torch.float64)
        values = torch.sin(0.7 * self.k + 0.37 * i) * 0.3 + (1.0 if one else 0.0)
        self.k += 1
        return values.reshape(shape)


def show(name, logits):
    print(f"{name}: " + ", ".join(f"{v:.9f}" for v in logits.tolist()))


def t5(gated):
    head, decoder_layers = 5, 3
    model = T5ForConditionalGeneration(
        T5Config(
            vocab_size=VOCAB, d_model=WIDTH, d_kv=head, num_heads=HEADS, d_ff=MLP, num_layers=LAYERS,
            num_decoder_layers=decoder_layers, relative_attention_num_buckets=8, relative_attention_max_distance=6,
            feed_forward_proj="gated-gelu" if gated else "relu", tie_word_embeddings=not gated, dropout_rate=0,
        )
    ).double().eval()
    put, state = Filler(), {}

    def each(layers, name, values):
        for layer in range(layers):
            state[name.format(layer)] = values[layer]

    def attention(block, layers, name):
        for x in "qkv":
            w = put(layers, WIDTH, HEADS, head).reshape(layers, WIDTH, HEADS * head)
            each(layers, f"{block}.{{}}.{name}.{x}.weight", w.transpose(1, 2))
        w = put(layers, HEADS, head, WIDTH).reshape(layers, HEADS * head, WIDTH)
        each(layers, f"{block}.{{}}.{name}.o.weight", w.transpose(1, 2))

    def norm(block, layers, part):
        each(layers, f"{block}.{{}}.layer.{part}.layer_norm.weight", put(layers, WIDTH, one=True))

    def stack(name, layers, decodes):
        block = f"{name}.block"
        state[f"{block}.0.layer.0.SelfAttention.relative_attention_bias.weight"] = put(8, HEADS)
        norm(block, layers, 0)
        attention(block, layers, "layer.0.SelfAttention")
        norm(block, layers, 1)
        part = 1
        if decodes:
            attention(block, layers, "layer.1.EncDecAttention")
            norm(block, layers, 2)
            part = 2
        dense = f"{block}.{{}}.layer.{part}.DenseReluDense"
        for wi in ["wi_0", "wi_1"] if gated else ["wi"]:
            each(layers, f"{dense}.{wi}.weight", put(layers, WIDTH, MLP).transpose(1, 2))
        each(layers, f"{dense}.wo.weight", put(layers, MLP, WIDTH).transpose(1, 2))
        state[f"{name}.final_layer_norm.weight"] = put(WIDTH, one=True)

    embedding = put(VOCAB, WIDTH)
    for name in ["shared", "encoder.embed_tokens", "decoder.embed_tokens", "lm_head"]:
        state[f"{name}.weight"] = embedding
    stack("encoder", LAYERS, False)
    stack("decoder", decoder_layers, True)
    if gated:
        state["lm_head.weight"] = put(VOCAB, WIDTH)
    if gated:  # whatever the configuration made of the tie
        model.lm_head.weight = torch.nn.Parameter(state["lm_head.weight"].clone())
    model.load_state_dict(state)
    ids = torch.tensor([[(5 * i + 1) % VOCAB for i in range(12)]])
    decoder_ids = torch.tensor([[0] + [(3 * i + 2) % VOCAB for i in range(8)]])
    with torch.no_grad():
        show("t5 gated" if gated else "t5", model(input_ids=ids, decoder_input_ids=decoder_ids).logits[0, 8])


def bert():
    model = BertForMaskedLM(
        BertConfig(
            vocab_size=VOCAB, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
            intermediate_size=MLP, max_position_embeddings=12, type_vocab_size=2, hidden_dropout_prob=0,
            attention_probs_dropout_prob=0,
        )
    ).double().eval()
    put, state = Filler(), {}

    def linear(name, inputs, outputs):
        w, b = put(LAYERS, inputs, outputs), put(LAYERS, outputs)
        for layer in range(LAYERS):
            state[f"bert.encoder.layer.{layer}.{name}.weight"] = w[layer].T
            state[f"bert.encoder.layer.{layer}.{name}.bias"] = b[layer]

    def norm(name):
        w, b = put(LAYERS, WIDTH, one=True), put(LAYERS, WIDTH)
        for layer in range(LAYERS):
            state[f"bert.encoder.layer.{layer}.{name}.weight"] = w[layer]
            state[f"bert.encoder.layer.{layer}.{name}.bias"] = b[layer]

    embeddings, head = "bert.embeddings.", "cls.predictions."
    for name, rows in [("word", VOCAB), ("position", 12), ("token_type", 2)]:
        state[f"{embeddings}{name}_embeddings.weight"] = put(rows, WIDTH)
    state[embeddings + "LayerNorm.weight"], state[embeddings + "LayerNorm.bias"] = put(WIDTH, one=True), put(WIDTH)
    for name in ["query", "key", "value"]:
        linear(f"attention.self.{name}", WIDTH, WIDTH)
    linear("attention.output.dense", WIDTH, WIDTH)
    norm("attention.output.LayerNorm")
    linear("intermediate.dense", WIDTH, MLP)
    linear("output.dense", MLP, WIDTH)
    norm("output.LayerNorm")
    state[head + "transform.dense.weight"], state[head + "transform.dense.bias"] = put(WIDTH, WIDTH).T, put(WIDTH)
    state[head + "transform.LayerNorm.weight"] = put(WIDTH, one=True)
    state[head + "transform.LayerNorm.bias"] = put(WIDTH)
    state[head + "bias"] = state[head + "decoder.bias"] = put(VOCAB)
    state[head + "decoder.weight"] = state[embeddings + "word_embeddings.weight"]
    model.load_state_dict(state)
    ids = torch.tensor([[(5 * i + 1) % VOCAB for i in range(10)]])
    types = torch.tensor([[0] * 6 + [1] * 4])
    with torch.no_grad():
        show("bert", model(input_ids=ids, token_type_ids=types).logits[0, 3])


if __name__ == "__main__":
    bert()
    t5(False)
    t5(True)
