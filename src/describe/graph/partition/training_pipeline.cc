// Training in a pipeline: the Program of one stage. Its chunks' functions are "forward.<chunk>" and "backward.<chunk>";
// what goes between chunks c and c + 1 are the values "between.<c>.<k>" and, on the way back, their cotangents
// "cotangent.between.<c>.<k>", which the functions "send…" and "receive…" move. Gradients of parameters that several
// stages have, ties, are added up on the first of them, in the order of the stages, and sent back: "ties". "norm" makes
// the square sum and the loss of the whole model out of the stages'.

#include <algorithm>
#include <set>

#include "describe/graph/ops/ops.h"
#include "describe/graph/partition/chunks.h"
#include "describe/graph/partition/training_builder.h"
#include "describe/graph/passes/passes.h"

namespace systole {

namespace {

std::string numbered(const char* name, int chunk) { return fmt::format("{}.{}", name, chunk); }

PipelineRow step(bool forward, int chunk) { return {PipelineRow::Kind::step, {forward, chunk, 0}}; }
PipelineRow receive(bool forward, int chunk) { return {PipelineRow::Kind::receive, {forward, chunk, 0}}; }

}  // namespace

Layout TrainingBuilder::between_layout(const Type& whole) const {
  Layout layout = wish_by_names(whole, layouts_.rules(), layouts_.mesh());
  for (int& dim : layout.at) dim = std::max(dim, Layout::kWhole);
  return layout;
}

bool TrainingBuilder::has_chunk(int chunk) const { return chunk % pipeline_.stages == stage_; }

void TrainingBuilder::add_stage(const Graph& typed) {
  const std::vector<std::int64_t> layers = layers_of_chunks(pipeline_, num_layers(typed));
  chunks_ = cut_into_chunks(with_only(typed, "loss"), layers);
  rows_ = PipelineClock(pipeline_, microbatches()).rows(stage_);
  for (int c = 0; c < static_cast<int>(chunks_.size()); ++c) {
    for (const GraphInput& input : chunks_[static_cast<std::size_t>(c)].graph.inputs()) {
      if (input.parameter) users_[input.name].insert(c % pipeline_.stages);
    }
  }
  for (int c = 0; c < static_cast<int>(chunks_.size()); ++c) {
    if (!has_chunk(c)) continue;
    add_parameters(chunks_[static_cast<std::size_t>(c)].graph);
    add_data_inputs(chunks_[static_cast<std::size_t>(c)].graph, "", slots());
  }
}

void TrainingBuilder::add_between(const Graph& graph, int slots) {
  for (const GraphOutput& output : graph.outputs()) {
    const Type& type = graph.type(output.value);
    add_value(output.name, type, between_layout(type), Residence::residual, slots);
  }
}

void TrainingBuilder::add_chunks() {
  const int count = static_cast<int>(chunks_.size());
  std::vector<std::vector<std::string>> trained{{}};  // per chunk, of what comes from before: has a cotangent
  for (int c = 0; c + 1 < count; ++c)
    trained.push_back(trained_outputs(chunks_[static_cast<std::size_t>(c)].graph, trained.back()));
  trained.emplace_back();  // nothing comes behind the last chunk
  // Values between chunks, on both sides of a cut: a stage that sends has them until they are sent, one that receives
  // until its backward has ended. Two slots let a step begin while what the one before gave is under way.
  const auto at_least_two = [&](int slots) { return std::min(std::max(slots, 2), microbatches()); };
  for (int c = 0; c + 1 < count; ++c) {
    const Graph& graph = chunks_[static_cast<std::size_t>(c)].graph;
    const bool sends = has_chunk(c), receives = has_chunk(c + 1);
    if (!sends && !receives) continue;
    int kept = 1, back = 1;
    if (receives) kept = most_in_flight(rows_, sends ? step(true, c) : receive(true, c + 1), step(false, c + 1));
    if (sends && !receives) back = most_in_flight(rows_, receive(false, c), step(false, c));
    add_between(graph, at_least_two(kept));
    for (const std::string& name : trained[static_cast<std::size_t>(c) + 1]) {
      const Type& type = graph.type(graph.output_named(name));
      add_value("cotangent." + name, type, between_layout(type), Residence::residual, at_least_two(back));
    }
  }
  for (int c = 0; c < count; ++c) {
    if (has_chunk(c)) add_chunk(c, trained[static_cast<std::size_t>(c)], trained[static_cast<std::size_t>(c) + 1]);
  }
  add_zero();
  add_transfers(trained);
}

void TrainingBuilder::add_chunk(int c, std::span<const std::string> from, std::span<const std::string> given) {
  const bool last = c + 1 == static_cast<int>(chunks_.size());
  const std::vector<Pass> late{{"merge_common", merge_common}, {"drop_dead", drop_dead}};
  const Graph& chunk = chunks_[static_cast<std::size_t>(c)].graph;
  Differentiated parts = differentiate_chunk(chunk, last ? "loss" : "", from, given, strategy_.recompute);
  parts.forward = run_passes(std::move(parts.forward), late, {}, &builder_.records());
  parts.backward = run_passes(std::move(parts.backward), late, {}, &builder_.records());

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
    if (output.name == "loss") wanted.emplace(output.name, layouts_.whole());
    if (is_between(output.name)) wanted.emplace(output.name, between_layout(types.back()));
  }
  SpmdGraph forward = cut(parts.forward, between, wanted);
  layouts = std::move(forward.outputs);
  parts.forward = std::move(forward.graph);

