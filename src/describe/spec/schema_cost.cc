// Keys of money: the budget of a run, and the price of its machines.
#include "describe/spec/schema.h"

namespace systole {
namespace {

constexpr double kMost = 1e12;

// Dollars, not printed when unset. Must be above 0: with a price of 0 no budget would ever be used up.
template <typename Money>
Codec dollars_codec(Field<std::optional<Money>> at) {
  Codec codec;
  codec.type = "dollars";
  codec.range = "above 0";
  codec.read = [at](const Node& node, Workload& w) -> Status {
    const double dollars = TRY(node.as_double());
    if (dollars > 0 && dollars <= kMost) {
      at(w) = Money(dollars);
      return Done{};
    }
    return error(ErrorKind::invalid, "{} is no sum of dollars", node.text())
        .at(node.where())
        .hinted("a number above 0: 12.50");
  };
  codec.write = [at](Workload& w) { return at(w) ? Node(at(w)->count()) : Node(); };
  return codec;
}

}  // namespace

void add_cost_keys(Schema& schema) {
  schema.sections.push_back({"objective", "What is wanted of the run beside its result.", {}, {}});
  schema.keys.push_back({.path = "resources.price",
                         .codec = dollars_codec<DollarsPerHour>(AT(resources.price)),
                         .doc = "Dollars that an hour of one of its machines costs. Without it, what the plan found.",
                         .more = "Of machines that no catalog has a price for: what their owner charges, or what they "
                                 "and their power cost.",
                         .optional = true});
  schema.keys.push_back({.path = "objective.budget",
                         .codec = dollars_codec<Dollars>(AT(objective.budget)),
                         .doc = "Dollars that the run may cost, all that is begun again counted: then it saves and "
                                "stops.",
                         .more = "It stops before the step, the evaluation or the save that would go over it, says "
                                 "so, and ends with 77. `systole resume RUN --set objective.budget=N` goes on from "
                                 "there with more. A budget without a price is refused before anything begins.",
                         .optional = true});
}

}  // namespace systole
