#pragma once
// A mixture: the datasets of several sources as one. Their rows stand one after the other, source by source, and
// mixture_order.h says which is drawn when. Batches of held-out rows are each of one source, and shuffled once, so that
// the first batches of an evaluation are of all sources.
//
// Each source is a dataset of its own (dataset.h), with the tokenizer in common. The mixture's key is a hash of the
// sources' texts and options, of their weights and of the rules; it is the same before anything is built.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "execute/data/build.h"
#include "execute/data/mixture_order.h"

namespace systole {

enum class MixtureUnit { tokens, documents, bytes };
const char* name_of(MixtureUnit unit);
const char* name_of(Exhausted rule);

struct MixtureOptions {
  struct Source {
    std::string name;
    std::optional<double> weight;        // of all or of none: by size
    std::optional<std::int64_t> epochs;  // as MixtureSource
  };
  struct Phase {
    std::int64_t from = 0;        // row of the run
    std::vector<double> weights;  // one of each source
  };
  std::vector<Source> sources;
  MixtureUnit by = MixtureUnit::tokens;  // what weights count
  double temperature = 1;                // without weights
  Exhausted exhausted = Exhausted::repeat;
  std::vector<Phase> schedule;  // empty: the sources' weights throughout
  std::uint64_t seed = 0;       // of the order
};

struct Mixture {
  struct Part {
    TokensManifest manifest;
    std::int64_t rows = 0;  // of training
    std::int64_t held_out_rows = 0;
  };
  MixtureOptions options;
  std::vector<Part> parts;                    // of options.sources
  std::vector<MixtureOptions::Phase> phases;  // the weights, whatever they come from
  std::shared_ptr<const MixtureOrder> order = {};

  std::int64_t units(std::size_t source) const;  // tokens, documents or bytes of training, as weights count
  // Shares in that unit: as the weights ask of the first `rows` rows (at least 1), and of so many rows of each source.
  std::vector<double> asked(std::int64_t rows) const;
  std::vector<double> drawn(std::span<const std::int64_t> counts) const;
  // The held-out rows for one pass in batches of `batch_rows`: each batch is of one source, with empty rows at the end
  // of its last one (RowReaderOptions::once_rows); batches and rows are shuffled, the same for every run.
  struct HeldOutPass {
    std::vector<std::int64_t> rows;
    std::vector<std::size_t> sources;  // of each batch
  };
  HeldOutPass held_out_pass(std::int64_t batch_rows) const;
  std::int64_t held_out_batches(std::int64_t batch_rows) const;  // of that pass
};

// Everything that the mixture's order and rows depend on, a line each, and its key. `texts`: of the sources, as they are
// before a tokenizer in common is trained.
struct MixtureInputs {
  std::string text, key;
};
MixtureInputs mixture_inputs(const MixtureOptions& options, std::span<const DatasetInputs> texts);
// Differences of two such texts, for people: "the source 'c' is new; 'a' has weight 3, and had 2". Empty: none.
std::string other_mixture(const std::string& then, const std::string& now);

struct JoinedDatasets {
  Dataset dataset;  // of all sources; its manifest has the mixture's key
  Mixture mixture;
};
// REQUIRES: datasets of options.sources with one tokenizer. Errors: those of MixtureOrder; invalid if a fraction was to
// be held out and none of them has a held-out document (`held_out`).
Result<JoinedDatasets> join_datasets(std::vector<Dataset> datasets, MixtureOptions options, const MixtureInputs& inputs,
                                     bool held_out);

// A tokenizer trained on a sample of all sources, each with its share of the sample, held-out documents aside. Its
// options are those of the first. Errors: those of TextReader and Tokenizer::train; invalid, naming the source: no
// document to train on.
Result<Tokenizer> train_on_sources(std::span<const BuildOptions> sources, const MixtureOptions& options);
// The key of that tokenizer.
std::string tokenizer_key(const MixtureOptions& options, std::span<const DatasetInputs> texts);

}  // namespace systole
