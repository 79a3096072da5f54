#!/usr/bin/env python3
"""Writes tiny random Hugging Face models and what `transformers` makes of them: make_models.py [FOLDER]

  tools/oracles/install large build/oracles/large
  PYTHONPATH=build/oracles/large python3 tools/oracles/make_models.py

Into FOLDER/<name>, by default src/execute/weights/golden/<name>: config.json and model.safetensors as save_pretrained
writes them, and expected.json: {"text": ..., "prompt": its tokens, "logits": [[number]] of the prompt's last
three positions, "greedy": the next tokens by greedy generation, marks left out}; and tokenizer.json. Names: gpt2; llama: grouped queries, Llama 3's rope scaling, a head of its own;
llama_bf16: tied, in bf16, in two shards; t5, t5_gated: see t5_models.py.
"""
import json
import os
import sys

import torch
import transformers
from tokenizers import processors
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import make_tokenizers  # noqa: E402  (beside this file)
import t5_models  # noqa: E402

GOLDEN = os.path.join(HERE, "..", "..", "src", "execute", "weights", "golden")
NEW_TOKENS = 30
PROMPT = "All human beings, все люди"


def randomized(model, seed, size=0.25):
    """Every number random, biases and scales too, and large enough that the logits differ."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            scale = size if parameter.ndim > 1 else 0.1
            noise = torch.randn(parameter.shape, generator=generator) * scale
            is_scale = parameter.ndim == 1 and name.endswith("weight")
            parameter.copy_(noise + 1 if is_scale else noise)
    return model.eval()


def models():
    """Name, model, largest shard."""
    ends = {"vocab_size": 304, "bos_token_id": 0, "eos_token_id": 1}
    gpt2 = GPT2Config(n_positions=64, n_embd=16, n_layer=2, n_head=4, **ends)
    yield "gpt2", randomized(GPT2LMHeadModel(gpt2), 1, 0.6), None
    shape = {"hidden_size": 16, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
             "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, **ends}
    scaling = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
               "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
    llama = LlamaConfig(**shape, rope_parameters=scaling, tie_word_embeddings=False)
    yield "llama", randomized(LlamaForCausalLM(llama), 2), None
    tied = LlamaConfig(**shape, rope_parameters={"rope_type": "default", "rope_theta": 10000.0}, head_dim=8,
                       tie_word_embeddings=True)
    yield "llama_bf16", randomized(LlamaForCausalLM(tied), 3).to(torch.bfloat16), "8KB"


def tokenizer_of(name):
    """300 tokens: GPT-2's kind puts nothing before a text, Llama 3's its bos."""
    with open(os.path.join(HERE, "..", "..", "src", "execute", "data", "golden", "scripts.txt"), encoding="utf-8") as file:
        lines = file.read().split("\n")[:-1]
    split = make_tokenizers.byte_level(None if name == "gpt2" else make_tokenizers.LLAMA3)
    tokenizer = make_tokenizers.train(lines, 300, split, ["<s>", "</s>"])
    if name != "gpt2":
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair=None, special_tokens=[("<s>", 0)])
    return tokenizer


def expected(model, tokenizer):
    prompt = tokenizer.encode(PROMPT).ids
    tokens = torch.tensor([prompt])
    allowed = [[t] for t in range(2, 300)]  # text alone: as Systole, which never draws a mark
    marks = [t for t in range(model.config.vocab_size) if [t] not in allowed]
    with torch.no_grad():
        logits = model(tokens).logits[0]
        greedy = model.generate(tokens, max_new_tokens=NEW_TOKENS, min_new_tokens=NEW_TOKENS, do_sample=False,
                                suppress_tokens=marks, attention_mask=torch.ones_like(tokens),
                                pad_token_id=0)[0, len(prompt):].tolist()
    return {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0], "text": PROMPT,
            "prompt": prompt, "logits": [[round(x, 7) for x in row] for row in logits[-3:].tolist()], "greedy": greedy,
            "greedy_bytes": list(decoded(tokenizer, greedy))}


def decoded(tokenizer, tokens):
    """The bytes of tokens: decode() would put U+FFFD where they are no UTF-8."""
    letters = "".join(tokenizer.id_to_token(t) for t in tokens)
    alphabet, n = {}, 0
    for byte in range(256):
        itself = 0x21 <= byte <= 0x7E or 0xA1 <= byte <= 0xAC or byte >= 0xAE
        alphabet[chr(byte if itself else 0x100 + n)] = byte
        n += not itself
    return bytes(alphabet[letter] for letter in letters)


def main():
    target = sys.argv[1] if len(sys.argv) > 1 else GOLDEN
    for name, model, shards in models():
        folder = os.path.join(target, name)
        os.makedirs(folder, exist_ok=True)
        model.save_pretrained(folder, **({"max_shard_size": shards} if shards else {}))
        if os.path.exists(os.path.join(folder, "generation_config.json")):
            os.remove(os.path.join(folder, "generation_config.json"))
        tokenizer = tokenizer_of(name)
        tokenizer.save(os.path.join(folder, "tokenizer.json"), pretty=False)
        # Loaded again: .float() would keep tables, as the rotary frequencies, that .to(bfloat16) had rounded.
        told = expected(type(model).from_pretrained(folder, dtype=torch.float32).eval(), tokenizer)
        with open(os.path.join(folder, "expected.json"), "w", encoding="utf-8") as file:
            json.dump(told, file, separators=(",", ":"))
            file.write("\n")
        print(name, told["greedy"], flush=True)
    t5_models.write(target, randomized)


if __name__ == "__main__":
    main()
