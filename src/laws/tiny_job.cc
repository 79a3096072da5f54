#include "laws/tiny_job.h"

#include <algorithm>
#include <cstring>

#include "describe/ir/layer_names.h"
#include "describe/partition/fused_step.h"
#include "ground/base/hash.h"
#include "ground/base/philox.h"

namespace systole::laws {

DecoderSpec tiny_gpt() {
  DecoderSpec config;
  config.layers = 2;
  config.width = 8;
  config.heads = 2;
  config.vocabulary = 11;
  config.context = kSequenceLength;
  return config;
}

DecoderSpec tiny_llama() {
  DecoderSpec config = tiny_gpt();
  config.family = DecoderSpec::Family::llama;
  config.kv_heads = 1;
  config.mlp = 20;
  config.gated = true;
  config.norm = Norm::rms;
  config.activation = Activation::silu;
  config.position = Position::rotary;
  config.rope_scaling = {RopeScaling::Kind::llama3, 8, 1, 4, 40};
  config.bias = false;
  config.tied = false;
  return config;
}

DecoderSpec tiny_parallel() {
  DecoderSpec config = tiny_gpt();
  config.parallel_blocks = true;
  config.kv_heads = 1;
  config.activation = Activation::relu2;
  config.position = Position::none;
  return config;
}

DecoderSpec tiny_windowed() {
  DecoderSpec config = tiny_llama();
  config.window = 3;
  return config;
}

DecoderSpec tiny_mixture() {
  DecoderSpec config = tiny_llama();
  config.mlp = 8;
  config.moe.experts = 4;
  config.moe.capacity_factor = 1;
  config.moe.shared_experts = 1;
  return config;
}

MlpSpec tiny_mlp() {
  MlpSpec config;
  config.inputs = 7;
  config.hidden = {5};
  config.outputs = 3;
  return config;
}

Strategy exact_strategy() {
  Strategy s;
  s.precision = {DType::f64, DType::f64, DType::f64, DType::f64};
  s.optimizer.clip = 1;
  return s;
}

Strategy f32_strategy() {
  Strategy s;
  s.precision = {DType::f32, DType::f32, DType::f32, DType::f32};
  s.optimizer.clip = 1;
  return s;
}

Strategy bf16_strategy() {
  Strategy s;
  s.optimizer.clip = 1;
  return s;
}

TinyJob::TinyJob(const Model& model, std::int64_t rows, const Strategy& strategy, std::unique_ptr<Device> device,
                 bool dropout, TinyRank rank)
    : device_(std::move(device)), program_(rank.program), rank_(std::move(rank)) {
  if (program_ == nullptr) program_ = std::make_shared<Program>(program_of(model, rows, strategy, dropout));
  executor_ = Executor::create(*program_, *device_).value();
}

Program TinyJob::program_of(const Model& model, std::int64_t rows, const Strategy& strategy, bool dropout) {
  const int shards = std::max(1, strategy.logical_shards), parts = shards * strategy.microbatches;
  CHECK(rows % parts == 0, "{} rows in {} microbatches", rows, parts);
  const BatchShape shape{rows / parts}, whole{strategy.logical_shards > 0 ? rows / parts : rows};
  Device& d = *device_;
  std::vector<StepShape> shapes;
  for (const std::int64_t length : rank_.lengths) {
    const std::int64_t of_step = rows * (model.context() / length);
    shapes.push_back({length, model.loss({.rows = of_step / parts, .sequence_length = length}, dropout)});
  }
  Program program = training_program(
      "tiny", model.loss(shape, dropout), model.loss(whole, false), rank_.mesh, strategy, d.target(),
      [&d](const Graph& g, const GraphNode& n) { return d.workspace(g, n); }, rank_.device, shapes);
  return rank_.joined ? fused_step(program) : program;
}

void TinyJob::begin() {
  for (const ProgramValue& value : program_->values) {
    if (value.residence == Residence::state)
      put(value.name, std::vector<double>(static_cast<std::size_t>(value.type.num_elements()), 0));
    if (value.residence != Residence::parameter) continue;
    // A stage's layers have the values of the whole model's layers.
    const std::optional<LayerName> layers = layer_name(value.name);
    PhiloxStream random(hash64(layers ? layers->whole() : value.name));
    const double mean = value.parameter->init.kind == Init::Kind::ones ? 1 : 0;
    const Type& type = value.parameter->type;
    HostTensor whole(value.type.dtype, type.shape);
    for (std::int64_t i = 0; layers && i < layers->before() * whole.size() / type.size(0); ++i) random.uniform();
    for (std::int64_t i = 0; i < whole.size(); ++i) whole.set(i, mean + 0.4 * (2 * random.uniform() - 1));
    put_whole(value, whole, 0);
  }
}

void TinyJob::put_whole(const ProgramValue& value, const HostTensor& whole, int slot) {
  HostTensor part = whole;
  if (value.cut) {
    part = HostTensor(whole.dtype(), value.type.shape);
    const Mesh& mesh = program_->mesh;
    const Shard box = box_of(whole.shape(), value.cut->layout, mesh, mesh.coordinates(rank_.device));
    for_each_run(whole.shape(), box, value.type.shape, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) part.set(to + i, whole.at(from + i));
    });
  }
  put(value.name, part.values(), slot);
}

