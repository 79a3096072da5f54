#include "describe/stablehlo/joined.h"

#include <algorithm>
#include <map>

#include "ground/base/error.h"

namespace systole::stablehlo {
namespace {

bool outlives(Residence residence) {
  switch (residence) {
    case Residence::parameter:
    case Residence::state:
    case Residence::output:
    case Residence::staging:
    case Residence::cache: return true;
    default: return false;
  }
}

void check_one_turn(const Program& program, const Schedule& schedule) {
  const auto refuse = [&](const std::string& what) {
    fail(error(ErrorKind::unsupported, "the schedule '{}' of '{}' {}: it is no single module", schedule.name,
               program.name, what)
             .hinted("lower its functions one by one"));
  };
  if (program.shards) refuse("is of exact training, whose devices take turns");
  for (const Action& action : schedule.actions) {
    if (action.microbatch != 0) refuse(fmt::format("has {} microbatches or more", action.microbatch + 1));
    if (action.chunk != 0) refuse(fmt::format("has {} stages or more", action.chunk + 1));
  }
}

class Joiner {
 public:
  explicit Joiner(const Program& program) : program_(program) {}

  void add(const Action& action) {
    const Function& function = program_.functions[static_cast<std::size_t>(action.function)];
    std::vector<Value> inputs;
    for (std::size_t i = 0; i < function.inputs.size(); ++i)
      inputs.push_back(read(place(function.inputs[i], action), function.graph.inputs()[i].name));
    const std::vector<Value> outputs = inline_graph(joined_.graph, function.graph, inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Place at = place(function.outputs[i], action);
      current_.insert_or_assign(at, outputs[i]);
      if (std::find(written_.begin(), written_.end(), at) == written_.end()) written_.push_back(at);
    }
    joined_.work += function.work;
  }

  Function finish(const std::string& name) {
    joined_.name = name;
    joined_.graph.set_name(name);
    joined_.donated.assign(joined_.inputs.size(), false);
    for (const Place& at : written_) {
      if (!outlives(value_at(at).residence)) continue;
      const int output = static_cast<int>(joined_.outputs.size());
      joined_.graph.output(name_of_place(at), current_.at(at));
      joined_.outputs.push_back(port_of(at));
      if (const auto input = inputs_.find(at); input != inputs_.end()) {
        joined_.aliases.push_back({output, input->second});
        joined_.donated[static_cast<std::size_t>(input->second)] = true;
      }
    }
    return std::move(joined_);
  }

 private:
  using Place = std::pair<int, int>;  // a value and its slot

  Place place(const Port& port, const Action& action) const { return {port.value, slot_of(program_, port, action)}; }
  static Port port_of(const Place& at) {
    Port port;
    port.value = at.first;
    port.slot = at.second;
    return port;
  }
  const ProgramValue& value_at(const Place& at) const { return program_.values[static_cast<std::size_t>(at.first)]; }
  std::string name_of_place(const Place& at) const {
    const ProgramValue& value = value_at(at);
    return value.slots == 1 ? value.name : fmt::format("{}#{}", value.name, at.second);
  }

  // A coordinate keeps the name that functions give it, by which lower() knows it.
  Value read(const Place& at, const std::string& name) {
    if (const auto known = current_.find(at); known != current_.end()) return known->second;
    const bool coordinate = name.starts_with("coordinate.");
    const Value input = joined_.graph.input(coordinate ? name : name_of_place(at), value_at(at).type);
    inputs_.emplace(at, static_cast<int>(joined_.inputs.size()));
    joined_.inputs.push_back(port_of(at));
    return current_.emplace(at, input).first->second;
  }

  const Program& program_;
  Function joined_;
  std::map<Place, Value> current_;
  std::map<Place, int> inputs_;
  std::vector<Place> written_;  // in order
};

}  // namespace

Function joined(const Program& program, const Schedule& schedule) {
  check_one_turn(program, schedule);
  Joiner joiner(program);
  for (const Action& action : schedule.actions) joiner.add(action);
  return joiner.finish(schedule.name);
}

Module lower_step(const Program& program, const Schedule& schedule, const LowerOptions& options) {
  return lower(program, joined(program, schedule), options);
}

}  // namespace systole::stablehlo
