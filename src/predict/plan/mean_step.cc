#include "predict/plan/mean_step.h"

#include "ground/base/counted.h"

namespace systole {

double mean_rows(std::span<const PlannedShape> shapes) {
  const std::vector<double> shares = step_shares(shapes);
  double rows = 0;
  for (std::size_t s = 0; s < shapes.size(); ++s) rows += shares[s] * static_cast<double>(shapes[s].rows);
  return rows;
}

double mean_tokens(std::span<const PlannedShape> shapes) {
  std::int64_t steps = 0, tokens = 0;
  for (const PlannedShape& shape : shapes) {
    steps += shape.epoch_steps;
    tokens += shape.epoch_tokens;
  }
  CHECK(steps > 0, "{} lengths without steps", shapes.size());
  return static_cast<double>(tokens) / static_cast<double>(steps);
}

std::string lengths_words(std::span<const PlannedShape> shapes) {
  std::string text;
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    if (s > 0) text += s + 1 == shapes.size() ? " or " : ", ";
    text += s + 1 == shapes.size() ? counted(shapes[s].length, "token") : with_commas(shapes[s].length);
  }
  return text;
}

}  // namespace systole
