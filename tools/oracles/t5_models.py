"""The T5s of make_models.py, and the SentencePiece model beside them.

t5: v1.0, tied; t5_gated: v1.1, gated, with a head of its own and config.json as the published ones are (transformers 5
writes other entries, and says there how to read these). Each with spiece.model in place of tokenizer.json, made as T5's
is: unigram, a space put before the text, runs of spaces made one, no tokens for bytes, no bos. expected.json:
{"text": ..., "prompt": its tokens and eos, "greedy": the answer by greedy generation, marks left out, "greedy_bytes":
its text, "logits": [[number]] of the answer's first, second and last position}.
"""
import io
import json
import os

import sentencepiece
import torch
import transformers
from transformers import T5Config, T5ForConditionalGeneration

HERE = os.path.dirname(os.path.abspath(__file__))
TEXTS = os.path.join(HERE, "..", "..", "src", "execute", "data", "golden", "scripts.txt")
NEW_TOKENS = 20
PROMPT = "All human beings,  are born \uFB01ve \u2460 \u0432\u0441\u0435 \u043b\u044e\u0434\u0438 and equal in dignity"
# T5's own rules (nmt_nfkc) fill 240 KB.
NORMALIZATION = "FB01\t66 69\n2460\t31\n3000\t20\n"


def t5s():
    """Name, config, seed and size of the numbers: such that the answer is not one token again and again, and that f32 moves
    the logits far less than the tests allow (see `expected`)."""
    shape = {"vocab_size": 320, "d_model": 12, "d_kv": 4, "d_ff": 20, "num_heads": 2,
             "relative_attention_num_buckets": 8, "relative_attention_max_distance": 20}
    yield "t5", T5Config(num_layers=2, **shape), 14, 0.5
    yield "t5_gated", T5Config(num_layers=1, num_decoder_layers=2, feed_forward_proj="gated-gelu",
                               tie_word_embeddings=False, **shape), 4, 0.4


def spiece(folder):
    """spiece.model: pad 0, eos 1, unk 2."""
    here = os.getcwd()
    os.chdir(folder)  # the model keeps the rules' path
    with open("rules.tsv", "w", encoding="utf-8") as file:
        file.write(NORMALIZATION)
    with open(TEXTS, encoding="utf-8") as file:
        lines = [line for line in file.read().split("\n") if line.isascii()]
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 4), model_writer=made, model_type="unigram", vocab_size=270, pad_id=0, eos_id=1,
        unk_id=2, bos_id=-1, normalization_rule_tsv="rules.tsv", num_threads=1, hard_vocab_limit=False, minloglevel=2)
    os.remove("rules.tsv")
    with open("spiece.model", "wb") as file:
        file.write(made.getvalue())
    os.chdir(here)
    return sentencepiece.SentencePieceProcessor(model_proto=made.getvalue())


def as_published(folder):
    """transformers 5 knows v1.1 by scale_decoder_outputs, and writes that its head is tied."""
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    config["tie_word_embeddings"] = config.pop("scale_decoder_outputs")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2)
        file.write("\n")


def expected(model, pieces):
    prompt = pieces.encode(PROMPT) + [pieces.eos_id()]
    tokens = torch.tensor([prompt])
    marks = [t for t in range(model.config.vocab_size) if t < 3 or t >= pieces.get_piece_size()]
    with torch.no_grad():
        answer = model.generate(tokens, max_new_tokens=NEW_TOKENS, min_new_tokens=NEW_TOKENS, do_sample=False,
                                suppress_tokens=marks, attention_mask=torch.ones_like(tokens), num_beams=1, use_cache=False,
                                decoder_start_token_id=0)[0].tolist()
        sides = {"input_ids": tokens, "decoder_input_ids": torch.tensor([answer])}
        logits = model(**sides).logits[0]
        # T5 scores are not scaled, so that some models of random numbers turn on f32's last bits.
        moved = (model.double()(**sides).logits[0] - logits).abs().max().item()
    assert moved < 3e-5, f"f32 moves the logits by {moved}: choose another seed"
    assert answer[0] == 0 and len(answer) == NEW_TOKENS + 1
    return {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0],
            "sentencepiece": sentencepiece.__version__, "text": PROMPT, "prompt": prompt,
            "logits": [[round(x, 7) for x in logits[at].tolist()] for at in (0, 1, NEW_TOKENS)], "greedy": answer[1:],
            "greedy_bytes": list(pieces.decode(answer[1:]).encode())}


def write(target, randomized):
    for name, config, seed, size in t5s():
        folder = os.path.join(target, name)
        os.makedirs(folder, exist_ok=True)
        model = T5ForConditionalGeneration(config)
        if name == "t5_gated":
            model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.shared.weight))
        randomized(model, seed, size).save_pretrained(folder)
        if os.path.exists(os.path.join(folder, "generation_config.json")):
            os.remove(os.path.join(folder, "generation_config.json"))
        as_published(folder)
        told = expected(T5ForConditionalGeneration.from_pretrained(folder).eval(), spiece(folder))
        with open(os.path.join(folder, "expected.json"), "w", encoding="utf-8") as file:
            json.dump(told, file, separators=(",", ":"))
            file.write("\n")
        print(name, len(told["prompt"]), told["greedy"], bytes(told["greedy_bytes"]).decode(), flush=True)
