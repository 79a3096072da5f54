#pragma once
// The files that a workload's text is in, looked for before anything is read of them.

#include <optional>
#include <string>

#include "describe/spec/source.h"
#include "execute/data/build.h"
#include "operate/run/bucket_files.h"

namespace systole {

struct WorkloadTexts {
  TextFiles train;
  std::optional<TextFiles> held_out;
  std::optional<std::string> tokenizer_model;
};

// `root`: the store at "/", borrowed by the result. `buckets`: borrowed too; null: of objects in buckets only the form of
// their names is checked, and no server is asked. `run`: the folder of a run that goes on; otherwise empty.
// `source_name`: of a mixture's source, whose text is data.train of `workload`; empty: of data.train itself.
// REQUIRES: the data is text. Errors: all of them at once, each at its key.
Result<WorkloadTexts> text_files(const Workload& workload, Store& root, BucketFiles* buckets,
                                 const WorkloadSource& source, const std::string& run = {},
                                 const std::string& source_name = {});

}  // namespace systole