  const int kept = most_in_flight(rows_, step(true, c), step(false, c));
  Bindings in = data_bindings(parts.forward, "", true), out, back_in = data_bindings(parts.backward, "", true);
  std::vector<std::string> dead;  // after backward
  for (std::size_t o = 0; o < types.size(); ++o) {
    const std::string& name = parts.forward.outputs()[o].name;
    if (name == "loss") {
      add_value(kStageLoss, Type(scalar_, {}), layouts_.whole(), Residence::partial_sum, microbatches());
      out[name] = {kStageLoss, true};
    } else if (is_between(name)) {
      out[name] = {name, true};
    } else {
      const std::string value = fmt::format("{}.{}", name, c);
      add_value(value, types[o], layouts.at(name), Residence::residual, kept);
      out[name] = back_in[name] = {value, true};
      dead.push_back(name);
    }
  }
  for (const GraphInput& input : parts.backward.inputs()) {
    if (is_between(input.name) || input.name.starts_with("cotangent.")) dead.push_back(input.name);
  }
  layouts.insert(between.begin(), between.end());
  add_function(numbered("forward", c), std::move(parts.forward), in, out);

  std::vector<Parameter> own;
  for (const Parameter& p : trained_) {
    if (chunk.find_input(p.name)) own.push_back(p);
  }
  Bindings back_out;
  LayoutsByName gradients;
  for (const std::string& name : from) {
    back_out["gradient." + name] = {"cotangent." + name, true};
    gradients.emplace(
        "gradient." + name,
        between_layout(chunk.type(chunk.inputs()[static_cast<std::size_t>(*chunk.find_input(name))].value)));
  }
  add_backward({numbered("backward", c), parts.backward, true, own, back_in, back_out, dead, layouts, gradients});
}

int TrainingBuilder::add_transfer(const std::string& name, bool sends, std::span<const std::string> values,
                                  std::int64_t by, bool by_microbatch, std::span<const std::string> theirs) {
  Graph g(name);
  Bindings in, out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string &value = values[i], &told = theirs.empty() ? value : theirs[i];
    const Type& type = builder_.value(value).type;
    const Value moved = sends ? send(g.input(value, type), kPipelineAxis, pipeline_.stages, by, told)
                              : receive(g, type, kPipelineAxis, pipeline_.stages, by, told);
    g.output(value, moved);
    in[value] = out[value] = {value, by_microbatch};
  }
  return add_function(name, std::move(g), in, out);
}

void TrainingBuilder::add_transfers(const std::vector<std::vector<std::string>>& trained) {
  if (pipeline_.stages == 1) return;
  for (int c = 0; c + 1 < static_cast<int>(chunks_.size()); ++c) {
    std::vector<std::string> values, back;
    for (const GraphOutput& output : chunks_[static_cast<std::size_t>(c)].graph.outputs())
      values.push_back(output.name);
    for (const std::string& name : trained[static_cast<std::size_t>(c) + 1]) back.push_back("cotangent." + name);
    if (has_chunk(c)) add_transfer(numbered("send", c), true, values, 1, true);
    if (has_chunk(c + 1)) add_transfer(numbered("receive", c), false, values, 1, true);
    if (back.empty()) continue;
    if (has_chunk(c + 1)) add_transfer(numbered("send_back", c), true, back, -1, true);
    if (has_chunk(c)) add_transfer(numbered("receive_back", c), false, back, -1, true);
  }
}