// Rows in the order of the mesh's axis context.
HostTensor TinyJob::ordered(const HostTensor& rows) const {
  const auto context = program_->mesh.find(kContextAxis);
  if (!context.ok() || rows.shape().size() < 2) return rows;
  HostTensor ordered(rows.dtype(), rows.shape());
  const std::int64_t length = rows.shape()[1], parts = program_->mesh.axes()[*context].size;
  for (std::int64_t i = 0; i < rows.size(); ++i)
    ordered.set(i, rows.at(i / length * length + zigzag_place(i % length, length, parts)));
  return ordered;
}

void TinyJob::put_rows(const std::string& value_name, const std::string& name, const HostTensor& tensor, int of_shard) {
  const std::optional<int> index = program_->find_value(value_name);
  if (!index && program_->mesh.find(kPipelineAxis).ok()) return;  // belongs to another stage
  const ProgramValue& value = program_->values[static_cast<std::size_t>(index.value())];
  std::optional<LogicalShards> shards = program_->shards;
  const std::int64_t rows = shards ? value.type.size(0) : tensor.shape()[0] / value.slots;
  if (shards) shards->rows = rows;  // of the length
  for (int slot = 0; slot < value.slots; ++slot) {
    const std::int64_t first = shards ? shards->first_row(slot, of_shard) : slot * rows;
    HostTensor part = rows_of({{name, tensor}}, std::max<std::int64_t>(0, first), rows).at(name);
    for (std::int64_t i = 0; first < 0 && i < part.size(); ++i) part.set(i, name == "labels" ? -1 : 0);
    put_whole(value, ordered(part), slot);
  }
}

void TinyJob::set_evaluation(const Batch& batch) {
  for (const auto& [name, tensor] : batch) {
    if (program_->find_value("evaluate/" + name)) put_rows("evaluate/" + name, name, tensor, 1);
  }
}

void TinyJob::set_batch(const Batch& batch, const std::string& prefix) {
  labels_ = 0;
  if (prefix.empty()) set_evaluation(batch);  // first, because inputs of schedules may share offsets
  std::optional<LogicalShards> shards = program_->shards;
  for (const auto& [name, tensor] : batch) {
    put_rows(prefix + name, name, tensor, shards ? shards->microbatches : 1);
    if (name == "labels") {
      for (const double label : tensor.values()) labels_ += label >= 0 ? 1 : 0;
    } else if (name == "y") {
      labels_ = tensor.shape()[0];
    }
  }
  if (const auto row = program_->find_value(prefix + "row")) {
    const ProgramValue& value = program_->values[static_cast<std::size_t>(*row)];
    const std::int64_t cut = shards ? std::int64_t{shards->shards} * shards->microbatches : value.slots;
    const std::int64_t rows = batch.begin()->second.shape()[0] / cut;
    if (shards) shards->rows = rows;
    for (int slot = 0; slot < value.slots; ++slot) {
      const std::int64_t first =
          shards ? std::max<std::int64_t>(0, shards->first_row(slot, shards->microbatches)) : slot * rows;
      put(prefix + "row", {static_cast<double>(first)}, slot);
    }
    put("seed", {5});
    put("step", {1});
  }
  const Coordinates place = program_->mesh.coordinates(rank_.device);
  for (std::size_t a = 0; a < place.size(); ++a) {
    const std::string name = "coordinate/" + program_->mesh.axes()[a].name;
    if (program_->find_value(name)) put(name, {static_cast<double>(place[a])});
  }
}

