#include "predict/perf/stack.h"

#include <algorithm>
#include <cstdlib>

#include "ground/base/document.h"
#include "ground/base/nearest.h"

namespace systole {

extern const char* const kBuiltinStacks;  // data/perf/stacks.yaml, made when Systole is built

namespace {

constexpr StackNumber kNumbers[] = {
    {"products", &StackProfile::products, "share of the rate that the chip's best products reach", 0.5, 1.05,
     "the best products of the best libraries are 1, up to what their search has missed", true, 0.1},
    {"attention", &StackProfile::attention, "share of the rate of the chip's best fused attention", 0.2, 1.6,
     "published kernels are 1, and newer ones of the same chip were half as fast again", true, 0.25},
    {"movement", &StackProfile::movement, "bytes that memory-bound ops move, for each that they read and write", 0.3,
     3.0, "fused further than the Program at the least, each step of a norm by itself at the most", true, 0.35},
    {"launch", &StackProfile::launch, "seconds of the host for a kernel", 1e-6, 1e-4,
     "a launch of the driver's alone at the least, a Python interpreter for each at the most", true, 0.6},
    {"step", &StackProfile::step, "seconds that a step takes besides", 1e-4, 1.0,
     "one message to all at the least, logging and input in the open at the most", true, 1.0},
    {"network", &StackProfile::network, "share of the bandwidth between machines", 0.1, 1.0, "1 is the card's", true,
     0.3},
    {"hop", &StackProfile::hop, "seconds of a step of a ring between machines", 1e-6, 8e-5,
     "a switch at the least, a kernel's stack of protocols at the most", true, 0.5},
    {"tensor_hidden", &StackProfile::tensor_hidden, "share of tensor collectives beside other work", 0.0, 0.95,
     "none, or nearly all", false, 0.2},
    {"data_hidden", &StackProfile::data_hidden, "share of the work beside which parameters and gradients are sent", 0.0,
     0.98, "none, or nearly all", false, 0.2},
    {"stall", &StackProfile::stall,
     "seconds of a layer for each rank of its tensor group, where stages lie on several machines", 1e-6, 1e-2,
     "a look at a flag at the least, a stage's turn of its host at the most", true, 1.5},
    {"context", &StackProfile::context, "GiB that are not the Program's", 0.0, 8.0,
     "no context at all, or a tenth of an 80 GB device", false, 1.0},
    {"fragments", &StackProfile::fragments, "share of what activations take, lost between them", 0.0, 0.5,
     "a planned arena, or an allocator that never reuses", false, 0.1},
};

struct StackFact {
  const char* name;
  bool StackProfile::*member;
};
constexpr StackFact kFacts[] = {{"whole_step", &StackProfile::whole_step},
                                {"even_cost", &StackProfile::even_cost},
                                {"gathers_late", &StackProfile::gathers_late},
                                {"half_copies", &StackProfile::half_copies},
                                {"sums_in_products", &StackProfile::sums_in_products},
                                {"splits_dispatch", &StackProfile::splits_dispatch},
                                {"whole_again", &StackProfile::whole_again},
                                {"holds_loss", &StackProfile::holds_loss}};

Status read_entry(const Node::Entry& entry, StackProfile& stack) {
  const auto number = std::ranges::find_if(kNumbers, [&](const StackNumber& n) { return entry.key == n.name; });
  if (number != std::end(kNumbers)) {
    const double value = TRY(entry.value.as_double());
    if (value < number->least || value > number->most) {
      return error(ErrorKind::invalid, "{} of '{}' is {}: it lies between {} and {}", entry.key, stack.name, value,
                   number->least, number->most)
          .at(entry.value.where())
          .hinted(number->why);
    }
    stack.*number->member = value;
    return {};
  }
  const auto fact = std::ranges::find_if(kFacts, [&](const StackFact& f) { return entry.key == f.name; });
  if (fact != std::end(kFacts)) {
    stack.*fact->member = TRY(entry.value.as_bool());
    return {};
  }
  if (entry.key == "doc") {
    stack.doc = TRY(entry.value.as_string());
    return {};
  }
  if (entry.key == "called") {
    for (const Node& name : entry.value.items()) stack.called.push_back(TRY(name.as_string()));
    return {};
  }
  std::vector<std::string> keys = {"doc", "called"};
  for (const StackNumber& n : kNumbers) keys.emplace_back(n.name);
  for (const StackFact& f : kFacts) keys.emplace_back(f.name);
  return error(ErrorKind::invalid, "unknown key '{}'", entry.key)
      .at(entry.where())
      .hinted(nearest_hint(entry.key, keys));
}

Result<StackProfile> read_stack(const Node::Entry& entry) {
  StackProfile stack;
  stack.name = entry.key;
  if (!entry.value.is_map()) return entry.value.wrong("a map");
  for (const Node::Entry& field : entry.value.entries()) TRY(read_entry(field, stack));
  for (const StackNumber& number : kNumbers) {
    if (entry.value.find(number.name) == nullptr)
      return error(ErrorKind::invalid, "'{}' has no {}", stack.name, number.name)
          .at(entry.where())
          .hinted(number.meaning);
  }
  return stack;
}

}  // namespace

std::span<const StackNumber> stack_numbers() { return kNumbers; }

Result<std::vector<StackProfile>> read_stacks(std::string_view text, const std::string& filename) {
  const Node document = TRY(parse_yaml(text, filename));
  if (TRY(TRY(document.get("systole_stacks"))->as_int()) != 1)
    return error(ErrorKind::unsupported, "'{}' is of a newer version", filename).coded(ErrorCode::newer_version);
  std::vector<StackProfile> stacks;
  for (const Node::Entry& entry : TRY(document.get("stacks"))->entries()) stacks.push_back(TRY(read_stack(entry)));
  if (static_cast<int>(stacks.size()) > kMostStacks + 1) {
    return error(ErrorKind::invalid, "'{}' has {} profiles beside the default: more than {} would fit anything",
                 filename, stacks.size() - 1, kMostStacks);
  }
  if (std::ranges::find(stacks, "default", &StackProfile::name) == stacks.end())
    return error(ErrorKind::invalid, "'{}' has no profile 'default', for stacks that nobody has fitted", filename);
  return stacks;
}

std::string to_yaml(std::span<const StackProfile> stacks) {
  static const std::string kHead =
      "# Software stacks, each in a dozen numbers and a few facts (predict/perf/stack.h says what each means and its\n"
      "# bounds). The numbers were found on data/validation by `systole backtest --fit`; docs/accuracy.md has the "
      "errors\n"
      "# that they leave.\n";
  Node all = Node::map();
  for (const StackProfile& stack : stacks) {
    Node node = Node::map({{"doc", stack.doc}});
    Node called = Node::sequence();
    for (const std::string& name : stack.called) called.push(name);
    node.set("called", std::move(called));
    for (const StackFact& fact : kFacts) node.set(fact.name, stack.*fact.member);
    for (const StackNumber& number : kNumbers) {  // no number is known to more than four digits
      const double value = std::strtod(fmt::format("{:.4g}", stack.*number.member).c_str(), nullptr);
      node.set(number.name, std::clamp(value, number.least, number.most));
    }
    all.set(stack.name, std::move(node));
  }
  return kHead + to_yaml(Node::map({{"systole_stacks", 1}, {"stacks", std::move(all)}}));
}

const std::vector<StackProfile>& builtin_stacks() {
  static const std::vector<StackProfile> stacks = read_stacks(kBuiltinStacks, "data/perf/stacks.yaml").value();
  return stacks;
}

const StackProfile& stack_of(std::span<const StackProfile> stacks, std::string_view framework) {
  const StackProfile* found = nullptr;
  std::size_t longest = 0;
  for (const StackProfile& stack : stacks) {
    if (stack.name == framework) return stack;
    if (stack.name == "default" && found == nullptr) found = &stack;
    for (const std::string& part : stack.called) {
      if (framework.find(part) == std::string_view::npos || part.size() <= longest) continue;
      found = &stack;
      longest = part.size();
    }
  }
  CHECK(found != nullptr, "profiles without a default");
  return *found;
}

}  // namespace systole
