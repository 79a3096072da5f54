#pragma once
// A bound on a metric, as commands take it: accuracy>=0.71; also <=, > and <.

#include <string>
#include <string_view>

#include "ground/base/result.h"

namespace systole {

struct Requirement {
  std::string metric;
  bool above = true;  // at least, else at most
  bool equal = true;  // the bound itself will do
  double bound = 0;
  std::string text;  // as it was asked for

  bool met_by(double value) const;  // false if the value is not a number
};

// The name of a metric is of 1 to 200 printable ASCII characters without spaces, <, > and =: neither what a requirement
// is read by, nor what a terminal or a table would take for something else.
bool is_metric_name(std::string_view name);

// Errors: invalid: not such a name, a sign and a finite number.
Result<Requirement> parse_requirement(std::string_view text);

}  // namespace systole
