#include "describe/spec/run.h"

namespace systole {
namespace {

struct Row {
  const char *name, *doc;
};

// In enum order.
constexpr std::array<Row, kNumCategories> kRows{{
    {"startup", "reading documents and data, opening the run"},
    {"compile", "building the Program, creating kernels, allocating memory"},
    {"restore", "reading a checkpoint back"},
    {"data_wait", "waiting for the next rows"},
    {"compute", "forward and backward passes"},
    {"reduce", "collectives that nothing hides"},
    {"update", "the optimizer"},
    {"snapshot", "copying the state for a checkpoint"},
    {"checkpoint", "waiting for a checkpoint to be written"},
    {"evaluation", "measuring on held-out data"},
    {"logging", "writing events and lines"},
    {"other", "all the rest"},
}};

}  // namespace

const char* name_of(Category category) { return kRows[static_cast<std::size_t>(category)].name; }
const char* describe(Category category) { return kRows[static_cast<std::size_t>(category)].doc; }

std::optional<Category> category_named(std::string_view name) {
  for (int i = 0; i < kNumCategories; ++i) {
    if (name == kRows[static_cast<std::size_t>(i)].name) return static_cast<Category>(i);
  }
  return std::nullopt;
}

Seconds TimeByCategory::total() const {
  Seconds sum{};
  for (const Seconds s : seconds_) sum += s;
  return sum;
}

TimeByCategory& TimeByCategory::operator+=(const TimeByCategory& other) {
  for (std::size_t i = 0; i < seconds_.size(); ++i) seconds_[i] += other.seconds_[i];
  return *this;
}

}  // namespace systole
