#pragma once
// Every act that changes something on a cluster, as a line of a file that only grows. Each line holds the SHA-256 of
// the one before it, and its own over all of that, so that a line which was changed, taken out or put elsewhere shows;
// records hold the hash of the line that tells of them, so that a cut end shows too.

#include <cstdint>
#include <span>
#include <string>

#include "ground/base/clock.h"
#include "ground/base/document.h"
#include "ground/base/result.h"

namespace systole {

class Audit {
 public:
  // `folder`: where audit.jsonl lies, and the lock of its writers.
  Audit(std::string folder, Clock& clock) : folder_(std::move(folder)), clock_(clock) {}
  // {"n": 3, "at": ..., "by": ..., "act": act, "run": run, ...more, "previous": ..., "hash": ...}. On disk when it
  // returns the hash. What a killed writer left of a line is taken away first, and said by a line of its own.
  // Errors: io, no_space; corrupt, when its last line does not hold; busy, held by another one for five seconds.
  Result<std::string> append(const std::string& act, const std::string& run, const Node& more = Node::map());

 private:
  std::string folder_;
  Clock& clock_;
};

struct AuditCheck {
  std::int64_t lines = 0;
  std::string last;  // hash; empty without a line
};
// `known`: hashes that must be in it. Errors, at their line: corrupt; not_found, no such file.
Result<AuditCheck> verify_audit(const std::string& folder, std::span<const std::string> known = {});

}  // namespace systole
