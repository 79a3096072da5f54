#pragma once
// The known error of compilers' schedules, against measured steps: data/xla/published.json, as it was when Systole was
// built. tools/xla-published proves its rows. It is shown beside every scheduled time.

#include <string>
#include <string_view>
#include <vector>

#include "ground/base/document.h"
#include "ground/base/result.h"
#include "ground/base/units.h"
#include "predict/prove/compiled_step.h"

namespace systole::prove {

struct PublishedStep {
  std::string name, source, slice;  // "MaxText 16B"; its publication; "v5e:16x16"
  Seconds measured{};
  std::string module, compiler, date;  // hash of the text that was compiled; compiler; date
  StepTime scheduled;
  double ratio() const { return scheduled.total() / measured; }
  std::string chip() const { return slice.substr(0, slice.find(':')); }
};

// The rows that have been proved. Errors: invalid, corrupt: `json` is no such document.
Result<std::vector<PublishedStep>> read_published(std::string_view json);
const std::vector<PublishedStep>& published_steps();

// For all chips and for this one, for --json: {"rows": 11, "lowest": 0.98, …, "same_chip": {…}}; empty: no row.
Node known_ratio_node(const std::vector<PublishedStep>& steps, std::string_view chip);
// "of 11 published steps it makes 0.98 to 1.40 times what was measured, 1.12 at the median; of 2 on v6e 1.20 to 1.40".
std::string known_error(const std::vector<PublishedStep>& steps, std::string_view chip);

}  // namespace systole::prove
