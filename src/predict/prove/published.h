#pragma once
// How far the schedules that compilers made were from steps that were measured: data/xla/published.json, as it was when
// Systole was built. tools/xla-published proves its rows; whoever shows a scheduled time shows this beside it.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/document.h"
#include "ground/base/result.h"
#include "ground/base/units.h"
#include "predict/prove/step_time.h"

namespace systole::prove {

struct PublishedStep {
  std::string name, source, slice;  // "MaxText 16B"; where it was published; "v5e:16x16"
  Seconds measured{};
  std::string module, compiler, date;  // hash of the text that was compiled; by what; when
  StepTime scheduled;
  double ratio() const { return scheduled.total() / measured; }
  std::string chip() const { return slice.substr(0, slice.find(':')); }
};

// The rows that were proved. Errors: invalid, corrupt: `json` is no such document.
Result<std::vector<PublishedStep>> read_published(std::string_view json);
const std::vector<PublishedStep>& published_steps();

struct KnownRatio {
  std::size_t rows = 0;
  double lowest = 0, median = 0, highest = 0;
};
// Of steps on `chip`; "": on all. Nothing without a row.
std::optional<KnownRatio> known_ratio(const std::vector<PublishedStep>& steps, std::string_view chip);

// Both, for --json: {"rows": 11, "lowest": 0.98, …, "same_chip": {…}}; empty without a row.
Node known_ratio_node(const std::vector<PublishedStep>& steps, std::string_view chip);
// "of 11 published steps it makes 0.98 to 1.40 times what was measured, 1.12 at the median; of 2 on v6e 1.20 to 1.40".
std::string known_error(const std::vector<PublishedStep>& steps, std::string_view chip);

}  // namespace systole::prove
