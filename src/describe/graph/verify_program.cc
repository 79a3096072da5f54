// The verifier of Programs: aliases, order of readers and writers, and the arena.

#include <algorithm>
#include <set>

#include "describe/graph/arena.h"
#include "describe/graph/memory.h"
#include "describe/graph/passes/rewrite.h"
#include "describe/graph/program.h"
#include "describe/graph/verify.h"

namespace systole {
namespace {

[[noreturn]] void refuse(const std::string& message) { fail(Error{ErrorKind::invalid, message, {}, {}, {}}); }

bool reads(const Graph& graph, const GraphNode& node, ValueId storage) {
  return std::any_of(node.operands.begin(), node.operands.end(),
                     [&](ValueId id) { return storage_of(graph, id) == storage; });
}

// May the result `r` of `node` be written over operand storage `input`, which the node may be reading? Inside a repeat,
// a stacked output may take the place of the stacked operand when, in the body, the output may take the slice's.
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

void check_ports(const Program& program, const Function& f, const std::vector<Port>& ports, bool outputs) {
  const std::size_t wanted = outputs ? f.graph.outputs().size() : f.graph.inputs().size();
  if (ports.size() != wanted) refuse(fmt::format("function {}: {} ports for {} values", f.name, ports.size(), wanted));
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const ValueId id = outputs ? f.graph.outputs()[i].value : f.graph.inputs()[i].value;
    if (ports[i].value < 0 || ports[i].value >= static_cast<int>(program.values.size()))
      refuse(fmt::format("function {}: port {} is bound to nothing", f.name, i));
    const ProgramValue& value = program.values[static_cast<std::size_t>(ports[i].value)];
    if (!(value.type == f.graph.type(id))) {
      refuse(fmt::format("function {}: {} is {}, the function has {}", f.name, value.name, to_string(value.type),
                         to_string(f.graph.type(id))));
    }
  }
}

void check_function(const Program& program, const Function& f) {
  verify(f.graph);
  check_ports(program, f, f.inputs, false);
  check_ports(program, f, f.outputs, true);
  for (const Alias& alias : f.aliases) {
    if (std::string problem = check_overwrite(f.graph, alias.output, alias.input, "function " + f.name);
        !problem.empty())
      refuse(problem);
  }
  // A value that is both taken and given shares its place, so it must be a declared alias.
  for (int o = 0; o < static_cast<int>(f.outputs.size()); ++o) {
    for (int i = 0; i < static_cast<int>(f.inputs.size()); ++i) {
      if (f.outputs[static_cast<std::size_t>(o)].value != f.inputs[static_cast<std::size_t>(i)].value) continue;
      const auto declared = [&](const Alias& a) { return a.output == o && a.input == i; };
      if (std::none_of(f.aliases.begin(), f.aliases.end(), declared)) {
        refuse(fmt::format("function {}: output {} takes the place of input {} without an alias", f.name, o, i));
      }
    }
  }
}

struct Access {
  int value, slot;
  bool write;
};

class ScheduleChecker {
 public:
  ScheduleChecker(const Program& program, const Schedule& schedule) : program_(program), schedule_(schedule) {}

  void run() {
    find_order();
    check_conflicts();
    check_defined();
  }

 private:
  const Function& function(int a) const {
    return program_.functions[static_cast<std::size_t>(schedule_.actions[static_cast<std::size_t>(a)].function)];
  }
  std::string label(int a) const {
    return fmt::format("schedule {}, action {} ({} mb {})", schedule_.name, a, function(a).name,
                       schedule_.actions[static_cast<std::size_t>(a)].microbatch);
  }

  // before_[a][b]: b has certainly ended when a begins.
  void find_order() {
    const int count = static_cast<int>(schedule_.actions.size());
    before_.assign(static_cast<std::size_t>(count), std::vector<bool>(static_cast<std::size_t>(count), false));
    for (int a = 0; a < count; ++a) {
      const Action& action = schedule_.actions[static_cast<std::size_t>(a)];
      const auto after = [&](int b) {
        if (b < 0 || b >= a) refuse(fmt::format("{}: waits for action {}, which does not come before it", label(a), b));
        before_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] = true;
        for (int c = 0; c < b; ++c) {
          if (before_[static_cast<std::size_t>(b)][static_cast<std::size_t>(c)])
            before_[static_cast<std::size_t>(a)][static_cast<std::size_t>(c)] = true;
        }
      };
      for (const int b : action.waits) after(b);
      for (int b = a - 1; b >= 0; --b) {
        if (schedule_.actions[static_cast<std::size_t>(b)].stream == action.stream) {
          after(b);
          break;
        }
      }
    }
  }

