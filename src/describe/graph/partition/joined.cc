#include "describe/graph/partition/joined.h"

#include <algorithm>
#include <map>
#include <set>

#include "describe/graph/arena.h"
#include "describe/graph/memory.h"

namespace systole {
namespace {

void check_one_turn(const Program& program, const Schedule& schedule) {
  const auto refuse = [&](const std::string& what) {
    fail(error(ErrorKind::unsupported, "the schedule '{}' of '{}' {}: it is not one function", schedule.name,
               program.name, what));
  };
  if (program.shards) refuse("is of exact training, whose devices take turns");
  for (const Action& action : schedule.actions) {
    if (action.microbatch != 0) refuse(fmt::format("has {} microbatches or more", action.microbatch + 1));
    if (action.chunk != 0) refuse(fmt::format("has {} stages or more", action.chunk + 1));
  }
}

using Place = std::pair<int, int>;  // a value and its slot

class Joiner {
 public:
  // `kept`: values that functions of other schedules use.
  Joiner(const Program& program, const std::set<int>& kept) : program_(program), kept_(kept) {}

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

  Function finish() {
    joined_.name = kStepFunction;
    joined_.graph.set_name(kStepFunction);
    joined_.donated.assign(joined_.inputs.size(), false);
    for (const Place& at : written_) {
      const Residence residence = program_.values[static_cast<std::size_t>(at.first)].residence;
      if (!outlives_schedules(residence) && residence != Residence::output && !kept_.contains(at.first)) continue;
      const auto input = inputs_.find(at);
      if (input != inputs_.end()) joined_.aliases.push_back({static_cast<int>(joined_.outputs.size()), input->second});
      joined_.graph.output(name_of(at), current_.at(at));
      joined_.outputs.push_back({at.first, false, false, at.second});
    }
    return std::move(joined_);
  }

 private:
  Place place(const Port& port, const Action& action) const { return {port.value, slot_of(program_, port, action)}; }

  std::string name_of(const Place& at) const {
    const ProgramValue& value = program_.values[static_cast<std::size_t>(at.first)];
    return value.slots == 1 ? value.name : fmt::format("{}#{}", value.name, at.second);
  }

  Value read(const Place& at, const std::string& name) {
    if (const auto known = current_.find(at); known != current_.end()) return known->second;
    const Type& type = program_.values[static_cast<std::size_t>(at.first)].type;
    // Coordinates keep the names that all functions give them (spmd.h).
    const Value input = joined_.graph.input(name.starts_with("coordinate.") ? name : name_of(at), type);
    inputs_.emplace(at, static_cast<int>(joined_.inputs.size()));
    joined_.inputs.push_back({at.first, false, false, at.second});
    return current_.emplace(at, input).first->second;
  }

  const Program& program_;
  const std::set<int>& kept_;
  Function joined_;
  std::map<Place, Value> current_;
  std::map<Place, int> inputs_;
  std::vector<Place> written_;  // in order
};

void collect(const Function& function, std::set<int>& values) {
  for (const Port& port : function.inputs) values.insert(port.value);
  for (const Port& port : function.outputs) values.insert(port.value);
}

void renumber(std::vector<Port>& ports, const std::vector<int>& number) {
  for (Port& port : ports) port.value = number[static_cast<std::size_t>(port.value)];
}

}  // namespace

Program joined(const Program& program) {
  const Schedule& train = program.schedule_named("train");
  check_one_turn(program, train);
  std::set<int> others;  // functions
  for (const Schedule& schedule : program.schedules) {
    for (const Action& action : schedule.actions) {
      if (&schedule != &train) others.insert(action.function);
    }
  }
  std::set<int> kept;
  for (const int f : others) collect(program.functions[static_cast<std::size_t>(f)], kept);

  Program one = program;
  one.functions.clear();
  Joiner joiner(program, kept);
  for (const Action& action : train.actions) joiner.add(action);
  one.functions.push_back(joiner.finish());
  std::vector<int> function_number(program.functions.size(), 0);
  for (const int f : others) {
    function_number[static_cast<std::size_t>(f)] = static_cast<int>(one.functions.size());
    one.functions.push_back(program.functions[static_cast<std::size_t>(f)]);
  }
  for (Schedule& schedule : one.schedules) {
    if (schedule.name == train.name) {
      schedule.actions.assign(1, {0, 0, 0, Stream::compute, {}});
    } else {
      for (Action& action : schedule.actions)
        action.function = function_number[static_cast<std::size_t>(action.function)];
    }
  }

  collect(one.functions[0], kept);
  std::vector<int> value_number(program.values.size(), -1);
  one.values.clear();
  for (std::size_t v = 0; v < program.values.size(); ++v) {
    if (!kept.contains(static_cast<int>(v))) continue;
    value_number[v] = static_cast<int>(one.values.size());
    one.values.push_back(program.values[v]);
  }
  for (Function& function : one.functions) {
    renumber(function.inputs, value_number);
    renumber(function.outputs, value_number);
  }

  // Its nodes are those of the functions, whose workspaces the Target has.
  plan_scratch(one.functions[0], one.target.alignment, [&](const Graph& graph, const GraphNode& node) {
    const auto known = one.target.workspace.find(workspace_key(graph, node));
    return known == one.target.workspace.end() ? Bytes(0) : known->second;
  });
  plan_arena(one);
  verify(one);
  return one;
}

}  // namespace systole
