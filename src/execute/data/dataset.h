#pragma once
// A dataset: a tokenizer, and token shards and packing tables of training and held-out documents.
//
//   <folder>/<key>/
//     tokenizer.model                  a SentencePiece model
//     train-00000.tokens, ...          token shards (token_shard.h)
//     held_out-00000.tokens, ...
//     tokens.json                      the manifest, written last: without it there is no dataset
//     train-256-packed.rows, ...       packing tables (packing.h), by row length and policy, each whole or absent;
//                                      with buckets also by a hash of the edges asked for: train-256-bucketed-1f….rows
//
// The key is a hash of everything that the tokens depend on (contents of the text files, split, tokenizer options,
// format versions). So equal inputs find an existing dataset, and different ones have different keys.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "execute/data/packing.h"
#include "execute/data/rows.h"
#include "execute/data/text_source.h"
#include "execute/data/token_shard.h"
#include "execute/data/tokenizer.h"

namespace systole {

struct SourceFile {
  std::string path;  // as given when the tokens were built
  Bytes size;
  Hash128 hash;
  bool operator==(const SourceFile&) const = default;
};

// The entry of tokens.json for the training or the held-out documents.
struct SplitTokens {
  std::vector<ShardInfo> shards;  // paths relative to the dataset's own folder
  std::int64_t documents = 0, tokens = 0;
  std::int64_t bytes = 0;  // of text, separators included: the denominator of bits per byte
  bool operator==(const SplitTokens&) const = default;
};

struct TokensManifest {
  std::string key;
  std::string inputs;  // the text whose hash is the key; for people
  std::vector<SourceFile> sources;
  Hash128 tokenizer;
  int vocabulary = 0;
  SplitTokens train, held_out;
  std::int64_t empty = 0, replaced = 0;     // documents without text; replaced ill-formed UTF-8
  std::int64_t skipped = 0;                 // records that could not be used
  std::int64_t filtered = 0, repeated = 0;  // documents left out by `where` and by `dedupe`
  std::int64_t cut = 0;                     // pairs whose input or target was longer than its row
  std::int64_t held_out_also_in_train = 0;  // leakage: training documents equal to a held-out one
  TokenizerUse use() const;                 // pairs if the inputs say so; else documents
  bool operator==(const TokensManifest&) const = default;
};

std::string to_json(const TokensManifest& manifest);
// Errors: corrupt, with line and column; unsupported (a newer version). `name`: the file's name, for messages.
Result<TokensManifest> parse_tokens_manifest(std::string_view json, const std::string& name);

struct Dataset {
  TokensManifest manifest;
  Tokenizer tokenizer;
  std::shared_ptr<const PackedTokens> train;
  std::shared_ptr<const PackedTokens> held_out;  // null if there are no held-out documents
  std::vector<std::string> built;                // what this call built; empty if everything existed
};

// The store is the dataset's folder; results borrow it. Errors: not_found if the tokens or a table do not exist; those
// of the readers.
Result<TokensManifest> read_tokens_manifest(Store& store, const std::string& key);
Result<Dataset> open_dataset(Store& store, const std::string& key, std::int64_t sequence_length,
                             const PackingRule& rule);
std::string packing_path(const std::string& key, bool held_out, std::int64_t sequence_length, const PackingRule& rule);
// The table of one split alone. Errors: not_found; those of parse_packing; corrupt: it is of other shards or buckets.
Result<Packing> read_packing(Store& store, const TokensManifest& manifest, bool held_out, std::int64_t sequence_length,
                             const PackingRule& rule);
// The keys of the datasets in a folder, sorted.
Result<std::vector<std::string>> list_datasets(Store& store);

// Reads every byte of a dataset and checks checksums and sums: model, shards and tables. Returns the bytes read.
// Errors: the first failure, with its file.
Result<Bytes> verify_dataset(Store& store, const std::string& key);

// Statistics of the documents' lengths in tokens, eos included; zeros if there is no document.
struct LengthStats {
  std::int64_t shortest = 0, median = 0, p90 = 0, p99 = 0, longest = 0;
};
Result<LengthStats> document_lengths(Store& store, const std::string& key, bool held_out);

}  // namespace systole
