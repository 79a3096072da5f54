#include "describe/spec/source.h"

#include <algorithm>
#include <utility>

#include "describe/spec/excerpt.h"

namespace systole {

Error WorkloadSource::placed(Error error, const std::string& key, std::size_t item) const {
  if (!error.where.file.empty()) return error;
  error.key = key;
  if (filename.empty()) return error;
  error.where = Where{filename, 0, 0};
  if (const auto given = places.find(key); given != places.end() && !given->second.empty()) {
    error.where = given->second[std::min(item, given->second.size() - 1)];
  }
  return with_excerpts(std::move(error), text, filename);
}

Error WorkloadSource::placed(Error error) const {
  std::vector<Error> others = std::exchange(error.others, {});
  const std::string key = error.key;
  error = placed(std::move(error), key);
  for (Error& other : others) error.others.push_back(placed(std::move(other)));
  return error;
}

Error WorkloadSource::placed_or(Error error, const std::string& key) const {
  const std::string own = error.key;
  return placed(std::move(error), places.contains(own) ? own : key);
}

}  // namespace systole
