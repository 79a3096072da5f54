#pragma once
// The places of a Workload's values in its document, for errors found long after reading: a missing file, a type that
// the device lacks. A value type; safe from any thread.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "describe/spec/workload.h"

namespace systole {

struct WorkloadSource {
  std::string filename, text;
  // By given key: the place of its value, or of its items if it is a list; of a map also by "KEY.ENTRY".
  std::map<std::string, std::vector<Where>> places;

  // Adds to an error about `key` the place of its value (of item `item` if it is a list) and the source line; for a key
  // that was not given, the document's place. An error that has a place stays unchanged; without a known document no
  // place is added.
  Error placed(Error error, const std::string& key, std::size_t item = 0) const;
  // The same for the key that the error names, and for each of its `others`.
  Error placed(Error error) const;
  // The same; if that key was not given, the place of `key`.
  Error placed_or(Error error, const std::string& key) const;
};

// As read_workload; fills `source` even when reading fails.
Result<Workload> read_workload(std::string_view text, const std::string& filename, const WorkloadOptions& options,
                               WorkloadSource& source);

}  // namespace systole
