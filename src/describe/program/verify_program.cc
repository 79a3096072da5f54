// The verifier of Programs: functions, their ports, aliases and donations. Its other parts: verify_parts.h.

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "describe/ir/rewrite.h"
#include "describe/ir/verify.h"
#include "describe/program/memory.h"
#include "describe/program/program.h"
#include "describe/program/verify_parts.h"

namespace systole {
namespace {

bool reads(const Graph& graph, const GraphNode& node, ValueId storage) {
  return std::any_of(node.operands.begin(), node.operands.end(),
                     [&](ValueId id) { return storage_of(graph, id) == storage; });
}

// May output `output` be written over input `input`? Empty: yes; otherwise the reason. No node may read the input after
// the write; a writer that reads it must work in place. A repeat's stacked output may take the place of a stacked
// operand if, in the body, the output may take the place of the slice.
std::string check_overwrite(const Graph& graph, int output, int input, const std::string& where) {
  const ValueId storage = graph.inputs()[static_cast<std::size_t>(input)].value;
  const ValueId written = storage_of(graph, graph.outputs()[static_cast<std::size_t>(output)].value);
  if (!graph.producer(written).valid()) return fmt::format("{}: output {} is not written by a node", where, output);
  const int writer = graph.producer(written).index;
  for (int n = writer + 1; n < static_cast<int>(graph.nodes().size()); ++n) {
    const GraphNode& node = graph.nodes()[static_cast<std::size_t>(n)];
    if (!node.op->view && reads(graph, node, storage)) {
      return fmt::format("{}: node {} '{}' reads input '{}' after node {} has written output '{}' in its place", where,
                         n, node.op->name, graph.inputs()[static_cast<std::size_t>(input)].name, writer,
                         graph.outputs()[static_cast<std::size_t>(output)].name);
    }
  }
  const GraphNode& node = graph.nodes()[static_cast<std::size_t>(writer)];
  if (!reads(graph, node, storage)) return "";
  const int r = graph.result_index(written);
  if (is(node, "repeat")) {
    const int carries = static_cast<int>(node.attrs.get_int("carries")),
              stacked = static_cast<int>(node.attrs.get_int("stacked"));
    for (int o = 0; o < static_cast<int>(node.operands.size()); ++o) {
      if (storage_of(graph, node.operands[static_cast<std::size_t>(o)]) != storage) continue;
      if (r < carries || o < carries || o >= carries + stacked) {
        return fmt::format("{}: the repeat reads input '{}' in other iterations than it writes output '{}'", where,
                           graph.inputs()[static_cast<std::size_t>(input)].name,
                           graph.outputs()[static_cast<std::size_t>(output)].name);
      }
      if (std::string inner = check_overwrite(node.regions[0], r, o, where + " body"); !inner.empty()) return inner;
    }
    return "";
  }
  const std::vector<int> allowed = in_place_operands(graph, node, r);
  for (int o = 0; o < static_cast<int>(node.operands.size()); ++o) {
    const bool same = storage_of(graph, node.operands[static_cast<std::size_t>(o)]) == storage;
    if (same && std::find(allowed.begin(), allowed.end(), o) == allowed.end()) {
      return fmt::format("{}: '{}' cannot write output '{}' over operand {}, which it is reading", where, node.op->name,
                         graph.outputs()[static_cast<std::size_t>(output)].name, o);
    }
  }
  return "";
}

const ProgramValue& value_of(const Program& program, const Port& port) {
  return program.values[static_cast<std::size_t>(port.value)];
}

void check_ports(const Program& program, const Function& f, const std::vector<Port>& ports, bool outputs) {
  const std::size_t wanted = outputs ? f.graph.outputs().size() : f.graph.inputs().size();
  if (ports.size() != wanted) refuse("function {}: {} ports for {} values", f.name, ports.size(), wanted);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const ValueId id = outputs ? f.graph.outputs()[i].value : f.graph.inputs()[i].value;
    if (ports[i].value < 0 || ports[i].value >= static_cast<int>(program.values.size()))
      refuse("function {}: port {} is bound to nothing", f.name, i);
    const ProgramValue& value = value_of(program, ports[i]);
    if (!(value.type == f.graph.type(id))) {
      refuse("function {}: {} is {}, the function has {}", f.name, value.name, to_string(value.type),
             to_string(f.graph.type(id)));
    }
  }
}

bool declared(const Function& f, int output, int input) {
  return std::any_of(f.aliases.begin(), f.aliases.end(),
                     [&](const Alias& a) { return a.output == output && a.input == input; });
}

// The two ports of an alias name the same slot of the same value; otherwise the output lies elsewhere.
void check_aliases(const Program& program, const Function& f) {
  for (const Alias& alias : f.aliases) {
    if (alias.output < 0 || alias.output >= static_cast<int>(f.outputs.size()) || alias.input < 0 ||
        alias.input >= static_cast<int>(f.inputs.size()))
      refuse("function {}: an alias of output {} and input {}, which it does not have", f.name, alias.output,
             alias.input);
    const Port &out = f.outputs[static_cast<std::size_t>(alias.output)],
               &in = f.inputs[static_cast<std::size_t>(alias.input)];
    if (!(out == in)) {
      refuse("function {}: output {} ('{}'{}) is said to take the place of input {} ('{}'{}), which lies elsewhere",
             f.name, alias.output, value_of(program, out).name, out.by_microbatch ? "[mb]" : "", alias.input,
             value_of(program, in).name, in.by_microbatch ? "[mb]" : "");
    }
    if (f.donated[static_cast<std::size_t>(alias.input)])
      refuse("function {}: input '{}' is donated and an output takes its place; one of the two", f.name,
             value_of(program, in).name);
    if (const std::string problem = check_overwrite(f.graph, alias.output, alias.input, "function " + f.name);
        !problem.empty())
      refuse("{}", problem);
  }
}

// Ports of the same slot: at most one writes it; then every reader is its alias. A donated slot has no other port.
void check_shared_values(const Program& program, const Function& f) {
  std::map<int, std::vector<const Port*>> given;  // per value
  for (int o = 0; o < static_cast<int>(f.outputs.size()); ++o) {
    const Port& out = f.outputs[static_cast<std::size_t>(o)];
    for (const Port* other : given[out.value]) {
      if (!apart(*other, out)) refuse("function {}: two outputs are '{}'", f.name, value_of(program, out).name);
    }
    given[out.value].push_back(&out);
    for (int i = 0; i < static_cast<int>(f.inputs.size()); ++i) {
      const Port& in = f.inputs[static_cast<std::size_t>(i)];
      if (in.value == out.value && !apart(in, out) && !declared(f, o, i))
        refuse("function {}: output {} takes the place of input {} without an alias", f.name, o, i);
    }
  }
  for (std::size_t i = 0; i < f.inputs.size(); ++i) {
    for (std::size_t j = 0; j < f.inputs.size(); ++j) {
      if (i != j && f.donated[i] && f.inputs[i].value == f.inputs[j].value && !apart(f.inputs[i], f.inputs[j]))
        refuse("function {}: '{}' is donated and taken a second time", f.name, value_of(program, f.inputs[i]).name);
    }
  }
}

template <typename Named>
void check_names(const char* kind, const std::vector<Named>& list) {
  std::set<std::string_view> names;
  for (const Named& entry : list) {
    if (!names.insert(entry.name).second) refuse("two {} are called '{}'", kind, entry.name);
  }
}

}  // namespace

void verify_function(const Program& program, const Function& f) {
  verify(f.graph);
  if (f.donated.size() != f.inputs.size())
    refuse("function {}: {} marks of donation for {} inputs", f.name, f.donated.size(), f.inputs.size());
  check_ports(program, f, f.inputs, false);
  check_ports(program, f, f.outputs, true);
  check_aliases(program, f);
  check_shared_values(program, f);
}

void verify(const Program& program) {
  check_names("values", program.values);
  check_names("functions", program.functions);
  check_names("schedules", program.schedules);
  for (const ProgramValue& value : program.values) {
    if (value.slots < 1) refuse("'{}' has {} slots", value.name, value.slots);
  }
  for (const Function& function : program.functions) {
    verify_function(program, function);
    verify_scratch(program, function);
  }
  for (const Schedule& schedule : program.schedules) verify_schedule(program, schedule);
  verify_arena(program);
}

}  // namespace systole