  std::vector<Access> accesses(int a) const {
    std::vector<Access> list;
    const Function& f = function(a);
    const int microbatch = schedule_.actions[static_cast<std::size_t>(a)].microbatch;
    const auto note = [&](const Port& port, bool write) {
      const int slots = program_.values[static_cast<std::size_t>(port.value)].slots;
      list.push_back({port.value, port.by_microbatch ? microbatch % slots : 0, write});
    };
    for (const Port& port : f.inputs) note(port, false);
    for (const Port& port : f.outputs) note(port, true);
    for (std::size_t i = 0; i < f.inputs.size(); ++i) {
      if (f.donated[i]) note(f.inputs[i], true);
    }
    return list;
  }

  void check_conflicts() const {
    const int count = static_cast<int>(schedule_.actions.size());
    for (int a = 0; a < count; ++a) {
      for (int b = 0; b < a; ++b) {
        if (before_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]) continue;
        for (const Access& x : accesses(a)) {
          for (const Access& y : accesses(b)) {
            if (x.value != y.value || x.slot != y.slot || (!x.write && !y.write)) continue;
            refuse(fmt::format("{} and {} use '{}' (one of them writes it) and neither waits for the other", label(b),
                               label(a), program_.values[static_cast<std::size_t>(x.value)].name));
          }
        }
      }
    }
  }

  // Gradients, residuals and outputs are written before they are read, and a donated value is not read again before it
  // is.
  void check_defined() const {
    std::set<std::pair<int, int>> defined;
    for (int a = 0; a < static_cast<int>(schedule_.actions.size()); ++a) {
      const Function& f = function(a);
      for (const Access& access : accesses(a)) {
        const ProgramValue& value = program_.values[static_cast<std::size_t>(access.value)];
        const bool within = value.residence == Residence::gradient || value.residence == Residence::residual ||
                            value.residence == Residence::output;
        if (!access.write && within && defined.count({access.value, access.slot}) == 0) {
          refuse(fmt::format("{} reads '{}' slot {}, which nothing has written", label(a), value.name, access.slot));
        }
      }
      for (std::size_t i = 0; i < f.inputs.size(); ++i) {
        if (f.donated[i]) defined.erase({f.inputs[i].value, slot_of(a, f.inputs[i])});
      }
      for (const Port& port : f.outputs) defined.insert({port.value, slot_of(a, port)});
    }
  }

  int slot_of(int a, const Port& port) const {
    const int slots = program_.values[static_cast<std::size_t>(port.value)].slots;
    return port.by_microbatch ? schedule_.actions[static_cast<std::size_t>(a)].microbatch % slots : 0;
  }

  const Program& program_;
  const Schedule& schedule_;
  std::vector<std::vector<bool>> before_;
};

void check_arena(const Program& program) {
  const ActionTimeline timeline(program);
  struct Named {
    std::string name;
    Block block;
  };
  std::vector<Named> blocks;
  for (int v = 0; v < static_cast<int>(program.values.size()); ++v) {
    const ProgramValue& value = program.values[static_cast<std::size_t>(v)];
    blocks.push_back({value.name, {Bytes(value.stride * value.slots), timeline.value_lives(v), value.offset}});
  }
  for (int f = 0; f < static_cast<int>(program.functions.size()); ++f) {
    const Function& function = program.functions[static_cast<std::size_t>(f)];
    blocks.push_back(
        {"scratch of " + function.name, {function.scratch, timeline.scratch_lives(f), function.scratch_offset}});
  }
  const auto meet = [](const Block& a, const Block& b) {
    for (const auto& [a_from, a_to] : a.lives) {
      for (const auto& [b_from, b_to] : b.lives) {
        if (a_from <= b_to && b_from <= a_to) return true;
      }
    }
    return false;
  };
  for (std::size_t a = 0; a < blocks.size(); ++a) {
    const Block& x = blocks[a].block;
    if (x.offset + x.size.count() > program.arena.count())
      refuse(fmt::format("'{}' ends after the arena", blocks[a].name));
    for (std::size_t b = 0; b < a; ++b) {
      const Block& y = blocks[b].block;
      const bool apart = x.offset + x.size.count() <= y.offset || y.offset + y.size.count() <= x.offset;
      if (!apart && meet(x, y))
        refuse(fmt::format("'{}' and '{}' overlap in the arena", blocks[a].name, blocks[b].name));
    }
  }
}

}  // namespace

void verify(const Program& program) {
  for (const Function& function : program.functions) check_function(program, function);
  for (const Schedule& schedule : program.schedules) ScheduleChecker(program, schedule).run();
  check_arena(program);
}

}  // namespace systole
