#pragma once
// What the registry records of a model: a checkpoint of a run with its lineage and metrics, or a published model.

#include <string>
#include <vector>

#include "operate/registry/registered_model.h"

namespace systole {

// `asked`: "RUN" or "RUN@STEP", the folder of a Hugging Face model, or a GGUF file; as find_model, except that a run
// need not be of text. All of it is read and verified, and a checkpoint is blessed: retention never removes it. Without a
// `name` it is that of the workload or the folder; the path is relative if it is below the working folder.
//
//   lineage   SHA-256 of workload.yaml and plan.json, the key of the dataset, resume.from and model.weights
//   metrics   loss, held_out_loss and bits_per_byte, the last up to that step
//
// Errors: invalid, before anything is read or blessed: it has no good name, or a path that is not UTF-8, which the
// registry's log cannot hold; as find_model; io, no_space: the checkpoint cannot be blessed.
Result<RegisteredModel> model_to_register(const std::string& asked, const std::string& name);

}  // namespace systole
