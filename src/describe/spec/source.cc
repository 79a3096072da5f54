#include "describe/spec/source.h"

#include <algorithm>

#include "describe/spec/excerpt.h"

namespace systole {

Error WorkloadSource::placed(Error error, const std::string& key, std::size_t item) const {
  if (filename.empty() || !error.where.file.empty()) return error;
  error.where = Where{filename, 0, 0};
  if (const auto given = places.find(key); given != places.end() && !given->second.empty()) {
    error.where = given->second[std::min(item, given->second.size() - 1)];
  }
  return with_excerpts(std::move(error), text, filename);
}

Error WorkloadSource::placed(Error error) const {
  const std::string key = error.message.substr(0, error.message.find(": "));
  return placed(std::move(error), key);
}

}  // namespace systole
