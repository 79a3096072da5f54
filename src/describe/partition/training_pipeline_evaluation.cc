// "evaluate" of one stage: forward of its chunks, transfers between stages, and the sum of the loss over the stages.

#include "describe/ops/ops.h"
#include "describe/partition/training_pipeline.h"

namespace systole {

void PipelineTraining::add_evaluation(Graph evaluation) {
  const std::string prefix = kEvaluationPrefix;
  builder_.add_output("evaluate/loss", builder_.scalar(), 1);
  const std::vector<Chunk> chunks = cut_into_chunks(evaluation, layers_of_chunks(pipeline_, num_layers(evaluation)));
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
      if (!builder_.program().has_value(values.back()))
        builder_.add_value(values.back(), type, between_layout(type), Residence::residual, 1);
    }
    return values;
  };
  const Type scalar(builder_.scalar(), {});
  const std::string stage_loss = prefix + kStageLoss;
  for (int c = 0; c < count; ++c) {
    if (!has_chunk(c)) continue;
    const Graph& graph = chunks[static_cast<std::size_t>(c)].graph;
    for (const GraphInput& input : graph.inputs())
      CHECK(!input.parameter || builder_.program().has_value(input.name), "'{}' is not on stage {} while training",
            input.name, stage_);
    builder_.add_data_inputs(graph, prefix, 1);
    const bool last = c + 1 == count;
    if (c > 0 && !has_chunk(c - 1)) {
      act(add_transfer(numbered("evaluate_receive", c - 1), false, values_after(c - 1), 1, false), c, Stream::network);
    }
    LayoutsByName inputs, outputs;
    Bindings in = builder_.data_bindings(graph, prefix, false), out;
    for (const GraphInput& input : graph.inputs()) {
      if (is_between(input.name)) inputs.emplace(input.name, between_layout(graph.type(input.value)));
    }
    for (const GraphOutput& output : graph.outputs()) {
      outputs.emplace(output.name, last ? builder_.layouts().whole() : between_layout(graph.type(output.value)));
      out[output.name] = {last ? stage_loss : prefix + output.name};
    }
    if (last) {
      builder_.add_value(stage_loss, scalar, builder_.layouts().whole(), Residence::partial_sum, 1);
    } else {
      values_after(c);
    }
    act(builder_.add_function(numbered("evaluate", c), builder_.cut(graph, inputs, outputs).graph, in, out), c,
        Stream::compute);
    if (last || has_chunk(c + 1)) continue;
    act(add_transfer(numbered("evaluate_send", c), true, values_after(c), 1, false), c, Stream::network);
  }
  Graph sum("evaluate_sum");
  const Value own = has_chunk(count - 1) ? sum.input(stage_loss, scalar) : constant(sum, scalar, 0);
  sum.output("evaluate/loss", pipeline_.stages == 1 ? own : all_reduce(own, kPipelineAxis, pipeline_.stages));
  act(builder_.add_function("evaluate_sum", std::move(sum), {}, {}), 0, Stream::compute);
  builder_.program().add_waits(schedule);
  builder_.program().add_schedule(std::move(schedule));
}

}  // namespace systole
