#pragma once
// The folder of a Hugging Face model, as the commands use it: config.json, safetensors and a tokenizer. And what a run
// that began from one keeps of it:
//
//   weights.json   {"systole_weights": 1, "folder": ..., "hash": of its files, "config": text of its config.json,
//                  "tensors": {name: type}}: enough to export the run in the same layout when the folder is gone

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "describe/spec/workload.h"
#include "execute/data/tokenizer.h"
#include "execute/runtime/executor.h"
#include "execute/weights/export.h"
#include "execute/weights/import.h"
#include "operate/cli/run_places.h"

namespace systole::cli {

struct HfFolder {
  std::string path;
  std::unique_ptr<Store> store;  // rooted there
  WeightFiles files;
  NameMap map;
  bool head_is_embedding = false;  // in the files; here it is a copy, which training moves apart

  // Of every byte of the weights and their config, in hex; read the first time it is asked for. Errors: io.
  Result<std::string> hash();

 private:
  std::optional<std::string> hash_;
};

bool is_hf_folder(const std::string& path);

// What model.weights says of other keys (WorkloadOptions::weights). Errors: not_found; those of config.json.
Result<std::vector<ImportedValue>> values_of_weights(const std::string& folder);
// A workload around the folder's model, for commands that train nothing. Errors: as values_of_weights.
Result<Workload> workload_around(const std::string& folder);

// Reads headers alone. Errors: not_found, unsupported, those of check_weights; all with the file's path.
Result<HfFolder> open_hf_folder(const std::string& path, const ModelSpec& model);
// To generate with; a t5's is its spiece.model. Errors: not_found, corrupt, unsupported.
Result<Tokenizer> tokenizer_of(const HfFolder& folder, const ModelSpec& model);
// Into the executor's parameters: what `device` of its mesh holds of them. Errors: as import_weights.
Status load_weights(Executor& executor, const HfFolder& folder, std::int64_t device = 0);

struct KeptWeights {
  std::string folder, hash, config;
  std::map<std::string, DType> dtypes;
};
// With their hash. Errors: io, no_space.
Status keep_weights(Store& run, HfFolder& folder);
// Nothing when the run began otherwise. Errors: corrupt, io.
Result<std::optional<KeptWeights>> kept_weights(Store& run);

// Writes a checkpoint of the run as a Hugging Face model: tensors of the types they were imported as, else f32;
// config.json as it came, or made; the tokenizer's files. Bit for bit what was imported, as long as nothing was
// trained. Adapters are merged into the weights that they stand beside. Errors: unsupported when Hugging Face has no
// such model; io, no_space; those of reading.
Result<ExportedFiles> export_hf_folder(const RunPlace& run, const checkpoint::Checkpoint& from, Store& to,
                                       ExportOptions options);
// The adapters alone, in PEFT's layout. Errors: as export_adapters; invalid when the run began from no weights.
Result<ExportedFiles> export_peft_folder(const RunPlace& run, const checkpoint::Checkpoint& from, Store& to);

}  // namespace systole::cli
