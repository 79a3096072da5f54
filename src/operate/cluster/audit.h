#pragma once
// The audit log: an append-only file with a line for each act that changes a cluster. Lines form a hash chain: each has
// the SHA-256 of the previous line, and its own hash over all of that, so a changed, removed or moved line is detected.
// Records keep the hash of their line, so a truncated end is detected too.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/clock.h"
#include "ground/base/document.h"
#include "ground/base/result.h"

namespace systole {

class Audit {
 public:
  // `folder`: holds audit.jsonl and its writers' lock.
  Audit(std::string folder, Clock& clock) : folder_(std::move(folder)), clock_(clock) {}
  // {"n": 3, "at": ..., "by": ..., "act": act, "run": run, ...more, "previous": ..., "hash": ...}. Returns the hash
  // once the line is durable. A torn line of a killed writer is removed first, and reported by a line of its own.
  // Errors: io, no_space; corrupt, if its last line is invalid; busy, if locked for five seconds.
  Result<std::string> append(const std::string& act, const std::string& run, const Node& more = Node::map());
  // The same, where `more` follows from the lines before it: no other line comes between. Errors: also corrupt, if any
  // line is invalid; those of `more`, and then nothing is appended.
  using FromLines = std::function<Result<Node>(std::span<const Node> lines)>;
  Result<std::string> append_after(const std::string& act, const std::string& run, const FromLines& more);

 private:
  Result<std::string> append_to(const std::string& act, const std::string& run,
                                const std::function<Result<Node>(std::string_view there)>& more);
  std::string folder_;
  Clock& clock_;
};

struct AuditCheck {
  std::int64_t lines = 0;
  std::string last;  // hash; empty without a line
};
// `known`: hashes that must occur. Errors, at their line: corrupt; not_found, no such file.
Result<AuditCheck> verify_audit(const std::string& folder, std::span<const std::string> known = {});

// Its lines, each verified. Without a torn one at the end, which a writer is writing or did not finish; empty without a
// file. Errors, at their line: corrupt; io.
Result<std::vector<Node>> read_audit(const std::string& folder);

}  // namespace systole
