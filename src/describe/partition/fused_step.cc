#include "describe/partition/fused_step.h"

#include <algorithm>
#include <map>
#include <set>

#include "describe/ir/work.h"
#include "describe/ops/ops.h"
#include "describe/partition/training.h"
#include "describe/program/arena.h"
#include "describe/program/memory.h"

namespace systole {
namespace {

void check_is_one(const Program& program, const Schedule& schedule) {
  const auto refuse = [&](const std::string& what) {
    fail(error(ErrorKind::unsupported, "the schedule '{}' of '{}' {}: it is not one function", schedule.name,
               program.name, what));
  };
  if (program.shards) refuse("is of exact training, whose devices run logical shards in sequence");
  for (const Action& action : schedule.actions) {
    if (action.chunk != 0 || action.stream == Stream::network) refuse("is of a stage of a pipeline");
  }
}

// The actions that a schedule repeats for each microbatch: `length` actions from `first` on, `times` times.
struct MicrobatchLoop {
  std::size_t first = 0, length = 0;
  int times = 1;
};

MicrobatchLoop microbatch_loop(const Program& program, const Schedule& schedule) {
  const std::vector<Action>& actions = schedule.actions;
  MicrobatchLoop loop;
  for (const Action& action : actions) loop.times = std::max(loop.times, action.microbatch + 1);
  if (loop.times == 1) return loop;
  const auto second = std::find_if(actions.begin(), actions.end(), [](const Action& a) { return a.microbatch == 1; });
  const auto begins = static_cast<std::size_t>(second - actions.begin());
  while (begins + loop.length < actions.size() && actions[begins + loop.length].microbatch == 1) ++loop.length;
  loop.first = begins - std::min(begins, loop.length);
  for (std::size_t i = 0; i < loop.length * static_cast<std::size_t>(loop.times); ++i) {
    const std::size_t at = loop.first + i, like = loop.first + i % loop.length;
    if (at < actions.size() && actions[at].function == actions[like].function && actions[at].slot == 0 &&
        actions[at].microbatch == static_cast<int>(i / loop.length))
      continue;
    fail(error(ErrorKind::unsupported, "microbatches of the schedule '{}' of '{}' are not done one after the other",
               schedule.name, program.name));
  }
  return loop;
}

using Place = std::pair<int, int>;  // a value and its slot

class Joiner {
 public:
  // `kept`: values that other schedules use.
  Joiner(const Program& program, const std::set<int>& kept) : program_(program), kept_(kept) {}

  void add(const Action& action) {
    const Function& function = function_of(action);
    std::vector<Value> inputs;
    for (std::size_t i = 0; i < function.inputs.size(); ++i)
      inputs.push_back(read(place(function.inputs[i], action), function.graph.inputs()[i].name));
    const std::vector<Value> outputs = inline_graph(joined_.graph, function.graph, inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) write(place(function.outputs[i], action), outputs[i]);
  }

  // Adds the actions of one microbatch as a repeat. Values that every microbatch writes anew (gradient sums) are
  // carried; values with a slot per microbatch are stacked, on input and output.
  void repeat_for_each(std::span<const Action> actions, int times);

  Function finish(const std::string& name) {
    joined_.name = name;
    joined_.graph.set_name(name);
    joined_.donated.assign(joined_.inputs.size(), false);
    for (const Place& at : written_) {
      const Residence residence = program_.values[static_cast<std::size_t>(at.first)].residence;
      if (!outlives_schedules(residence) && residence != Residence::output && !kept_.contains(at.first)) continue;
      const auto input = inputs_.find(at);
      if (input != inputs_.end()) joined_.aliases.push_back({static_cast<int>(joined_.outputs.size()), input->second});
      joined_.graph.output(name_of(at), current_.at(at));
      joined_.outputs.push_back({at.first, false, false, at.second});
    }
    joined_.work = work_of(joined_.graph);
    return std::move(joined_);
  }

