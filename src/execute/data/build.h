#pragma once
// From text files to a dataset: split, tokenizer, shards, packing tables. What is there already is not made again.
//
// Held-out documents are set aside before the tokenizer is trained: they are files of their own, or a fraction of the
// training files' documents chosen by a hash of their content (text_source.h). A build that is interrupted leaves no
// dataset, because tokens.json is written last; its remains are overwritten by the next build of the same key.
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
  double held_out_fraction = 0;  // of the training documents, when there are no files of their own
  std::uint64_t seed = 0;        // of that choice and of the tokenizer's sample
  TokenizerOptions tokenizer;
  std::optional<std::string> tokenizer_model;  // a SentencePiece model to use instead of training one
  std::int64_t row_length = 0;                 // of pairs: of the input's row and of the target's together
  std::int64_t target_length = 0;              // above 0: pairs, whose targets have rows of this length
  PackingPolicy policy = PackingPolicy::packed;
  int threads = 2;                                    // for encoding; changes nothing but time
  std::int64_t shard_tokens = std::int64_t{1} << 27;  // a shard is closed once it holds so many
  // Called now and then with what is being done ("reading", "training the tokenizer", "encoding", "packing") and the
  // bytes of text done so far.
  std::function<void(std::string_view stage, Bytes done)> progress;
  // Called once before anything is made, if there is something to make. True: somebody else has made it, so look again;
  // what is still not there is made here.
  std::function<bool()> made_elsewhere;
};

// Errors: those of TextReader, Tokenizer::train and Tokenizer::load; io, no_space; corrupt or unsupported for what is
// there already; invalid when there is no document to train on or none was set aside.
Result<Dataset> build_dataset(Store& store, const BuildOptions& options);

// All that a dataset depends on, a line each, and its key, the hash of that.
struct DatasetInputs {
  std::string text, key;
  std::vector<SourceFile> sources;
};
// Those that these options have now; reads the text files' bytes.
Result<DatasetInputs> dataset_inputs(const BuildOptions& options);

}  // namespace systole
