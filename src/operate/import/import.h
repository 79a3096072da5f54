#pragma once
// Converts other launchers' command lines and files to a workload: an sbatch script, a line of torchrun, srun, torchx
// or gcloud, a Kubernetes manifest. They are parsed, never executed. Each part becomes a key, is reported with the
// reason why not, or makes the import fail. Pure: reads no files but those from `beside`.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole {

struct ImportSource {
  std::string text;
  std::string file;  // name for messages
  // Reads a file next to it, by name; if unset, there are none. Errors: not_found.
  std::function<Result<std::string>(const std::string& name)> beside = {};
};

struct LeftOut {
  std::string what, why;
};

struct Imported {
  std::string yaml;  // a workload; each value has a comment with its source
  std::vector<LeftOut> left_out;
  std::string missing;         // what must be added before it can run; empty: nothing
  std::vector<LeftOut> notes;  // what is carried over, and in which form
};

// Errors: invalid, unsupported: all at once, each with a hint.
Result<Imported> import_job(const ImportSource& source);

}  // namespace systole
