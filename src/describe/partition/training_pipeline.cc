#include "describe/partition/training_pipeline.h"

#include <algorithm>

#include "describe/autodiff/autodiff.h"
#include "describe/ops/ops.h"
#include "describe/passes/passes.h"

namespace systole {

namespace {

PipelineRow step(bool forward, int chunk) { return {PipelineRow::Kind::step, {forward, chunk, 0}}; }
PipelineRow receive(bool forward, int chunk) { return {PipelineRow::Kind::receive, {forward, chunk, 0}}; }

}  // namespace

PipelineTraining::PipelineTraining(TrainingBuilder& builder, PipelineStrategy pipeline, std::int64_t device)
    : TrainingPolicy(builder), pipeline_(std::move(pipeline)) {
  if (const auto axis = builder.mesh().find(kPipelineAxis); axis.ok())
    stage_ = static_cast<int>(builder.mesh().coordinates(device)[axis.value()]);
}

std::string PipelineTraining::numbered(const char* name, int chunk) { return fmt::format("{}.{}", name, chunk); }

Layout PipelineTraining::between_layout(const Type& whole) const {
  Layout layout = preferred_by_names(whole, builder_.layouts().rules(), builder_.mesh());
  for (int& dim : layout.at) dim = std::max(dim, Layout::kWhole);
  return layout;
}

PipelineTraining::ChunkSet PipelineTraining::chunks_of(const Graph& loss, std::string prefix,
                                                       std::string suffix) const {
  const std::vector<std::int64_t> layers = layers_of_chunks(pipeline_, num_layers(loss));
  return {std::move(prefix), std::move(suffix), cut_into_chunks(with_only(loss, "loss"), layers)};
}

void PipelineTraining::add_inputs(const Graph& loss) {
  model_ = chunks_of(loss, "", "");
  rows_ = PipelineClock(pipeline_, builder_.microbatches()).rows(stage_);
  const std::vector<Chunk>& chunks = model_.chunks;
  for (int c = 0; c < static_cast<int>(chunks.size()); ++c) {
    for (const GraphInput& input : chunks[static_cast<std::size_t>(c)].graph.inputs()) {
      if (input.parameter) users_[input.name].insert(c % pipeline_.stages);
    }
  }
  for (int c = 0; c < static_cast<int>(chunks.size()); ++c) {
    if (!has_chunk(c)) continue;
    const Graph& graph = chunks[static_cast<std::size_t>(c)].graph;
    for (const GraphInput& input : graph.inputs()) {
      if (!input.parameter || builder_.program().has_value(input.name)) continue;
      Parameter p = *input.parameter;
      p.stage = *users_.at(p.name).begin();
      builder_.add_parameter(p);
    }
    builder_.add_data_inputs(graph, "", builder_.microbatches());
  }
}

// A pipeline keeps only the loss of the loss graph's outputs, summed over microbatches.
void PipelineTraining::add_outputs() { builder_.add_output("loss", builder_.scalar(), 1); }

void PipelineTraining::add_between(const Graph& graph, const std::string& prefix, int slots) {
  for (const GraphOutput& output : graph.outputs()) {
    const Type& type = graph.type(output.value);
    builder_.add_value(prefix + output.name, type, between_layout(type), Residence::residual, slots);
  }
}

void PipelineTraining::add_forward_backward(const Graph&) {
  const InputsOfChunks trained = add_chunks(model_);
  builder_.add_zero();
  add_transfers(model_, trained);
}

// A step of other rows has as many microbatches, so its schedule is the same, and values in flight have as many slots.
void PipelineTraining::add_shape(std::int64_t length, const Graph& loss) {
  const ChunkSet shape = chunks_of(loss, shape_prefix(length), fmt::format(".{}", length));
  for (int c = 0; c < static_cast<int>(shape.chunks.size()); ++c) {
    if (has_chunk(c))
      builder_.add_data_inputs(shape.chunks[static_cast<std::size_t>(c)].graph, shape.prefix, builder_.microbatches());
  }
  add_transfers(shape, add_chunks(shape));
  add_step(train_schedule(length), shape);
}

PipelineTraining::InputsOfChunks PipelineTraining::add_chunks(const ChunkSet& set) {
  const int count = static_cast<int>(set.chunks.size());
  InputsOfChunks trained{{}};  // those that have a cotangent
  for (int c = 0; c + 1 < count; ++c)
    trained.push_back(trained_outputs(set.chunks[static_cast<std::size_t>(c)].graph, trained.back()));
  trained.emplace_back();  // nothing follows the last chunk
  // Values between chunks exist on both sides of a cut: on the sender until they are sent, on the receiver until its
  // backward has ended. Two slots let a step begin while the previous result is in flight.
  const auto at_least_two = [&](int slots) { return std::min(std::max(slots, 2), builder_.microbatches()); };
  for (int c = 0; c + 1 < count; ++c) {
    const Graph& graph = set.chunks[static_cast<std::size_t>(c)].graph;
    const bool sends = has_chunk(c), receives = has_chunk(c + 1);
    if (!sends && !receives) continue;
    int kept = 1, back = 1;
    if (receives) kept = most_in_flight(rows_, sends ? step(true, c) : receive(true, c + 1), step(false, c + 1));
    if (sends && !receives) back = most_in_flight(rows_, receive(false, c), step(false, c));
    add_between(graph, set.prefix, at_least_two(kept));
    for (const std::string& name : trained[static_cast<std::size_t>(c) + 1]) {
      const Type& type = graph.type(graph.output_named(name));
      builder_.add_value(set.prefix + "cotangent." + name, type, between_layout(type), Residence::residual,
                         at_least_two(back));
    }
  }
  for (int c = 0; c < count; ++c) {
    if (has_chunk(c)) add_chunk(set, c, trained[static_cast<std::size_t>(c)], trained[static_cast<std::size_t>(c) + 1]);
  }
  return trained;
}

void PipelineTraining::add_chunk(const ChunkSet& set, int c, std::span<const std::string> from,
                                 std::span<const std::string> given) {
  const bool last = c + 1 == static_cast<int>(set.chunks.size());
  const std::vector<Pass> late{{"merge_common", merge_common}, {"drop_dead", drop_dead}};
  const Graph& chunk = set.chunks[static_cast<std::size_t>(c)].graph;
  Differentiated parts = differentiate_chunk(chunk, last ? "loss" : "", from, given, builder_.strategy().recompute);
  parts.forward = run_passes(std::move(parts.forward), late);
  parts.backward = run_passes(std::move(parts.backward), late);

  LayoutsByName between, wanted, layouts;
  for (const Graph* graph : {&parts.forward, &parts.backward}) {
    for (const GraphInput& input : graph->inputs()) {
      if (is_between(input.name) || input.name.starts_with("cotangent."))
        between.emplace(input.name, between_layout(graph->type(input.value)));
    }
  }
  std::vector<Type> types;  // of the outputs
  for (const GraphOutput& output : parts.forward.outputs()) {
    types.push_back(parts.forward.type(output.value));
    if (output.name == "loss") wanted.emplace(output.name, builder_.layouts().whole());
    if (is_between(output.name)) wanted.emplace(output.name, between_layout(types.back()));
  }
  SpmdGraph forward = builder_.cut(parts.forward, between, wanted);
  layouts = std::move(forward.outputs);
  parts.forward = std::move(forward.graph);

  const int kept = most_in_flight(rows_, c);
  Bindings in = builder_.data_bindings(parts.forward, set.prefix, true), out,
           back_in = builder_.data_bindings(parts.backward, set.prefix, true);
  std::vector<std::string> dead;  // inputs without readers after backward
  for (std::size_t o = 0; o < types.size(); ++o) {
    const std::string& name = parts.forward.outputs()[o].name;
    if (name == "loss") {
      if (!builder_.program().has_value(kStageLoss)) {
        builder_.add_value(kStageLoss, Type(builder_.scalar(), {}), builder_.layouts().whole(), Residence::partial_sum,
                           builder_.microbatches());
      }
      out[name] = {kStageLoss, true};
    } else if (is_between(name)) {
      out[name] = {set.prefix + name, true};
    } else {
      const std::string value = fmt::format("{}{}.{}", set.prefix, name, c);
      builder_.add_value(value, types[o], layouts.at(name), Residence::residual, kept);
      out[name] = back_in[name] = {value, true};
      dead.push_back(name);
    }
  }
  for (const GraphInput& input : parts.backward.inputs()) {
    if (is_between(input.name) || input.name.starts_with("cotangent.")) dead.push_back(input.name);
  }
  layouts.insert(between.begin(), between.end());
  builder_.add_function(set.function("forward", c), std::move(parts.forward), in, out);

  std::vector<Parameter> own;
  for (const Parameter& p : builder_.trained()) {
    if (chunk.find_input(p.name)) own.push_back(p);
  }
  Bindings back_out;
  LayoutsByName gradients;
  for (const std::string& name : from) {
    back_out["gradient." + name] = {set.prefix + "cotangent." + name, true};
    gradients.emplace(
        "gradient." + name,
        between_layout(chunk.type(chunk.inputs()[static_cast<std::size_t>(*chunk.find_input(name))].value)));
  }
  builder_.add_backward(
      {set.function("backward", c), parts.backward, true, false, own, back_in, back_out, dead, layouts, gradients});
}

int PipelineTraining::add_transfer(const std::string& name, bool sends, std::span<const std::string> values,
                                   std::int64_t by, bool by_microbatch, std::span<const std::string> theirs) {
  Graph g(name);
  Bindings in, out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string &value = values[i], &told = theirs.empty() ? value : theirs[i];
    const Type& type = builder_.program().value(value).type;
    const Value moved = sends ? send(g.input(value, type), kPipelineAxis, pipeline_.stages, by, told)
                              : receive(g, type, kPipelineAxis, pipeline_.stages, by, told);
    g.output(value, moved);
    in[value] = out[value] = {value, by_microbatch};
  }
  return builder_.add_function(name, std::move(g), in, out);
}

