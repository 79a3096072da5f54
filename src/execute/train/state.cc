#include "execute/train/state.h"

#include <algorithm>

#include "describe/ir/layer_names.h"
#include "describe/ir/served_adapters.h"
#include "describe/partition/pipeline.h"
#include "execute/checkpoint/ownership.h"
#include "execute/checkpoint/restore_parts.h"
#include "ground/base/parallel.h"

namespace systole {
namespace {

bool is_stacked(const std::string& name) { return layer_name(name).has_value(); }

// The type of one tensor of a value.
Type tensor_type(const std::string& name, const Type& type) { return is_stacked(name) ? slice_type(type) : type; }

bool is_frozen(const ProgramValue& value) { return value.parameter && !value.parameter->trainable; }

bool is_kept(Residence r) { return r == Residence::parameter || r == Residence::state; }

// A tensor of a value, and its layout on the mesh.
struct StateTensor {
  checkpoint::LaidTensor laid;
  std::span<std::byte> bytes;  // this device's part, padding included; empty if the host cannot access it
  int value = -1;
  std::size_t at = 0;  // offset in the value's bytes
};

std::vector<StateTensor> state_tensors(Executor& executor, bool staged, HostState* held = nullptr) {
  std::vector<StateTensor> tensors;
  const Program& program = executor.program();
  for (int v = 0; v < static_cast<int>(program.values.size()); ++v) {
    const ProgramValue& value = program.values[static_cast<std::size_t>(v)];
    if (!is_kept(value.residence) || is_served_adapter(value.name)) continue;
    const std::optional<int> copy = staged ? program.find_value("snapshot/" + value.name) : std::nullopt;
    const bool on_host = held != nullptr && held->is_needed();
    const std::span<std::byte> bytes = on_host ? held->of(v) : executor.view(copy.value_or(v), 0);
    const Type local = tensor_type(value.name, value.type);
    const Type whole = value.cut ? tensor_type(value.name, value.cut->whole) : local;
    const Layout layout = !value.cut               ? Layout::whole(program.mesh)
                          : is_stacked(value.name) ? slice_layout(value.cut->layout)
                                                   : value.cut->layout;
    const auto role = value.residence == Residence::parameter ? checkpoint::Role::parameter : checkpoint::Role::state;
    const auto size = static_cast<std::size_t>(local.bytes().count());
    std::size_t at = 0;
    for (std::string& name : tensor_names(value)) {
      tensors.push_back({{std::move(name), role, whole.dtype, whole.shape,
                          sharding_of(layout, whole.ndim(), program.mesh), is_frozen(value) ? 1 : 0},
                         bytes.empty() ? bytes : bytes.subspan(at, size),
                         v,
                         at});
      at += size;
    }
  }
  return tensors;
}

Status load(Executor& executor, const checkpoint::Checkpoint& from, bool with_state, std::int64_t device) {
  const Program& program = executor.program();
  std::vector<checkpoint::RestoreDestination> targets;  // all that the host can access, in one call
  const std::vector<StateTensor> tensors = state_tensors(executor, false);
  const auto add_target = [&](const StateTensor& tensor, std::span<std::byte> into) -> Status {
    const checkpoint::LaidTensor& laid = tensor.laid;
    const checkpoint::Box box = TRY(checkpoint::box_on(laid.shape, laid.sharding, program.mesh, device));
    const checkpoint::Box held = TRY(checkpoint::padded_box_on(laid.shape, laid.sharding, program.mesh, device));
    if (!(box == held)) std::fill(into.begin(), into.end(), std::byte{});
    targets.push_back({laid.name, laid.dtype, laid.shape, box, into, held});
    return {};
  };
  const auto wanted = [&](const StateTensor& tensor) {
    return with_state || program.values[static_cast<std::size_t>(tensor.value)].residence == Residence::parameter;
  };
  for (const StateTensor& tensor : tensors) {
    if (wanted(tensor) && !tensor.bytes.empty()) TRY(add_target(tensor, tensor.bytes));
  }
  TRY(checkpoint::restore_parts(from, targets, io_threads()));
  std::vector<std::byte> buffer;  // for a value that the host cannot access
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const StateTensor& tensor = tensors[i];
    if (!wanted(tensor) || !tensor.bytes.empty()) continue;
    const ProgramValue& value = program.values[static_cast<std::size_t>(tensor.value)];
    if (tensor.at == 0) {
      buffer.assign(static_cast<std::size_t>(value.type.bytes().count()), std::byte{});
      targets.clear();
    }
    const bool last = i + 1 == tensors.size() || tensors[i + 1].value != tensor.value;
    const std::size_t end = last ? buffer.size() : tensors[i + 1].at;
    TRY(add_target(tensor, std::span(buffer).subspan(tensor.at, end - tensor.at)));
    if (!last) continue;
    TRY(checkpoint::restore_parts(from, targets, io_threads()));
    TRY(executor.write(tensor.value, 0, buffer));
  }
  return {};
}

struct StageOfMesh {
  int stage;
  Mesh mesh;  // of the stage's devices
  std::int64_t device;
};

StageOfMesh stage_of(const Mesh& mesh, std::int64_t device) {
  const auto pipe = mesh.find(kPipelineAxis);
  if (!pipe.ok()) return {0, mesh, device};
  std::vector<Axis> axes = mesh.axes();
  Coordinates at = mesh.coordinates(device);
  const int stage = static_cast<int>(at[*pipe]);
  axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(*pipe));
  at.erase(at.begin() + static_cast<std::ptrdiff_t>(*pipe));
  Mesh own = Mesh::make(std::move(axes)).value();
  const std::int64_t of_stage = own.device_at(at);
  return {stage, std::move(own), of_stage};
}

}  // namespace

