#include "describe/partition/builder.h"

#include <algorithm>

#include "describe/ir/work.h"
#include "describe/partition/overlap_collectives.h"
#include "describe/program/arena.h"
#include "describe/program/collectives_of.h"

namespace systole {

namespace {

// Whether the device's own kernels widen what they sum while they read it. A compiler decides for itself, and times of
// accelerators are fitted to Programs that copy.
bool sums_narrow(const Target& target) { return target.kind == "cpu" || target.kind == "reference"; }

}  // namespace

std::vector<Pass> function_passes(const Target& target) {
  const FusionRules fusion = target.fusion;
  const bool narrow_sums = sums_narrow(target);
  return {{"fold_constants", fold_constants},
          {"merge_common", merge_common},
          {"widen_results", [narrow_sums](const Graph& graph) { return widen_results(graph, narrow_sums); }},
          {"drop_dead", drop_dead},
          {"fuse_chains", [fusion](const Graph& graph) { return fuse_chains(graph, fusion); }},
          {"own_outputs", own_outputs}};
}

ProgramBuilder::ProgramBuilder(std::string name, Mesh mesh, Target target, WorkspaceOf workspace_of)
    : workspace_of_(std::move(workspace_of)) {
  program_.name = std::move(name);
  program_.mesh = std::move(mesh);
  program_.target = std::move(target);
  if (program_.mesh.trivial()) program_.target.links.clear();  // one device has no links
}

int ProgramBuilder::add_value(ProgramValue value) {
  const int index = static_cast<int>(program_.values.size());
  if (!values_.emplace(value.name, index).second)
    fail(error(ErrorKind::invalid, "program '{}' has two values '{}'", program_.name, value.name));
  program_.values.push_back(std::move(value));
  return index;
}

int ProgramBuilder::value_named(const std::string& name) const {
  const auto found = values_.find(name);
  return found != values_.end() ? found->second : program_.value_named(name);  // fails with not_found
}

void ProgramBuilder::add_parameters(const Graph& graph) {
  for (const GraphInput& input : graph.inputs()) {
    if (!input.parameter || has_value(input.name)) continue;
    add_value({input.parameter->name, input.parameter->type, Residence::parameter, 1, input.parameter, 0, 0});
  }
}

int ProgramBuilder::add_function(const std::string& name, Graph graph, const Bindings& inputs, const Bindings& outputs,
                                 std::vector<std::string> donated) {
  Function f;
  f.name = name;
  graph.set_name(name);
  const std::vector<Pass> passes = function_passes(program_.target);
  f.graph = run_passes(std::move(graph), passes);
  if (!program_.mesh.trivial()) {
    f.graph = with_algorithms(f.graph, program_.mesh, program_.target);
    if (overlap_) f.graph = overlap_collectives(f.graph);
  }
  const auto port = [&](const Bindings& bindings, const std::string& key) {
    const auto found = bindings.find(key);
    if (found == bindings.end()) return Port{value_named(key)};
    const Binding& binding = found->second;
    return Port{value_named(binding.value), binding.by_microbatch, binding.by_slot, binding.slot};
  };
  for (const GraphInput& input : f.graph.inputs()) {
    f.inputs.push_back(port(inputs, input.name));
    f.donated.push_back(std::find(donated.begin(), donated.end(), input.name) != donated.end());
  }
  for (const GraphOutput& output : f.graph.outputs()) f.outputs.push_back(port(outputs, output.name));
  for (int o = 0; o < static_cast<int>(f.outputs.size()); ++o) {
    for (int i = 0; i < static_cast<int>(f.inputs.size()); ++i) {
      const Port &out = f.outputs[static_cast<std::size_t>(o)], &in = f.inputs[static_cast<std::size_t>(i)];
      if (out.value == in.value && !apart(out, in)) f.aliases.push_back({o, i});
    }
  }
  f.work = work_of(f.graph);
  program_.functions.push_back(std::move(f));
  return static_cast<int>(program_.functions.size()) - 1;
}

bool ProgramBuilder::has_function(std::string_view name) const {
  return std::any_of(program_.functions.begin(), program_.functions.end(),
                     [&](const Function& function) { return function.name == name; });
}

int ProgramBuilder::function_index(std::string_view name) const {
  for (std::size_t i = 0; i < program_.functions.size(); ++i) {
    if (program_.functions[i].name == name) return static_cast<int>(i);
  }
  fail(error(ErrorKind::not_found, "program '{}' has no function '{}'", program_.name, name));
}

void ProgramBuilder::add_waits(Schedule& schedule) const {
  struct Users {
    int writer = -1;
    std::array<int, kNumStreams> readers;  // since the write, the latest of each stream; -1: none
    Users() { readers.fill(-1); }
  };
  std::vector<std::vector<Users>> slots;  // per value
  for (const ProgramValue& value : program_.values) slots.emplace_back(static_cast<std::size_t>(value.slots));
  for (int a = 0; a < static_cast<int>(schedule.actions.size()); ++a) {
    Action& action = schedule.actions[static_cast<std::size_t>(a)];
    const Function& f = program_.functions[static_cast<std::size_t>(action.function)];
    std::array<int, kNumStreams> latest;
    latest.fill(-1);
    const auto after = [&](int other) {
      if (other < 0 || other == a) return;
      int& last = latest[static_cast<std::size_t>(schedule.actions[static_cast<std::size_t>(other)].stream)];
      last = std::max(last, other);
    };
    const auto users = [&](const Port& port) -> Users& {
      const int slot = slot_of(program_, port, action);
      CHECK(slot >= 0, "schedule {}, action {}: a slot of value {} that it has not", schedule.name, a, port.value);
      return slots[static_cast<std::size_t>(port.value)][static_cast<std::size_t>(slot)];
    };
    const auto write = [&](const Port& port) {
      Users& slot = users(port);
      after(slot.writer);
      for (const int reader : slot.readers) after(reader);
      slot = Users();
      slot.writer = a;
    };
    for (const Port& port : f.inputs) {
      after(users(port).writer);
      users(port).readers[static_cast<std::size_t>(action.stream)] = a;
    }
    for (std::size_t i = 0; i < f.inputs.size(); ++i) {
      if (f.donated[i]) write(f.inputs[i]);
    }
    for (const Port& port : f.outputs) write(port);
    for (int stream = 0; stream < kNumStreams; ++stream) {
      const int last = latest[static_cast<std::size_t>(stream)];
      if (last >= 0 && stream != static_cast<int>(action.stream)) action.waits.push_back(last);
    }
  }
}

Program ProgramBuilder::finish() {
  std::map<std::string, Bytes>& table = program_.target.workspace;
  const WorkspaceOf known = [&](const Graph& graph, const GraphNode& node) {
    if (!workspace_of_ && table.empty()) return Bytes(0);
    const std::string key = workspace_key(graph, node);
    const auto found = table.find(key);
    if (found != table.end()) return found->second;
    const Bytes bytes = workspace_of_ ? workspace_of_(graph, node) : Bytes(0);
    if (bytes.count() > 0) table.emplace(key, bytes);
    return bytes;
  };
  for (Function& function : program_.functions) plan_scratch(function, program_.target.alignment, known);
  plan_arena(program_);
  verify(program_);
  return std::move(program_);
}

}  // namespace systole