 private:
  const Function& function_of(const Action& action) const {
    return program_.functions[static_cast<std::size_t>(action.function)];
  }
  Place place(const Port& port, const Action& action) const { return {port.value, slot_of(program_, port, action)}; }

  std::string name_of(const Place& at) const {
    const ProgramValue& value = program_.values[static_cast<std::size_t>(at.first)];
    return value.slots == 1 ? value.name : fmt::format("{}#{}", value.name, at.second);
  }
  const Type& type_of(const Place& at) const { return program_.values[static_cast<std::size_t>(at.first)].type; }

  Value read(const Place& at, const std::string& name) {
    if (const auto known = current_.find(at); known != current_.end()) return known->second;
    // Coordinates keep the name that they have in all functions (spmd.h).
    const Value input = joined_.graph.input(name.starts_with("coordinate.") ? name : name_of(at), type_of(at));
    inputs_.emplace(at, static_cast<int>(joined_.inputs.size()));
    joined_.inputs.push_back({at.first, false, false, at.second});
    return current_.emplace(at, input).first->second;
  }

  void write(const Place& at, const Value& value) {
    current_.insert_or_assign(at, value);
    if (std::find(written_.begin(), written_.end(), at) == written_.end()) written_.push_back(at);
  }

  const Program& program_;
  const std::set<int>& kept_;
  Function joined_;
  std::map<Place, Value> current_;
  std::map<Place, int> inputs_;
  std::vector<Place> written_;  // in order of the first write
};

void Joiner::repeat_for_each(std::span<const Action> actions, int times) {
  Joiner one(program_, kept_);
  for (const Action& action : actions) one.add(action);
  const auto of = [&](const Place& at) -> const ProgramValue& {
    return program_.values[static_cast<std::size_t>(at.first)];
  };
  const auto own = [&](const Place& at) { return of(at).slots == times; };

  std::vector<Place> carried, stacked_in, shared, stacked_out;
  for (const Place& at : one.written_) {
    if (own(at)) {
      stacked_out.push_back(at);
    } else if (one.inputs_.contains(at) || of(at).residence != Residence::residual) {
      carried.push_back(at);
    }
  }
  for (const Port& port : one.joined_.inputs) {
    const Place at{port.value, port.slot};
    if (std::find(carried.begin(), carried.end(), at) == carried.end()) (own(at) ? stacked_in : shared).push_back(at);
  }
  for (const std::vector<Place>* places : {&carried, &stacked_out}) {
    for (const Place& at : *places) one.joined_.graph.output(name_of(at), one.current_.at(at));
  }

  Graph& graph = joined_.graph;
  Graph body("microbatch");
  std::vector<Value> inner(one.joined_.inputs.size());  // of the body, in the order of one's inputs
  const auto takes = [&](const Place& at) {
    const auto input = one.inputs_.find(at);
    const Value value = body.input(input == one.inputs_.end()
                                       ? name_of(at)
                                       : one.joined_.graph.inputs()[static_cast<std::size_t>(input->second)].name,
                                   of(at).type);
    if (input != one.inputs_.end()) inner[static_cast<std::size_t>(input->second)] = value;
  };
  const auto read_outside = [&](const Place& at) {
    const std::string& name = one.joined_.graph.inputs()[static_cast<std::size_t>(one.inputs_.at(at))].name;
    return read(at, name);
  };
  std::vector<Value> first, stacks, all;
  for (const Place& at : carried) {
    takes(at);
    // A value that is written before it is read may begin with any content.
    first.push_back(one.inputs_.contains(at) ? read_outside(at) : constant(graph, of(at).type, 0));
  }
  for (const Place& at : stacked_in) {
    takes(at);
    std::vector<Value> parts;
    for (int slot = 0; slot < times; ++slot)
      parts.push_back(reshape(read({at.first, slot}, ""), stacked_type(of(at).type, 1, body.name())));
    stacks.push_back(concatenate(parts, 0));
  }
  for (const Place& at : shared) {
    takes(at);
    all.push_back(read_outside(at));
  }
  const std::vector<Value> made = inline_graph(body, one.joined_.graph, inner);
  for (std::size_t i = 0; i < made.size(); ++i) body.output(one.joined_.graph.outputs()[i].name, made[i]);

  const std::string dim = body.name();
  const Repeat repeated = repeat(std::move(body), times, first, stacks, all, dim);
  for (std::size_t i = 0; i < carried.size(); ++i) write(carried[i], repeated.carries[i]);
  for (std::size_t i = 0; i < stacked_out.size(); ++i) {
    const int value = stacked_out[i].first;
    for (int slot = 0; slot < times; ++slot)
      write({value, slot}, reshape(slice_dim(repeated.outputs[i], 0, slot, slot + 1), of(stacked_out[i]).type));
  }
}

void collect(const Function& function, std::set<int>& values) {
  for (const Port& port : function.inputs) values.insert(port.value);
  for (const Port& port : function.outputs) values.insert(port.value);
}

void renumber(std::vector<Port>& ports, const std::vector<int>& number) {
  for (Port& port : ports) port.value = number[static_cast<std::size_t>(port.value)];
}

// The functions of a schedule as one: "step", or "step.64" of "train.64".
Function joined(const Program& program, const Schedule& train, const std::set<int>& kept) {
  check_is_one(program, train);
  const MicrobatchLoop loop = microbatch_loop(program, train);
  Joiner joiner(program, kept);
  const auto all = std::span<const Action>(train.actions);
  const std::size_t last = loop.first + loop.length * static_cast<std::size_t>(loop.times);
  for (const Action& action : all.first(loop.first)) joiner.add(action);
  if (loop.length > 0) joiner.repeat_for_each(all.subspan(loop.first, loop.length), loop.times);
  for (const Action& action : all.subspan(last)) joiner.add(action);
  return joiner.finish(kStepFunction + train.name.substr(std::string_view("train").size()));
}

}  // namespace

Program fused_step(const Program& program) {
  const auto is_step = [](const Schedule& schedule) { return is_train_schedule(schedule.name); };
  std::set<int> others;  // functions
  for (const Schedule& schedule : program.schedules) {
    for (const Action& action : schedule.actions) {
      if (!is_step(schedule)) others.insert(action.function);
    }
  }
  std::set<int> kept;
  for (const int f : others) collect(program.functions[static_cast<std::size_t>(f)], kept);

  Program one = program;
  one.functions.clear();
  for (Schedule& schedule : one.schedules) {
    if (!is_step(schedule)) continue;
    const int step = static_cast<int>(one.functions.size());
    one.functions.push_back(joined(program, schedule, kept));
    schedule.actions.assign(1, {step, 0, 0, Stream::compute, {}});
  }
  const std::size_t steps = one.functions.size();
  std::vector<int> function_number(program.functions.size(), 0);
  for (const int f : others) {
    function_number[static_cast<std::size_t>(f)] = static_cast<int>(one.functions.size());
    one.functions.push_back(program.functions[static_cast<std::size_t>(f)]);
  }
  for (Schedule& schedule : one.schedules) {
    if (is_step(schedule)) continue;
    for (Action& action : schedule.actions)
      action.function = function_number[static_cast<std::size_t>(action.function)];
  }

  for (std::size_t f = 0; f < steps; ++f) collect(one.functions[f], kept);
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

  // The Target knows the workspaces already: the nodes are those of the original functions.
  for (std::size_t f = 0; f < steps; ++f) {
    plan_scratch(one.functions[f], one.target.alignment, [&](const Graph& graph, const GraphNode& node) {
      const auto known = one.target.workspace.find(workspace_key(graph, node));
      return known == one.target.workspace.end() ? Bytes(0) : known->second;
    });
  }
  plan_arena(one);
  verify(one);
  return one;
}

}  // namespace systole
