#pragma once
// The folder of a Hugging Face model: config.json, safetensors and a tokenizer. A GGUF file has all of these in one
// (gguf/gguf_model.h): its path stands wherever that of a folder does.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "describe/partition/serving.h"
#include "describe/spec/workload.h"
#include "execute/data/tokenizer.h"
#include "execute/runtime/executor.h"
#include "execute/weights/export.h"
#include "execute/weights/import.h"

namespace systole {

inline constexpr const char* kHfConfig = "config.json";
inline constexpr const char* kHfChatTemplate = "chat_template.jinja";
inline constexpr Bytes kLargestHfConfig = kMiB * 16;

struct HfFolder {
  std::string path;
  std::unique_ptr<Store> store;  // rooted at `path`; of a GGUF file: has the config.json and the chat template
                                 // that say the same
  std::unique_ptr<Store> home;   // of a GGUF file: rooted at its folder
  WeightFiles files;
  NameMap map;
  bool head_is_embedding = false;  // tied in the files; here a copy, which training changes separately

  // Hash of all bytes of the weights and their config, in hex; computed at the first call. Errors: io.
  Result<std::string> hash();

 private:
  std::optional<std::string> hash_;
};

// Whether the path is that of a GGUF file, there or not: its name ends in ".gguf", and it is no folder.
bool is_gguf(const std::string& path);
// Whether there is the folder of a Hugging Face model, or a GGUF file.
bool is_hf_folder(const std::string& path);

// The values of other keys that model.weights implies (WorkloadOptions::weights).
// Errors: not_found; those of config.json.
Result<std::vector<ImportedValue>> values_of_weights(const std::string& folder);
// A workload with the folder's model, for commands that do not train. Errors: as values_of_weights.
Result<Workload> workload_around(const std::string& folder);

// Reads headers only. Errors: not_found, unsupported, those of check_weights; all with the file's path.
Result<HfFolder> open_hf_folder(const std::string& path, const ModelSpec& model);
// The hash of what open_hf_folder would open: HfFolder::hash. Errors: as WeightFiles::open and HfFolder::hash.
Result<std::string> hash_of_weights(const std::string& path);
// The tokenizer for generation; for a T5 its spiece.model. Errors: not_found, corrupt, unsupported.
Result<Tokenizer> tokenizer_of(const HfFolder& folder, const ModelSpec& model);

// A model for commands that do not train: its workload (workload_around), files and tokenizer. What stands before a GGUF
// file's tensors is read once for all of them. Errors: those of workload_around, open_hf_folder and tokenizer_of.
struct HfModel {
  Workload workload;
  HfFolder folder;
  Tokenizer tokenizer;
};
Result<HfModel> open_hf_model(const std::string& path);

// The bytes for Tokenizer::load of a tokenizer in `store`: as read_tokenizer, or those of a GGUF file's.
Result<std::string> read_any_tokenizer(Store& store, const std::string& path);
// Loads the executor's parameters: the part that `device` of its mesh holds. `some`: it may have fewer than the model.
// Errors: as import_weights.
Status load_weights(Executor& executor, const HfFolder& folder, std::int64_t device = 0, bool some = false);

// The rows of one layer's tensor of a weight, where they are those of a tensor of the files; of a weight that is one of
// several equal parts, the rows that `device` has. `parameter`: "blocks.3.attn.q". The folder must outlive them. Errors of the calls: as WeightFiles::rows, with the file's path.
std::optional<StoredRows> stored_rows(const HfFolder& folder, const std::string& parameter, const Int8Weight& weight,
                                      std::int64_t device = 0);

// Writes a tokenizer as files of such a folder; returns their names. Errors: no_space, io.
Result<std::vector<std::string>> write_hf_tokenizer(const Tokenizer& tokenizer, Store& to);

}  // namespace systole
