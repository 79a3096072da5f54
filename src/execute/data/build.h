#pragma once
// Builds a dataset from text files: split, tokenizer, shards, packing tables. Existing results are reused.
//
// Held-out documents are separated before the tokenizer is trained. They are files of their own, or a fraction of the
// training documents, chosen by a hash of their content (text_source.h). An interrupted build leaves no dataset,
// because tokens.json is written last; the next build of the same key overwrites its leftovers.
// REQUIRES: one build at a time in a folder (the caller holds a lock).

#include <functional>
#include <optional>

#include "execute/data/dataset.h"

namespace systole {

struct BuildOptions {
  TextFiles train;
  TextOptions train_text;
  std::optional<TextFiles> held_out;
  TextOptions held_out_text;
  double held_out_fraction = 0;    // of the training documents, if there are no held-out files
  bool may_hold_none_out = false;  // of so few documents that the fraction sets none aside; else that is an error
  std::uint64_t seed = 0;          // for that choice, and for the tokenizer's sample
  TokenizerOptions tokenizer;
  std::optional<std::string> tokenizer_model;         // a SentencePiece model to use instead of training one
  std::int64_t sequence_length = 0;                   // of pairs: row lengths of input and target together
  std::int64_t target_length = 0;                     // above 0: pairs, with target rows of this length
  PackingRule policy = PackingPolicy::packed;         // buckets are of the training rows alone
  int threads = 2;                                    // threads for encoding; changes only the time
  std::int64_t shard_tokens = std::int64_t{1} << 27;  // a shard is closed when it holds this many tokens
  // Progress callback: the current stage ("reading", "training the tokenizer", "encoding", "packing"), and the bytes of
  // text done.
  std::function<void(std::string_view stage, Bytes done)> progress;
  // Called once before the build, if anything is missing. True: another process has built it, so look again; what is
  // still missing is built here.
  std::function<bool()> made_elsewhere;
};

// Errors: those of TextReader, Tokenizer::train and Tokenizer::load; io, no_space; corrupt or unsupported for existing
// results; invalid if there is no document to train on, or none was held out.
Result<Dataset> build_dataset(Store& store, const BuildOptions& options);

// Everything that a dataset depends on, one line each, and its hash: the dataset's key.
struct DatasetInputs {
  std::string text, key;
  std::vector<SourceFile> sources;
};
// The inputs for these options now; reads the text files' bytes.
Result<DatasetInputs> dataset_inputs(const BuildOptions& options);
// The same inputs with this tokenizer's model in place of their own.
DatasetInputs with_tokenizer(DatasetInputs inputs, std::string_view model);

}  // namespace systole
