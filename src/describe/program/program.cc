#include "describe/program/program.h"

#include <algorithm>

#include "describe/ir/text.h"
#include "describe/ir/work.h"
#include "ground/base/hash.h"

namespace systole {

const char* name_of(Residence residence) {
  static constexpr const char* kNames[kNumResidences] = {"parameters", "state",       "gradients", "partial sums",
                                                         "residuals",  "inputs",      "outputs",   "staging",
                                                         "cache",      "activations", "workspace"};
  return kNames[static_cast<std::size_t>(residence)];
}

const char* name_of(Stream stream) {
  switch (stream) {
    case Stream::compute: return "compute";
    case Stream::network: return "network";
    case Stream::host: return "host";
  }
  return "?";
}

bool apart(const Port& a, const Port& b) {
  return a.value == b.value && !a.by_microbatch && !b.by_microbatch && a.by_slot == b.by_slot && a.slot != b.slot;
}

std::int64_t LogicalShards::first_row(int microbatch, int of_a_shard) const {
  const int own = microbatch - idle * of_a_shard;
  return own < 0 ? -1 : (std::int64_t{first} * of_a_shard + own) * rows;
}

int slot_of(const Program& program, const Port& port, const Action& action) {
  const int slots = program.values[static_cast<std::size_t>(port.value)].slots;
  if (port.by_microbatch) return action.microbatch % slots;
  const int slot = port.slot + (port.by_slot ? action.slot : 0);
  return slot >= 0 && slot < slots ? slot : -1;
}

std::optional<int> Program::find_value(std::string_view wanted) const {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].name == wanted) return static_cast<int>(i);
  }
  return std::nullopt;
}

int Program::value_named(std::string_view wanted) const {
  const std::optional<int> found = find_value(wanted);
  if (!found) fail(error(ErrorKind::not_found, "program '{}' has no value '{}'", name, wanted));
  return *found;
}

const Function& Program::function_named(std::string_view wanted) const {
  for (const Function& function : functions) {
    if (function.name == wanted) return function;
  }
  fail(error(ErrorKind::not_found, "program '{}' has no function '{}'", name, wanted));
}

const Schedule* Program::find_schedule(std::string_view wanted) const {
  for (const Schedule& schedule : schedules) {
    if (schedule.name == wanted) return &schedule;
  }
  return nullptr;
}

const Schedule& Program::schedule_named(std::string_view wanted) const {
  const Schedule* found = find_schedule(wanted);
  if (found == nullptr) fail(error(ErrorKind::not_found, "program '{}' has no schedule '{}'", name, wanted));
  return *found;
}

Work work_of(const Program& program, const Schedule& schedule) {
  Work work;
  for (const Action& action : schedule.actions)
    work += program.functions[static_cast<std::size_t>(action.function)].work;
  return work;
}

std::string workspace_key(const Graph& graph, const GraphNode& node) {
  std::string key = node.op->name;
  for (const ValueId id : node.operands)
    key += " " + std::string(name_of(graph.type(id).dtype)) + to_string(graph.type(id).shape);
  key += " " + to_string(node.attrs);
  for (const Graph& region : node.regions) key += to_text(region);
  return key;
}

Target target_of_accelerators() {
  Target target;
  target.name = "accelerator";
  target.kind = "null";
  target.dtypes = {DType::f32, DType::bf16};
  target.fusion.chains = true;
  return target;
}

std::string to_text(const Target& target) {
  return fmt::format("target \"{}\" kind {} alignment {} threads {} chains {} {} {}{}\n", target.name, target.kind,
                     target.alignment, target.threads, target.fusion.chains, target.fusion.max_operands,
                     target.fusion.max_steps, target.whole_steps ? " whole steps" : "");
}

namespace {

std::string port_text(const Program& program, const Port& port) {
  const std::string& name = program.values[static_cast<std::size_t>(port.value)].name;
  if (port.by_microbatch) return name + "[mb]";
  if (!port.by_slot) return port.slot == 0 ? name : fmt::format("{}[{}]", name, port.slot);
  return port.slot == 0 ? name + "[slot]" : fmt::format("{}[slot+{}]", name, port.slot);
}

void indent_into(std::string& out, const std::string& text, const char* indent) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = text.find('\n', at);
    out += indent + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
}

