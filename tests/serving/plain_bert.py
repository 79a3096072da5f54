"""A tiny bert and its vectors in plain Python: the folder as transformers and sentence-transformers write it, and, written
from the paper and BERT's first tokenizer (google-research/bert: tokenization.py, modeling.py), what it computes."""
import json
import math
import random
import struct
import unicodedata

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = ["the", "a", "list", "word", "un", "##aff", "##able", "low", "##er", "##est", "cafe", "world", "h", "##e", "##l",
          "##o", ",", ".", "!", "?", "-", "世", "界", "##s", "goes", "on", "##ing", "1", "##2", "##3", "and", "is", "of"]
VOCABULARY = SPECIALS + PIECES
WIDTH, HEADS, LAYERS, MLP, CONTEXT, TYPES, EPS = 16, 2, 2, 24, 40, 2, 1e-12


def weights():
    """Name -> (shape, numbers), as BertModel has them. Linear layers are [out, in]."""
    draw = random.Random(11)
    made = {}

    def tensor(name, *shape, around=0.0, spread=0.5):
        numbers = [struct.unpack("<f", struct.pack("<f", draw.gauss(around, spread)))[0] for _ in range(math.prod(shape))]
        made[name] = (list(shape), numbers)

    def linear(name, out, inner):
        tensor(name + ".weight", out, inner, spread=0.4)
        tensor(name + ".bias", out, spread=0.2)

    def norm(name):
        tensor(name + ".weight", WIDTH, around=1.0, spread=0.2)
        tensor(name + ".bias", WIDTH, spread=0.2)

    tensor("embeddings.word_embeddings.weight", len(VOCABULARY), WIDTH)
    tensor("embeddings.position_embeddings.weight", CONTEXT, WIDTH)
    tensor("embeddings.token_type_embeddings.weight", TYPES, WIDTH)
    norm("embeddings.LayerNorm")
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        for part in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            linear(at + part, WIDTH, WIDTH)
        norm(at + "attention.output.LayerNorm")
        linear(at + "intermediate.dense", MLP, WIDTH)
        linear(at + "output.dense", WIDTH, MLP)
        norm(at + "output.LayerNorm")
    linear("pooler.dense", WIDTH, WIDTH)
    return made


def config():
    return {"architectures": ["BertModel"], "model_type": "bert", "hidden_size": WIDTH, "num_attention_heads": HEADS,
            "num_hidden_layers": LAYERS, "intermediate_size": MLP, "max_position_embeddings": CONTEXT,
            "type_vocab_size": TYPES, "vocab_size": len(VOCABULARY), "layer_norm_eps": EPS, "hidden_act": "gelu",
            "hidden_dropout_prob": 0.1, "position_embedding_type": "absolute", "pad_token_id": 0}


def safetensors(tensors):
    """The bytes of a file of name -> (dtype, shape, bytes)."""
    header, body = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


def write_folder(folder, prefix="", old_norms=False, heads=False, pooling=None):
    """`pooling`: as sentence-transformers writes it, mean or cls, with a module that normalizes."""
    folder.mkdir()
    tensors = {}
    for name, (shape, numbers) in weights().items():
        if old_norms:
            name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        tensors[prefix + name] = ("F32", shape, struct.pack(f"<{len(numbers)}f", *numbers))
    tensors[prefix + "embeddings.position_ids"] = ("I64", [1, CONTEXT], struct.pack(f"<{CONTEXT}q", *range(CONTEXT)))
    if heads:
        tensors["cls.predictions.bias"] = ("F32", [len(VOCABULARY)], bytes(4 * len(VOCABULARY)))
        tensors["cls.seq_relationship.weight"] = ("F32", [2, WIDTH], bytes(8 * WIDTH))
    (folder / "model.safetensors").write_bytes(safetensors(tensors))
    (folder / "config.json").write_text(json.dumps(config()), encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}), encoding="utf-8")
    if pooling:
        modules = [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
                   for i, (path, kind) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling"),
                                                     ("2_Normalize", "Normalize")])]
        (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling/config.json").write_text(json.dumps(
            {"word_embedding_dimension": WIDTH, "pooling_mode_cls_token": pooling == "cls",
             "pooling_mode_mean_tokens": pooling == "mean", "pooling_mode_max_tokens": False}), encoding="utf-8")


