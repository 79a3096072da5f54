#pragma once
// A packed folder: a published model whose matrices are in int8 or int4, as a serving engine keeps them in memory, so that
// loading is reading. Its files:
//
//   packed.safetensors   the parameters of the engine's Program under their names there, row-major: of an Int8Weight
//                        (describe/passes/int8_weights.h) "blocks.{layer}.attn.q.q8" i8[layer, rows, columns] and
//                        "blocks.{layer}.attn.q.scale" f32[layer, rows], others in f32;
//                        in int4 "….q4" and "….scale" with the types of Int8Weight, and tables as in int8
//   config.json, the tokenizer's files, chat template, generation_config.json, pooling: as in the model's own folder.
//                        Of a GGUF file: config.json, the tokenizer and the chat template that say the same
//
// The header's metadata: "format", "version", "weights" (int8, int4), "source_hash" (HfFolder::hash of the model) and, of a
// GGUF file, "begins_with_bos": its tokenizer is loaded as a GGUF file's, which no file of a tokenizer can say.
//
//   HfFolder model = TRY(open_hf_folder("model", spec));
//   TRY(write_packed_folder(int8_engine.executor(), model, tokenizer, *store, DType::i8));
//   const PackedFolder packed = TRY(open_packed_folder("packed"));
//   TRY(load_packed(engine.executor(), packed));   // an engine with parameters of type i8

#include <string>

#include "execute/checkpoint/safetensors.h"
#include "execute/runtime/executor.h"
#include "execute/weights/hf_folder.h"

namespace systole {

struct PackedFolder {
  HfFolder folder;  // without tensors and map
  checkpoint::SafetensorsFile file;
  DType parameter = DType::i8;  // or kInt4 (ground/tensor/int4.h): the type of the engine's parameters
};

bool is_packed_folder(const std::string& path);

// Writes all files into `to`, each whole or absent; returns the bytes of the weights. `executor`: of an engine that has
// all of the model's parameters, loaded, which have the type `parameter`. Reads all of `from` for its hash. Errors: io,
// no_space; those of the device.
Result<Bytes> write_packed_folder(Executor& executor, HfFolder& from, const Tokenizer& tokenizer, Store& to,
                                  DType parameter);

// Reads the header only. Errors, all with the file's path: not_found, corrupt; unsupported: a newer version, weights of
// another kind.
Result<PackedFolder> open_packed_folder(const std::string& path);

// Errors: as tokenizer_of a HfFolder.
Result<Tokenizer> tokenizer_of(const PackedFolder& packed, const ModelSpec& model);

// Fills all parameters of the executor, or the parts of them that `device` of its mesh holds, each read into its place by
// several threads. A table that this executor only
// looks up, and so has in f32, is scale × q8, as embedding_int8 computes it. Errors: corrupt, naming a tensor that is
// absent or of another type; io; those of the device.
Status load_packed(Executor& executor, const PackedFolder& packed, std::int64_t device = 0);

}  // namespace systole
