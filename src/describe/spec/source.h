#pragma once
// Where the values of a Workload stand in the document that it was read from, for errors that are found long after the
// reading: a file that is not there, a type that the device lacks. A value, read by any number of threads.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "describe/spec/workload.h"

namespace systole {

struct WorkloadSource {
  std::string filename, text;
  std::map<std::string, std::vector<Where>>
      places;  // by key that was given: its value's, or its items' if it is a list

  // The error at the place of `key` (its `item`-th value) and with the line of source there; at that of the document
  // when the key took its default. An error that has a place of its own, or whose document is not known, stays as it
  // is.
  Error placed(Error error, const std::string& key, std::size_t item = 0) const;
  // The same for an error whose message begins with the key it speaks of: "train.precision.compute: ...".
  Error placed(Error error) const;
};

// As read_workload, and fills `source`, whatever comes of it.
Result<Workload> read_workload(std::string_view text, const std::string& filename, const WorkloadOptions& options,
                               WorkloadSource& source);

}  // namespace systole