void TinyJob::step(double rate, const std::string& schedule) {
  put("rate", {rate});
  put("label_count", {static_cast<double>(labels_)});
  executor_->run(program_->schedule_named(schedule)).value();
}

std::vector<double> TinyJob::get(const std::string& name, int slot) { return tensor(name, slot).values(); }

HostTensor TinyJob::tensor(const std::string& name, int slot) {
  const int v = program_->value_named(name);
  const Type& type = program_->values[static_cast<std::size_t>(v)].type;
  HostTensor tensor(type.dtype, type.shape);
  executor_->read(v, slot, tensor.bytes()).value();
  return tensor;
}

void TinyJob::put(const std::string& name, const std::vector<double>& numbers, int slot) {
  const int v = program_->value_named(name);
  const Type& type = program_->values[static_cast<std::size_t>(v)].type;
  executor_->write(v, slot, HostTensor(type.dtype, type.shape, numbers).bytes()).value();
}

double TinyJob::sum(const std::string& output) {
  double sum = 0;
  for (int slot = 0; slot < program_->values[static_cast<std::size_t>(program_->value_named(output))].slots; ++slot)
    sum += get(output, slot)[0];
  return sum;
}

std::vector<std::vector<double>> TinyJob::gradients() {
  std::vector<std::vector<double>> all;
  for (const ProgramValue& value : program_->values) {
    if (value.residence == Residence::gradient) all.push_back(get(value.name));
  }
  return all;
}

std::vector<std::vector<double>> TinyJob::parameters() {
  std::vector<std::vector<double>> all;
  for (const ProgramValue& value : program_->values) {
    if (value.residence == Residence::parameter) all.push_back(get(value.name));
  }
  return all;
}

Batch language_batch(std::int64_t rows, std::int64_t vocabulary, std::uint64_t seed, std::int64_t sequence_length) {
  Batch batch;
  for (const char* name : {"tokens", "labels", "segments", "positions"})
    batch[name] = HostTensor(DType::i32, {rows, sequence_length});
  PhiloxStream random(seed);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t at = 0;
    const std::int64_t used =
        row % 3 == 0 ? sequence_length : sequence_length - 1 - row % 2;  // padding at the end of some rows
    for (int segment = 1; at < used; ++segment) {
      const std::int64_t length = std::min<std::int64_t>(used - at, 1 + static_cast<std::int64_t>(random.below(4)));
      for (std::int64_t i = 0; i < length; ++i) {
        const std::int64_t place = row * sequence_length + at + i;
        batch["tokens"].set(place, static_cast<double>(random.below(static_cast<std::uint64_t>(vocabulary))));
        batch["labels"].set(place, i + 1 < length || length == 1
                                       ? static_cast<double>(random.below(static_cast<std::uint64_t>(vocabulary)))
                                       : -1);
        batch["segments"].set(place, segment);
        batch["positions"].set(place, static_cast<double>(i));
      }
      at += length;
    }
    for (; at < sequence_length; ++at) batch["labels"].set(row * sequence_length + at, -1);
  }
  return batch;
}

Batch regression_batch(std::int64_t rows, std::int64_t inputs, std::int64_t outputs, std::uint64_t seed) {
  Batch batch;
  batch["x"] = HostTensor(DType::f32, {rows, inputs});
  batch["y"] = HostTensor(DType::f32, {rows, outputs});
  PhiloxStream random(seed);
  for (auto& [name, tensor] : batch) {
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, 2 * random.uniform() - 1);
  }
  return batch;
}

Batch rows_of(const Batch& batch, std::int64_t first, std::int64_t count) {
  Batch part;
  for (const auto& [name, tensor] : batch) {
    Shape shape = tensor.shape();
    const std::int64_t row = tensor.size() / shape[0];
    shape[0] = count;
    HostTensor cut(tensor.dtype(), shape);
    for (std::int64_t i = 0; i < cut.size(); ++i) cut.set(i, tensor.at(first * row + i));
    part[name] = std::move(cut);
  }
  return part;
}

}  // namespace systole::laws