std::vector<std::string> tensor_names(const ProgramValue& value) {
  const std::optional<LayerName> layers = layer_name(value.name);
  if (!layers) return {value.name};
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < value.type.size(0); ++i) names.push_back(layers->of(i));
  return names;
}

std::vector<checkpoint::TensorPart> state_to_save(Executor& executor, std::int64_t device, HostState* copy) {
  const Mesh& mesh = executor.program().mesh;
  const std::vector<StateTensor> tensors = state_tensors(executor, true, copy);
  std::vector<checkpoint::LaidTensor> laid;
  for (const StateTensor& tensor : tensors) laid.push_back(tensor.laid);
  // A pipeline stage distributes its tensors among its own devices. A tied tensor is saved by the first stage that has
  // it.
  const auto [stage, stage_mesh, of_stage] = stage_of(mesh, device);
  std::vector<checkpoint::OwnedBox> owned =
      checkpoint::assign_owners(laid, stage_mesh).value()[static_cast<std::size_t>(of_stage)];
  std::erase_if(owned, [&, own = stage](const checkpoint::OwnedBox& box) {
    const ProgramValue& value = executor.program().values[static_cast<std::size_t>(tensors[box.tensor].value)];
    return own != (value.parameter ? value.parameter->stage : 0);
  });
  std::vector<checkpoint::TensorPart> parts = checkpoint::parts_to_save(laid, stage_mesh, of_stage, owned);
  auto of = tensors.begin();  // parts are in the order of the tensors
  for (checkpoint::TensorPart& part : parts) {
    while (of->laid.name != part.name) ++of;
    CHECK(!of->bytes.empty(), "'{}' cannot be seen by the host", part.name);
    if (part.box.num_elements() > 0) part.bytes = of->bytes;
  }
  return parts;
}

Status load_state(Executor& executor, const checkpoint::Checkpoint& from, std::int64_t device) {
  return load(executor, from, true, device);
}
Status load_parameters(Executor& executor, const checkpoint::Checkpoint& from, std::int64_t device) {
  return load(executor, from, false, device);
}

}  // namespace systole
