"""A folder as Hugging Face has it (config.json, model.safetensors) with random weights, and a file of tokens: what both
sides of a benchmark start from. GPT-2 for a shape with learned positions, Llama for one with rotary ones."""

import json
import os

import numpy
from safetensors.numpy import save_file


def gpt2(c, normal):
    w = c["width"]
    ones, zeros = (lambda n: numpy.ones(n, "f4")), (lambda n: numpy.zeros(n, "f4"))
    tensors = {"wte.weight": normal(c["vocabulary"], w), "wpe.weight": normal(c["context"], w),
               "ln_f.weight": ones(w), "ln_f.bias": zeros(w)}
    for i in range(c["layers"]):
        at = f"h.{i}."
        for name in ("ln_1", "ln_2"):
            tensors |= {at + name + ".weight": ones(w), at + name + ".bias": zeros(w)}
        for name, rows, columns in (("attn.c_attn", w, 3 * w), ("attn.c_proj", w, w), ("mlp.c_fc", w, c["mlp"]),
                                    ("mlp.c_proj", c["mlp"], w)):
            tensors |= {f"{at}{name}.weight": normal(rows, columns), f"{at}{name}.bias": zeros(columns)}
    config = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_layer": c["layers"], "n_embd": w,
              "n_head": c["heads"], "n_positions": c["context"], "n_inner": c["mlp"], "vocab_size": c["vocabulary"],
              "activation_function": "gelu_new", "layer_norm_epsilon": c["eps"], "tie_word_embeddings": True}
    return tensors, config


def llama(c, normal):
    w, kv = c["width"], c["width"] // c["heads"] * c["kv_heads"]
    tensors = {"model.embed_tokens.weight": normal(c["vocabulary"], w), "model.norm.weight": numpy.ones(w, "f4"),
               "lm_head.weight": normal(c["vocabulary"], w)}
    for i in range(c["layers"]):
        at = f"model.layers.{i}."
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{at}{name}.weight"] = numpy.ones(w, "f4")
        for name, rows, columns in (("self_attn.q_proj", w, w), ("self_attn.k_proj", kv, w),
                                    ("self_attn.v_proj", kv, w), ("self_attn.o_proj", w, w),
                                    ("mlp.gate_proj", c["mlp"], w), ("mlp.up_proj", c["mlp"], w),
                                    ("mlp.down_proj", w, c["mlp"])):
            tensors[f"{at}{name}.weight"] = normal(rows, columns)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": c["layers"],
              "hidden_size": w, "num_attention_heads": c["heads"], "num_key_value_heads": c["kv_heads"],
              "intermediate_size": c["mlp"], "vocab_size": c["vocabulary"], "max_position_embeddings": c["context"],
              "hidden_act": "silu", "rms_norm_eps": c["eps"], "rope_theta": c["theta"], "tie_word_embeddings": False}
    return tensors, config


def write(c, tokens, folder):
    random = numpy.random.default_rng(1)
    family = gpt2 if c["position"] == "learned" else llama
    tensors, config = family(c, lambda *shape: random.standard_normal(shape, "f4") * 0.02)
    os.makedirs(folder)
    save_file(tensors, os.path.join(folder, "model.safetensors"))
    json.dump(config | {"torch_dtype": "float32"}, open(os.path.join(folder, "config.json"), "w"), indent=1)
    # Ids with the frequencies of words, so that the first steps have something to learn.
    ids = numpy.minimum(random.zipf(1.2, tokens), c["vocabulary"]) - 1
    ids.astype("<i4").tofile(os.path.join(folder, "tokens.i32"))
