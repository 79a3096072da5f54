#include "describe/models/sizes.h"

#include <string>

#include "ground/base/error.h"

namespace systole {

void require_positive(const char* key, std::int64_t value) {
  if (value < 1) fail(error(ErrorKind::invalid, "model.{} is {}, must be at least 1", key, value));
}

void require_share(const char* key, double value) {
  if (!(value >= 0 && value < 1))
    fail(error(ErrorKind::invalid, "model.{} is {}, must be from 0 up to but not 1", key, value));
}

void require_divides(const char* part_key, std::int64_t part, const char* whole_key, std::int64_t whole) {
  if (whole % part == 0) return;
  std::string divisors;
  for (std::int64_t d = 1; d <= whole; ++d) {
    if (whole % d == 0) divisors += (divisors.empty() ? "" : ", ") + std::to_string(d);
  }
  fail(key_error(ErrorKind::invalid, fmt::format("model.{}", part_key), "{} does not divide model.{}: {}", part,
                 whole_key, whole)
           .hinted(fmt::format("{} may be {}", part_key, divisors)));
}

void require_length(const char* what, std::int64_t length, std::int64_t context, const char* key) {
  if (length >= 1 && length <= context) return;
  fail(error(ErrorKind::invalid, "{} of {} positions, the model has {}", what, length, context)
           .hinted(fmt::format("at most {}, or a larger model.{}", context, key)));
}

void refuse(const std::vector<BrokenRule>& broken) {
  if (broken.empty()) return;
  const BrokenRule& first = broken.front();
  fail(key_error(first.kind, first.keys.front(), "{}", first.message).hinted(first.hint));
}

}  // namespace systole
