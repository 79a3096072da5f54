// Sums over the stages of a pipeline. Gradients of tied parameters, which several stages have, are summed on the first
// of these stages, in the order of the stages, and sent back. "norm" computes the square sum and the loss of the whole
// model.

#include "describe/ir/rewrite.h"
#include "describe/ops/ops.h"
#include "describe/partition/training_pipeline.h"

namespace systole {

// Sums the gradients of tied parameters on their first stage, which then sends the sums to the others.
void PipelineTraining::add_ties() {
  const auto act = [&](const std::string& function, Stream stream) { ties_.emplace_back(function, stream); };
  std::map<std::pair<int, int>, std::vector<std::string>> shared;  // first stage and another: their tied gradients
  for (const Parameter& p : builder_.trained()) {
    const std::set<int>& stages = users_.at(p.name);
    for (const int other : stages) {
      if (other != *stages.begin()) shared[{*stages.begin(), other}].push_back(builder_.reduced_name(p));
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
        ProgramValue copy = builder_.program().value(value);
        copy.name = fmt::format("tie.{}/{}", other, value);
        theirs.push_back(copy.name);
        sum.output(value, add(sum.input(value, copy.type), sum.input(copy.name, copy.type)));
        builder_.program().add_value(std::move(copy));
      }
      add_transfer(numbered("receive_ties", other), false, theirs, first - other, false, values);
      builder_.add_function(numbered("add_ties", other), std::move(sum), {}, {});
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

// Sums over the stages: of the squares, counted on the first stage that has the parameter; and of the loss, which the
// last stage has.
void PipelineTraining::add_norm() {
  Graph squares("squares");
  LayoutsByName from;
  Bindings in;
  std::vector<Value> gradients;
  for (const Parameter& p : builder_.trained()) {
    if (*users_.at(p.name).begin() != stage_) continue;
    const std::string name = "gradient/" + p.name;
    in[name] = {builder_.reduced_name(p)};
    from.emplace(name, builder_.layouts().reduced(p));
    gradients.push_back(squares.input(name, p.type.with(builder_.reduce_type(p))));
  }
  const Type scalar(builder_.scalar(), {}), square_sum(builder_.moment(), {});
  if (gradients.empty()) {
    squares.output("square_sum", constant(squares, square_sum, 0));
  } else {
    const Value norm = cast(global_norm(gradients), builder_.moment());
    squares.output("square_sum", mul(norm, norm));
  }
  Graph g = builder_.cut_stored(squares, from, {{"square_sum", builder_.layouts().whole()}}).graph;
  Graph sums("norm");
  const std::vector<Value> inputs = [&] {
    std::vector<Value> made;
    for (const GraphInput& input : g.inputs()) made.push_back(sums.input(input.name, g.type(input.value)));
    return made;
  }();
  const Value own = inline_graph(sums, g, inputs)[0];
  std::optional<Value> loss;
  for (int mb = 0; has_chunk(static_cast<int>(model_.chunks.size()) - 1) && mb < builder_.microbatches(); ++mb) {
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
  builder_.add_value("square_sum", square_sum, builder_.layouts().whole(), Residence::partial_sum, 1);
  builder_.program().set_overlap(false);  // graphs differ by stage; all must begin collectives in one order
  builder_.add_function("norm", std::move(sums), in, {});
  builder_.program().set_overlap(builder_.strategy().overlap);
}

}  // namespace systole
