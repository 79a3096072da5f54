#pragma once
// What a run that began from imported weights keeps of them, and how to export it in their layout:
//
//   weights.json   {"systole_weights": 1, "folder": ..., "hash": of its files, "config": text of its config.json,
//                  "tensors": {name: type}}: enough to export the run in the same layout when the folder is gone

#include <map>
#include <optional>
#include <string>

#include "execute/weights/export.h"
#include "execute/weights/hf_folder.h"
#include "operate/run/run_places.h"

namespace systole {

struct InitialWeights {
  std::string folder, hash, config;
  std::map<std::string, DType> dtypes;
};
// Includes their hash. Errors: io, no_space.
Status store_initial_weights(Store& run, HfFolder& folder);
// Nothing if the run did not begin from weights. Errors: corrupt, io.
Result<std::optional<InitialWeights>> initial_weights(Store& run);

// Writes a checkpoint of the run as a Hugging Face model: tensors in the types they were imported with, otherwise f32;
// config.json as imported, or generated; the tokenizer's files. Without training the result is bit for bit what was
// imported. Adapters are merged into their base weights. Errors: unsupported if Hugging Face has no such model; io,
// no_space; those of reading.
Result<ExportedFiles> export_hf_folder(const RunPlace& run, const checkpoint::Checkpoint& from, Store& to,
                                       ExportOptions options);
// The adapters alone, in PEFT's layout. Errors: as export_adapters; invalid if the run did not begin from weights.
Result<ExportedFiles> export_peft_folder(const RunPlace& run, const checkpoint::Checkpoint& from, Store& to);

}  // namespace systole