std::string function_text(const Program& program, const Function& f) {
  std::string text = fmt::format("  function {}  flops {}  transcendentals {}  moves {} B  scratch {} B at {}\n",
                                 f.name, with_commas(f.work.flops), with_commas(f.work.transcendentals),
                                 with_commas((f.work.read + f.work.written).count()), with_commas(f.scratch.count()),
                                 f.scratch_offset);
  for (std::size_t i = 0; i < f.inputs.size(); ++i) {
    text += fmt::format("    takes {}{}\n", port_text(program, f.inputs[i]), f.donated[i] ? " donated" : "");
  }
  for (std::size_t i = 0; i < f.outputs.size(); ++i) {
    text += fmt::format("    gives {}", port_text(program, f.outputs[i]));
    for (const Alias& alias : f.aliases) {
      if (alias.output == static_cast<int>(i)) text += fmt::format(" in place of input {}", alias.input);
    }
    text += "\n";
  }
  indent_into(text, to_text(f.graph), "    ");
  return text;
}

std::string schedule_text(const Program& program, const Schedule& schedule) {
  std::string text = fmt::format("  schedule {}\n", schedule.name);
  for (std::size_t a = 0; a < schedule.actions.size(); ++a) {
    const Action& action = schedule.actions[a];
    text +=
        fmt::format("    {:<4} {} {} chunk {} mb {}", a, name_of(action.stream),
                    program.functions[static_cast<std::size_t>(action.function)].name, action.chunk, action.microbatch);
    if (action.slot != 0) text += fmt::format(" slot {}", action.slot);
    for (std::size_t w = 0; w < action.waits.size(); ++w)
      text += fmt::format("{}{}", w == 0 ? " waits " : ", ", action.waits[w]);
    text += "\n";
  }
  return text;
}

// to_text without the name.
std::string body_text(const Program& program) {
  std::string text = fmt::format("  {}  mesh {}\n", to_text(program.target), to_string(program.mesh));
  if (const std::optional<LogicalShards>& s = program.shards) {
    text += fmt::format("  shards {} own {} from {} idle {} microbatches {} of {} rows\n", s->shards, s->owned,
                        s->first, s->idle, s->microbatches, s->rows);
  }
  for (const ProgramValue& value : program.values) {
    text += fmt::format("  value {} : {} {} slots {} at {}", value.name, to_string(value.type),
                        name_of(value.residence), value.slots, value.offset);
    if (value.cut)
      text += fmt::format(" of {} {}", to_string(value.cut->whole),
                          to_string(value.cut->layout, value.cut->whole.ndim(), program.mesh));
    text += "\n";
  }
  for (const Function& function : program.functions) text += function_text(program, function);
  for (const Schedule& schedule : program.schedules) text += schedule_text(program, schedule);
  return text + fmt::format("  arena {} B\n", with_commas(program.arena.count()));
}

void location_into(std::string& out, const Location& location) {
  fmt::format_to(std::back_inserter(out), "{}.{}.{} ", static_cast<int>(location.kind), location.index,
                 location.offset);
}

void placement_into(std::string& out, const Placement& placement) {
  for (const Location& location : placement.values) location_into(out, location);
  for (const Placement::Inner& inner : placement.nodes) {
    location_into(out, inner.workspace);
    fmt::format_to(std::back_inserter(out), "{} ", inner.workspace_bytes.count());
    for (const Location& location : inner.carry_twins) location_into(out, location);
    for (const Placement& region : inner.regions) placement_into(out, region);
  }
}

}  // namespace

std::string to_text(const Program& program) {
  return fmt::format("program \"{}\"\n{}", program.name, body_text(program));
}

std::string hash_of(const Program& program) {
  std::string text = body_text(program);
  for (const Function& function : program.functions) placement_into(text, function.placement);
  return to_hex(hash128(text));
}

}  // namespace systole