def words_of(text):
    """BasicTokenizer of tokenization.py: lower case, no accents, CJK characters and punctuation alone."""
    spaced = ""
    for c in text:
        kind = unicodedata.category(c)
        if c in "\t\n\r" or kind == "Zs":
            spaced += " "
        elif 0x4E00 <= ord(c) <= 0x9FFF:
            spaced += f" {c} "
        elif ord(c) not in (0, 0xFFFD) and not kind.startswith("C"):
            spaced += c
    words = []
    for word in spaced.split():
        plain = "".join(c for c in unicodedata.normalize("NFD", word.lower()) if unicodedata.category(c) != "Mn")
        alone = [unicodedata.category(c).startswith("P") or (c.isascii() and not c.isalnum()) for c in plain]
        words += "".join(f" {c} " if is_alone else c for c, is_alone in zip(plain, alone)).split()
    return words


def tokens_of(text):
    number = {piece: i for i, piece in enumerate(VOCABULARY)}
    tokens = [number["[CLS]"]]
    for word in words_of(text):
        pieces, at = [], 0
        while at < len(word):
            end = next((e for e in range(len(word), at, -1) if ("##" if at else "") + word[at:e] in number), None)
            if end is None:
                pieces = [number["[UNK]"]]
                break
            pieces.append(number[("##" if at else "") + word[at:end]])
            at = end
        tokens += pieces
    return tokens + [number["[SEP]"]]


def states_of(tokens, tensors):
    """The last hidden states: a list of WIDTH numbers per token."""
    def row(name, i):
        return tensors[name][1][i * WIDTH:(i + 1) * WIDTH]

    def linear(x, name):
        (out, inner), w = tensors[name + ".weight"]
        b = tensors[name + ".bias"][1]
        return [b[o] + sum(x[i] * w[o * inner + i] for i in range(inner)) for o in range(out)]

    def norm(x, name):
        mean = sum(x) / WIDTH
        rstd = 1 / math.sqrt(sum((v - mean) ** 2 for v in x) / WIDTH + EPS)
        return [(v - mean) * rstd * s + b for v, s, b in zip(x, row(name + ".weight", 0), row(name + ".bias", 0))]

    def add(*rows):
        return [sum(numbers) for numbers in zip(*rows)]

    x = [norm(add(row("embeddings.word_embeddings.weight", t), row("embeddings.position_embeddings.weight", i),
                  row("embeddings.token_type_embeddings.weight", 0)), "embeddings.LayerNorm") for i, t in enumerate(tokens)]
    size = WIDTH // HEADS
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        q, k, v = ([linear(r, at + "attention.self." + part) for r in x] for part in ("query", "key", "value"))
        mixed = []
        for query in q:
            out = []
            for h in range(0, WIDTH, size):
                scores = [math.exp(sum(query[d] * key[d] for d in range(h, h + size)) / math.sqrt(size)) for key in k]
                out += [sum(s * value[d] for s, value in zip(scores, v)) / sum(scores) for d in range(h, h + size)]
            mixed.append(out)
        x = [norm(add(r, linear(m, at + "attention.output.dense")), at + "attention.output.LayerNorm")
             for r, m in zip(x, mixed)]
        hidden = [[h / 2 * (1 + math.erf(h / math.sqrt(2))) for h in linear(r, at + "intermediate.dense")] for r in x]
        x = [norm(add(r, linear(h, at + "output.dense")), at + "output.LayerNorm") for r, h in zip(x, hidden)]
    return x


def vector_of(text, tensors, pooling="mean", normalize=True, dimensions=WIDTH):
    states = states_of(tokens_of(text), tensors)
    vector = {"mean": [sum(column) / len(states) for column in zip(*states)], "cls": states[0],
              "last": states[-1]}[pooling]
    vector = vector[:dimensions]
    length = math.sqrt(sum(x * x for x in vector)) if normalize else 1
    return [x / length for x in vector]
