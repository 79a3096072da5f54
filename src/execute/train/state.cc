#include "execute/train/state.h"

#include <string_view>

#include "execute/checkpoint/parallel.h"
#include "execute/checkpoint/restore_parts.h"

namespace systole {
namespace {

constexpr std::string_view kLayer = "{layer}";

bool is_stacked(const std::string& name) { return name.find(kLayer) != name.npos; }

// Type of one of the value's tensors.
Type tensor_type(const ProgramValue& value) { return is_stacked(value.name) ? slice_type(value.type) : value.type; }

bool is_frozen(const ProgramValue& value) { return value.parameter && !value.parameter->trainable; }

bool is_kept(Residence r) { return r == Residence::parameter || r == Residence::state; }

// Where the tensors of a value go that fills `into`.
void add_targets(const ProgramValue& value, std::span<std::byte> into,
                 std::vector<checkpoint::RestoreTarget>& targets) {
  const Type type = tensor_type(value);
  const auto size = static_cast<std::size_t>(type.bytes().count());
  std::size_t at = 0;
  for (std::string& name : tensor_names(value)) {
    targets.push_back(
        {std::move(name), type.dtype, type.shape, checkpoint::Box::whole(type.shape), into.subspan(at, size)});
    at += size;
  }
}

Status load(Executor& executor, const checkpoint::Checkpoint& from, bool with_state) {
  const std::vector<ProgramValue>& values = executor.program().values;
  std::vector<checkpoint::RestoreTarget> targets;  // all that the host sees of the arena, in one go
  std::vector<int> unseen;
  for (int v = 0; v < static_cast<int>(values.size()); ++v) {
    const ProgramValue& value = values[static_cast<std::size_t>(v)];
    if (!is_kept(value.residence) || (value.residence == Residence::state && !with_state)) continue;
    const std::span<std::byte> into = executor.view(v, 0);
    if (into.empty())
      unseen.push_back(v);
    else
      add_targets(value, into, targets);
  }
  TRY(checkpoint::restore_parts(from, targets, checkpoint::io_threads()));
  std::vector<std::byte> buffer;
  for (const int v : unseen) {
    const ProgramValue& value = values[static_cast<std::size_t>(v)];
    buffer.resize(static_cast<std::size_t>(value.type.bytes().count()));
    targets.clear();
    add_targets(value, buffer, targets);
    TRY(checkpoint::restore_parts(from, targets, checkpoint::io_threads()));
    TRY(executor.write(v, 0, buffer));
  }
  return {};
}

}  // namespace

std::vector<std::string> tensor_names(const ProgramValue& value) {
  const std::size_t at = value.name.find(kLayer);
  if (at == value.name.npos) return {value.name};
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < value.type.size(0); ++i) {
    std::string name = value.name;
    names.push_back(name.replace(at, kLayer.size(), std::to_string(i)));
  }
  return names;
}

std::vector<checkpoint::TensorPart> state_to_save(Executor& executor) {
  std::vector<checkpoint::TensorPart> parts;
  const Program& program = executor.program();
  for (int v = 0; v < static_cast<int>(program.values.size()); ++v) {
    const ProgramValue& value = program.values[static_cast<std::size_t>(v)];
    if (!is_kept(value.residence)) continue;
    const std::optional<int> staged = program.find_value("snapshot/" + value.name);
    const std::span<const std::byte> bytes = executor.view(staged.value_or(v), 0);
    CHECK(bytes.size() == static_cast<std::size_t>(value.type.bytes().count()), "'{}' cannot be seen by the host",
          value.name);
    const Type type = tensor_type(value);
    const auto size = static_cast<std::size_t>(type.bytes().count());
    std::size_t at = 0;
    for (std::string& name : tensor_names(value)) {
      const auto role = value.residence == Residence::parameter ? checkpoint::Role::parameter : checkpoint::Role::state;
      parts.push_back({std::move(name), role, type.dtype, type.shape, checkpoint::Box::whole(type.shape),
                       bytes.subspan(at, size), is_frozen(value) ? 1 : 0});
      at += size;
    }
  }
  return parts;
}

Status load_state(Executor& executor, const checkpoint::Checkpoint& from) { return load(executor, from, true); }
Status load_parameters(Executor& executor, const checkpoint::Checkpoint& from) { return load(executor, from, false); }

}  // namespace systole
