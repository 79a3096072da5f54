#include "execute/train/feed.h"

#include <algorithm>
#include <cstring>

#include "describe/graph/partition/pipeline.h"
#include "describe/graph/zigzag.h"

namespace systole {

const Feed::Target& Feed::target_of(const InputRows& input) {
  for (const Target& target : targets_) {
    if (target.name == input.name) return target;
  }
  const Program& program = executor_.program();
  const std::optional<int> found = program.find_value(prefix_ + std::string(input.name));
  if (!found && program.mesh.find(kPipelineAxis).ok()) {  // another stage's
    targets_.push_back({input.name, -1, 0, 0, 0, 0, 0, false, {}});
    return targets_.back();
  }
  const int v = found ? *found : program.value_named(prefix_ + std::string(input.name));  // says what there is
  const ProgramValue& value = program.values[static_cast<std::size_t>(v)];
  const Shape& whole = value.cut ? value.cut->whole.shape : value.type.shape;
  const std::int64_t first = value.cut ? box_of(whole, value.cut->layout, program.mesh, place_).offset[0] : 0;
  const int of_a_shard = !program.shards ? 0 : prefix_.empty() ? program.shards->microbatches : 1;
  targets_.push_back({input.name, v, value.slots, value.type.bytes().count(), whole[0], first, of_a_shard,
                      input.name == "labels", runs_of(value)});
  return targets_.back();
}

// Two chunks, one from each end of the row (describe/graph/zigzag.h).
std::vector<Feed::Target::Run> Feed::runs_of(const ProgramValue& value) const {
  const auto context = executor_.program().mesh.find(kContextAxis);
  if (!context.ok() || value.cut->layout.at[*context] != 1) return {};
  const Shape& whole = value.cut->whole.shape;
  const std::int64_t parts = executor_.program().mesh.axes()[*context].size, chunk = whole[1] / (2 * parts);
  const std::int64_t token = value.type.bytes().count() / (value.type.size(0) * value.type.size(1));
  std::vector<Target::Run> runs;
  for (std::int64_t c = 0; c < 2; ++c) {
    const std::int64_t index = (2 * place_[*context] + c) * chunk;
    runs.push_back({zigzag_place(index, whole[1], parts) * token, chunk * token});
  }
  return runs;
}

void Feed::fill(const Target& target, const InputRows& input, std::int64_t row, std::int64_t rows,
                std::span<std::byte> slot) {
  std::memset(slot.data(), target.is_labels ? 0xff : 0, slot.size());
  if (row < 0) return;
  if (target.runs.empty()) {
    const std::int64_t first = row * input.row_bytes;
    const std::int64_t there =
        std::clamp<std::int64_t>(rows * input.row_bytes - first, 0, static_cast<std::int64_t>(slot.size()));
    if (there > 0) std::memcpy(slot.data(), input.bytes.data() + first, static_cast<std::size_t>(there));
    return;
  }
  std::size_t at = 0;
  for (; row < rows && at < slot.size(); ++row) {
    for (const Target::Run& run : target.runs) {
      std::memcpy(slot.data() + at, input.bytes.data() + row * input.row_bytes + run.from,
                  static_cast<std::size_t>(run.bytes));
      at += static_cast<std::size_t>(run.bytes);
    }
  }
}

// Rows that the Program takes and the batch does not have.
Status Feed::check_names(const StepBatch& batch) const {
  for (const ProgramValue& value : executor_.program().values) {
    if (value.residence != Residence::input || value.type.ndim() == 0 || !value.name.starts_with(prefix_)) continue;
    const std::string_view name = std::string_view(value.name).substr(prefix_.size());
    if (name.find('/') != std::string_view::npos) continue;  // of another feed
    const auto found = std::ranges::find(batch.inputs, name, &InputRows::name);
    if (found != batch.inputs.end()) continue;
    std::vector<std::string_view> there;
    for (const InputRows& input : batch.inputs) there.push_back(input.name);
    return error(ErrorKind::invalid, "the program '{}' takes '{}', and a batch has {}", executor_.program().name, name,
                 fmt::join(there, ", "));
  }
  return {};
}

Status Feed::put(const StepBatch& batch, std::int64_t vocabulary) {
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
    const Target& target = target_of(input);
    for (int slot = 0; slot < target.slots; ++slot) {
      const std::int64_t row = target.of_a_shard > 0 ? executor_.program().shards->first_row(slot, target.of_a_shard)
                                                     : slot * target.slot_rows + target.first_row;
      const std::span<std::byte> view = executor_.view(target.value, slot);
      if (!view.empty()) {
        fill(target, input, row, batch.rows, view);
        continue;
      }
      std::vector<std::byte> whole(static_cast<std::size_t>(target.slot_bytes));
      fill(target, input, row, batch.rows, whole);
      TRY(executor_.write(target.value, slot, whole));
    }
  }
  return {};
}

Status Feed::put_scalar(std::string_view name, double number, int slot) {
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
  return {};  // the Program does not take it: a model without dropout needs no seed
}

Status Feed::put_rows(std::int64_t rows) {
  const Program& program = executor_.program();
  const std::optional<int> value = program.find_value(prefix_ + "row");
  if (!value) return {};  // the Program does not take it: no random bits
  for (int mb = 0; mb < program.values[static_cast<std::size_t>(*value)].slots; ++mb) {
    std::int64_t row = mb * rows;
    if (program.shards) row = std::max<std::int64_t>(0, program.shards->first_row(mb, program.shards->microbatches));
    TRY(executor_.write(*value, mb, std::as_bytes(std::span(&row, 1))));
  }
  return {};
}

Status Feed::put_coordinates() {
  const Mesh& mesh = executor_.program().mesh;
  for (std::size_t a = 0; a < place_.size(); ++a) {
    const std::optional<int> value = executor_.program().find_value("coordinate/" + mesh.axes()[a].name);
    if (!value) continue;
    TRY(executor_.write(*value, 0, std::as_bytes(std::span(&place_[a], 1))));
  }
  return {};
}

}  // namespace systole