// Sums of ties on the first of their stages, which then sends them to the others.
void TrainingBuilder::add_ties(Schedule& schedule) {
  const auto act = [&](const std::string& function, Stream stream) {
    schedule.actions.push_back({builder_.function_index(function), 0, 0, stream, {}});
  };
  std::map<std::pair<int, int>, std::vector<std::string>> shared;  // the first stage and another: what they share
  for (const Parameter& p : trained_) {
    const std::set<int>& stages = users_.at(p.name);
    for (const int other : stages) {
      if (other != *stages.begin()) shared[{*stages.begin(), other}].push_back(reduced_name(p));
    }
  }
  for (const auto& [pair, values] : shared) {
    const auto [first, other] = pair;
    if (other == stage_) {
      add_transfer(numbered("send_ties", first), true, values, first - other, false);
      act(numbered("send_ties", first), Stream::network);
    } else if (first == stage_) {
      std::vector<std::string> theirs;
      Graph sum(numbered("add_ties", other));
      for (const std::string& value : values) {
        ProgramValue copy = builder_.value(value);
        copy.name = fmt::format("tie.{}/{}", other, value);
        theirs.push_back(copy.name);
        sum.output(value, add(sum.input(value, copy.type), sum.input(copy.name, copy.type)));
        builder_.add_value(std::move(copy));
      }
      add_transfer(numbered("receive_ties", other), false, theirs, first - other, false, values);
      add_function(numbered("add_ties", other), std::move(sum), {}, {});
      act(numbered("receive_ties", other), Stream::network);
      act(numbered("add_ties", other), Stream::compute);
    }
  }
  for (const auto& [pair, values] : shared) {
    const auto [first, other] = pair;
    if (first == stage_) {
      add_transfer(numbered("send_sums", other), true, values, other - first, false);
      act(numbered("send_sums", other), Stream::network);
    } else if (other == stage_) {
      add_transfer(numbered("receive_sums", first), false, values, other - first, false);
      act(numbered("receive_sums", first), Stream::network);
    }
  }
}

// Sums over the stages: of squares, each parameter's on the first stage that has it, and of the loss, which the last
// has.
void TrainingBuilder::add_stage_sums() {
  Graph squares("squares");
  LayoutsByName from;
  Bindings in;
  std::vector<Value> gradients;
  for (const Parameter& p : trained_) {
    if (*users_.at(p.name).begin() != stage_) continue;
    const std::string name = "gradient/" + p.name;
    in[name] = {reduced_name(p)};
    from.emplace(name, layouts_.reduced(p));
    gradients.push_back(squares.input(name, p.type.with(reduce_type(p))));
  }
  const Type scalar(scalar_, {}), square_sum(moment_, {});
  if (gradients.empty()) {
    squares.output("square_sum", constant(squares, square_sum, 0));
  } else {
    const Value norm = cast(global_norm(gradients), moment_);
    squares.output("square_sum", mul(norm, norm));
  }
  Graph g = cut(squares, from, {{"square_sum", layouts_.whole()}}, true).graph;
  Graph sums("norm");
  const std::vector<Value> inputs = [&] {
    std::vector<Value> made;
    for (const GraphInput& input : g.inputs()) made.push_back(sums.input(input.name, g.type(input.value)));
    return made;
  }();
  const Value own = inline_graph(sums, g, inputs)[0];
  std::optional<Value> loss;
  for (int mb = 0; has_chunk(static_cast<int>(chunks_.size()) - 1) && mb < microbatches(); ++mb) {
    const std::string name = fmt::format("{}.{}", kStageLoss, mb);
    in[name] = {kStageLoss, false, false, mb};
    const Value one = sums.input(name, scalar);
    loss = loss ? add(*loss, one) : one;
  }
  if (!loss) loss = constant(sums, scalar, 0);
  const std::int64_t stages = pipeline_.stages;
  const auto summed = [&](Value x) { return stages == 1 ? x : all_reduce(x, kPipelineAxis, stages); };
  sums.output("square_sum", summed(own));
  sums.output("loss", summed(*loss));
  add_value("square_sum", square_sum, layouts_.whole(), Residence::partial_sum, 1);
  builder_.set_overlap(false);  // stages' graphs differ, and must begin these in one order
  add_function("norm", std::move(sums), in, {});
  builder_.set_overlap(strategy_.overlap);
}

