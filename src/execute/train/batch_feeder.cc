#include "execute/train/batch_feeder.h"

#include <algorithm>
#include <cstring>

#include "describe/ops/zigzag.h"
#include "describe/partition/pipeline.h"
#include "describe/spec/families/parts.h"

namespace systole {
namespace {

// The first row of this rank's `microbatch` of `rows` in exact training; steps of other lengths have other rows in as
// many logical shards. -1: it has none.
std::int64_t row_in_shards(LogicalShards shards, int microbatch, int of_a_shard, std::int64_t rows) {
  shards.rows = rows;
  return shards.first_row(microbatch, of_a_shard);
}

}  // namespace

const BatchFeeder::Destination& BatchFeeder::destination_of(const InputRows& input) {
  for (const Destination& destination : destinations_) {
    if (destination.name == input.name) return destination;
  }
  const Program& program = executor_.program();
  const std::optional<int> found = program.find_value(prefix_ + std::string(input.name));
  if (!found && program.mesh.find(kPipelineAxis).ok()) {  // an input of another stage
    destinations_.push_back({input.name, -1, 0, 0, 0, 0, 0, false, false, {}});
    return destinations_.back();
  }
  const int v = found ? *found : program.value_named(prefix_ + std::string(input.name));  // lists the names
  const ProgramValue& value = program.values[static_cast<std::size_t>(v)];
  const Shape& whole = value.cut ? value.cut->whole.shape : value.type.shape;
  const std::int64_t first = value.cut ? box_of(whole, value.cut->layout, program.mesh, place_).offset[0] : 0;
  const int of_a_shard = !program.shards ? 0 : prefix_ == "evaluate/" ? 1 : program.shards->microbatches;
  destinations_.push_back({input.name, v, value.slots, value.type.bytes().count(), whole[0], first, of_a_shard,
                           input.name == "labels", value.type.dtype == DType::f64, runs_of(value)});
  return destinations_.back();
}

// Zigzag order: two chunks, one from each end of the row (describe/ops/zigzag.h).
std::vector<BatchFeeder::Destination::Run> BatchFeeder::runs_of(const ProgramValue& value) const {
  const auto context = executor_.program().mesh.find(kContextAxis);
  if (!context.ok() || value.cut->layout.at[*context] != 1) return {};
  const Shape& whole = value.cut->whole.shape;
  const std::int64_t parts = executor_.program().mesh.axes()[*context].size, chunk = whole[1] / (2 * parts);
  const std::int64_t token = value.type.bytes().count() / (value.type.size(0) * value.type.size(1));
  std::vector<Destination::Run> runs;
  for (std::int64_t c = 0; c < 2; ++c) {
    const std::int64_t index = (2 * place_[*context] + c) * chunk;
    runs.push_back({zigzag_place(index, whole[1], parts) * token, chunk * token});
  }
  return runs;
}

void BatchFeeder::fill(const Destination& destination, const InputRows& input, std::int64_t row, std::int64_t rows,
                       std::span<std::byte> slot) {
  std::memset(slot.data(), destination.is_labels ? 0xff : 0, slot.size());
  if (row < 0) return;
  if (destination.runs.empty()) {
    const std::int64_t first = row * input.row_bytes;
    const std::int64_t there =
        std::clamp<std::int64_t>(rows * input.row_bytes - first, 0, static_cast<std::int64_t>(slot.size()));
    if (there > 0) std::memcpy(slot.data(), input.bytes.data() + first, static_cast<std::size_t>(there));
    return;
  }
  std::size_t at = 0;
  for (; row < rows && at < slot.size(); ++row) {
    for (const Destination::Run& run : destination.runs) {
      std::memcpy(slot.data() + at, input.bytes.data() + row * input.row_bytes + run.from,
                  static_cast<std::size_t>(run.bytes));
      at += static_cast<std::size_t>(run.bytes);
    }
  }
}

// Checks that the batch has all row inputs of the Program.
Status BatchFeeder::check_names(const StepBatch& batch) const {
  for (const ProgramValue& value : executor_.program().values) {
    if (value.residence != Residence::input || value.type.ndim() == 0 || !value.name.starts_with(prefix_)) continue;
    const std::string_view name = std::string_view(value.name).substr(prefix_.size());
    if (name.find('/') != std::string_view::npos) continue;  // belongs to another feed
    if (name == kFilled) continue;
    const auto found = std::ranges::find(batch.inputs, name, &InputRows::name);
    if (found != batch.inputs.end()) continue;
    std::vector<std::string_view> there;
    for (const InputRows& input : batch.inputs) there.push_back(input.name);
    return error(ErrorKind::invalid, "the program '{}' takes '{}', and a batch has {}", executor_.program().name, name,
                 fmt::join(there, ", "));
  }
  return {};
}

template <typename Fill>
Status BatchFeeder::write_slots(const Destination& destination, const Fill& fill_slot) {
  for (int slot = 0; slot < destination.slots; ++slot) {
    const std::int64_t row = destination.of_a_shard > 0 ? row_in_shards(*executor_.program().shards, slot,
                                                                        destination.of_a_shard, destination.slot_rows)
                                                        : slot * destination.slot_rows + destination.first_row;
    const std::span<std::byte> view = executor_.view(destination.value, slot);
    if (!view.empty()) {
      fill_slot(row, view);
      continue;
    }
    std::vector<std::byte> whole(static_cast<std::size_t>(destination.slot_bytes));
    fill_slot(row, std::span(whole));
    TRY(executor_.write(destination.value, slot, whole));
  }
  return {};
}

Status BatchFeeder::put(const StepBatch& batch, std::int64_t vocabulary) {
  if (!names_checked_) TRY(check_names(batch));
  names_checked_ = true;
  for (const InputRows& input : batch.inputs) {
    if (vocabulary > 0 && (input.name == "tokens" || input.name == "labels" || input.name == "target_tokens")) {
      const auto* ids = reinterpret_cast<const std::int32_t*>(input.bytes.data());
      const std::int32_t* end = ids + input.bytes.size() / 4;
      const std::int32_t* bad = std::find_if(ids, end, [&](std::int32_t id) { return id >= vocabulary; });
      if (bad != end) {
        return error(ErrorKind::invalid, "the data holds token {}, the model's vocabulary has {}", *bad, vocabulary)
            .hinted("model.vocabulary must be at least the tokenizer's");
      }
    }
    const Destination& destination = destination_of(input);
    const InputRows rows = destination.is_wide ? widened(input) : input;
    TRY(write_slots(destination, [&](std::int64_t row, std::span<std::byte> slot) {
      fill(destination, rows, row, batch.rows, slot);
    }));
  }
  return put_filled(batch.rows);
}

InputRows BatchFeeder::widened(const InputRows& input) {
  const auto* numbers = reinterpret_cast<const float*>(input.bytes.data());
  wide_.assign(numbers, numbers + input.bytes.size() / sizeof(float));
  return {input.name, std::as_bytes(std::span(wide_)), input.row_bytes * 2};
}

Status BatchFeeder::put_filled(std::int64_t rows) {
  const Program& program = executor_.program();
  const std::optional<int> value = program.find_value(prefix_ + kFilled);
  if (!value) return {};  // not an input of the Program: no row can be empty, or labels tell
  const DType dtype = program.values[static_cast<std::size_t>(*value)].type.dtype;
  return write_slots(destination_of({kFilled, {}, 0}), [&](std::int64_t row, std::span<std::byte> slot) {
    const std::int64_t count = static_cast<std::int64_t>(slot.size()) / size_of(dtype);
    for (std::int64_t i = 0; i < count; ++i) store(dtype, slot.data(), i, row >= 0 && row + i < rows ? 1 : 0);
  });
}

Status BatchFeeder::put_scalar(std::string_view name, double number, int slot) {
  const Program& program = executor_.program();
  for (std::size_t v = 0; v < program.values.size(); ++v) {
    const ProgramValue& value = program.values[v];
    if (value.name.size() != prefix_.size() + name.size() || !value.name.starts_with(prefix_) ||
        !value.name.ends_with(name))
      continue;
    std::byte bytes[8];
    store(value.type.dtype, bytes, 0, number);
    return executor_.write(static_cast<int>(v), slot, {bytes, static_cast<std::size_t>(size_of(value.type.dtype))});
  }
  return {};  // not an input of the Program: a model without dropout needs no seed
}

Status BatchFeeder::put_rows(std::int64_t rows) {
  const Program& program = executor_.program();
  const std::optional<int> value = program.find_value(prefix_ + "row");
  if (!value) return {};  // not an input of the Program: no random bits
  for (int mb = 0; mb < program.values[static_cast<std::size_t>(*value)].slots; ++mb) {
    std::int64_t row = mb * rows;
    if (const auto& shards = program.shards)
      row = std::max<std::int64_t>(0, row_in_shards(*shards, mb, shards->microbatches, rows));
    TRY(executor_.write(*value, mb, std::as_bytes(std::span(&row, 1))));
  }
  return {};
}

Status BatchFeeder::put_coordinates() {
  const Mesh& mesh = executor_.program().mesh;
  for (std::size_t a = 0; a < place_.size(); ++a) {
    const std::optional<int> value = executor_.program().find_value("coordinate/" + mesh.axes()[a].name);
    if (!value) continue;
    TRY(executor_.write(*value, 0, std::as_bytes(std::span(&place_[a], 1))));
  }
  return {};
}

}  // namespace systole
