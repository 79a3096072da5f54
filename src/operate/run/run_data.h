#pragma once
// The text of a workload: checks its files, and turns it into tokens.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "describe/spec/source.h"
#include "describe/spec/workload.h"
#include "execute/data/build.h"
#include "execute/data/mixture.h"
#include "execute/data/rows.h"
#include "ground/store/store.h"

namespace systole {

using DataProgress = std::function<void(std::string_view stage, Bytes done)>;

struct Data {
  std::unique_ptr<Store> files, folder;  // the dataset borrows them
  std::optional<Dataset> dataset;
  std::optional<Mixture> mixture;  // of whose sources `dataset` is joined
  Bytes resident() const;
  std::optional<Error> cut_pairs() const;  // a warning if some pairs are longer than their rows
};
struct DataRequest {
  DataProgress progress;
  Seconds patience;  // how long to wait for another process that works in the folder
  // If the run goes on: its folder, and the key of the dataset it began with; empty: any dataset.
  std::string run, begun;
  // Builds data in a forked child to bound this process's memory: SentencePiece's trainer leaves tens of MB behind.
  // REQUIRES then: this process has one thread.
  bool apart = false;
  bool only_open = false;  // a mixture that is not built is an error
};
// Tokens of the workload's text, built if they are not there yet. Nothing for synthetic data. Errors: those of
// build_dataset; busy while another process builds in the folder; invalid if they are not those of `begun`, before
// anything is built if that is known.
Result<Data> prepare_data(const Workload& workload, const WorkloadSource& source, const DataRequest& request);
// Checks that the files named in the workload exist. Errors: all missing ones, each at its position in the document.
Status check_data_files(const Workload& workload, const WorkloadSource& source);
// The key of the dataset, or of the mixture, that the workload's text becomes, built or not. Reads the text's bytes.
Result<std::string> dataset_key_of(const Workload& workload, const WorkloadSource& source);

// The files of the workload's text, and its build, which borrows them. Errors: as check_data_files; unsupported (a
// mixture).
struct TextBuild {
  std::unique_ptr<Store> files;
  BuildOptions options;
};
Result<TextBuild> text_build_of(const Workload& workload, const WorkloadSource& source);

// How its documents are put into rows.
PackingRule packing_rule(const DataSpec& data);

// How the workload's model reads training rows, for text tokenized by `tokenizer`.
RowReaderOptions row_options(const Workload& workload, const Tokenizer& tokenizer, std::int64_t batch_rows,
                             RowPass pass);

}  // namespace systole