void PipelineTraining::add_transfers(const ChunkSet& set, const InputsOfChunks& trained) {
  if (pipeline_.stages == 1) return;
  for (int c = 0; c + 1 < static_cast<int>(set.chunks.size()); ++c) {
    std::vector<std::string> values, back;
    for (const GraphOutput& output : set.chunks[static_cast<std::size_t>(c)].graph.outputs())
      values.push_back(set.prefix + output.name);
    for (const std::string& name : trained[static_cast<std::size_t>(c) + 1])
      back.push_back(set.prefix + "cotangent." + name);
    if (has_chunk(c)) add_transfer(set.function("send", c), true, values, 1, true);
    if (has_chunk(c + 1)) add_transfer(set.function("receive", c), false, values, 1, true);
    if (back.empty()) continue;
    if (has_chunk(c + 1)) add_transfer(set.function("send_back", c), true, back, -1, true);
    if (has_chunk(c)) add_transfer(set.function("receive_back", c), false, back, -1, true);
  }
}

void PipelineTraining::add_update() {
  builder_.add_reduce();
  add_norm();
  builder_.add_update(true);
}

void PipelineTraining::add_schedule() {
  add_ties();
  add_step("train", model_);
}

void PipelineTraining::add_step(const std::string& name, const ChunkSet& set) {
  Schedule schedule{name, {}};
  const auto act = [&](const std::string& function, int chunk, int microbatch, Stream stream) {
    schedule.actions.push_back({builder_.program().function_index(function), chunk, microbatch, stream, {}});
  };
  act("zero", 0, 0, Stream::compute);
  for (const PipelineRow& row : rows_) {
    const auto& [forward, chunk, microbatch] = row.step;
    const bool sends = row.kind == PipelineRow::Kind::send;
    if (row.kind == PipelineRow::Kind::step) {
      act(set.function(forward ? "forward" : "backward", chunk), chunk, microbatch, Stream::compute);
    } else if (forward) {
      act(sends ? set.function("send", chunk) : set.function("receive", chunk - 1), chunk, microbatch, Stream::network);
    } else {
      const std::string function = sends ? set.function("send_back", chunk - 1) : set.function("receive_back", chunk);
      if (builder_.program().has_function(function)) act(function, chunk, microbatch, Stream::network);
    }
  }
  if (builder_.program().has_function("reduce")) act("reduce", 0, 0, Stream::compute);
  for (const auto& [function, stream] : ties_) act(function, 0, 0, stream);
  act("norm", 0, 0, Stream::compute);
  act("update", 0, 0, Stream::compute);
  builder_.program().add_waits(schedule);
  builder_.program().add_schedule(std::move(schedule));
}

std::unique_ptr<TrainingPolicy> pipeline_training(TrainingBuilder& builder, const PipelineStrategy& pipeline,
                                                  std::int64_t device) {
  return std::make_unique<PipelineTraining>(builder, pipeline, device);
}

}  // namespace systole