void TrainingBuilder::add_pipeline_schedule() {
  Schedule schedule{"train", {}};
  const auto act = [&](const std::string& function, int chunk, int microbatch, Stream stream) {
    schedule.actions.push_back({builder_.function_index(function), chunk, microbatch, stream, {}});
  };
  act("zero", 0, 0, Stream::compute);
  for (const PipelineRow& row : rows_) {
    const auto& [forward, chunk, microbatch] = row.step;
    const bool sends = row.kind == PipelineRow::Kind::send;
    if (row.kind == PipelineRow::Kind::step) {
      act(numbered(forward ? "forward" : "backward", chunk), chunk, microbatch, Stream::compute);
    } else if (forward) {
      act(sends ? numbered("send", chunk) : numbered("receive", chunk - 1), chunk, microbatch, Stream::network);
    } else {
      const std::string function = sends ? numbered("send_back", chunk - 1) : numbered("receive_back", chunk);
      if (builder_.has_function(function)) act(function, chunk, microbatch, Stream::network);
    }
  }
  if (builder_.has_function("reduce")) act("reduce", 0, 0, Stream::compute);
  add_ties(schedule);
  act("norm", 0, 0, Stream::compute);
  act("update", 0, 0, Stream::compute);
  builder_.add_waits(schedule);
  builder_.add_schedule(std::move(schedule));
}

void TrainingBuilder::add_stage_evaluation(const Graph& typed) {
  const std::string prefix = "evaluate/";
  add_output("evaluate/loss", scalar_, 1);
  const std::vector<Chunk> chunks = cut_into_chunks(typed, layers_of_chunks(pipeline_, num_layers(typed)));
  const int count = static_cast<int>(chunks.size());
  Schedule schedule{"evaluate", {}};
  const auto act = [&](int function, int chunk, Stream stream) {
    schedule.actions.push_back({function, chunk, 0, stream, {}});
  };
  const auto values_after = [&](int c) {
    std::vector<std::string> values;
    for (const GraphOutput& output : chunks[static_cast<std::size_t>(c)].graph.outputs()) {
      const Type& type = chunks[static_cast<std::size_t>(c)].graph.type(output.value);
      values.push_back(prefix + output.name);
      if (!builder_.has_value(values.back()))
        add_value(values.back(), type, between_layout(type), Residence::residual, 1);
    }
    return values;
  };
  const Type scalar(scalar_, {});
  const std::string stage_loss = prefix + kStageLoss;
  for (int c = 0; c < count; ++c) {
    if (!has_chunk(c)) continue;
    const Graph& graph = chunks[static_cast<std::size_t>(c)].graph;
    for (const GraphInput& input : graph.inputs())
      CHECK(!input.parameter || builder_.has_value(input.name), "'{}' is not on stage {} while training", input.name,
            stage_);
    add_data_inputs(graph, prefix, 1);
    const bool last = c + 1 == count;
    if (c > 0 && !has_chunk(c - 1)) {
      act(add_transfer(numbered("evaluate_receive", c - 1), false, values_after(c - 1), 1, false), c, Stream::network);
    }
    LayoutsByName inputs, outputs;
    Bindings in = data_bindings(graph, prefix, false), out;
    for (const GraphInput& input : graph.inputs()) {
      if (is_between(input.name)) inputs.emplace(input.name, between_layout(graph.type(input.value)));
    }
    for (const GraphOutput& output : graph.outputs()) {
      outputs.emplace(output.name, last ? layouts_.whole() : between_layout(graph.type(output.value)));
      out[output.name] = {last ? stage_loss : prefix + output.name};
    }
    if (last) {
      add_value(stage_loss, scalar, layouts_.whole(), Residence::partial_sum, 1);
    } else {
      values_after(c);
    }
    act(add_function(numbered("evaluate", c), cut(graph, inputs, outputs).graph, in, out), c, Stream::compute);
    if (last || has_chunk(c + 1)) continue;
    act(add_transfer(numbered("evaluate_send", c), true, values_after(c), 1, false), c, Stream::network);
  }
  Graph sum("evaluate_sum");
  const Value own = has_chunk(count - 1) ? sum.input(stage_loss, scalar) : constant(sum, scalar, 0);
  sum.output("evaluate/loss", pipeline_.stages == 1 ? own : all_reduce(own, kPipelineAxis, pipeline_.stages));
  act(add_function("evaluate_sum", std::move(sum), {}, {}), 0, Stream::compute);
  builder_.add_waits(schedule);
  builder_.add_schedule(std::move(schedule));
}

}  // namespace systole
