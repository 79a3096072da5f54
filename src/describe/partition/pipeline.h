#pragma once
// Pipeline schedules: the order of each stage's forwards and backwards of chunks and microbatches. Chunk c is on stage
// c mod stages; with more chunks than stages, a stage has several, from different depths of the model.
//
//   gpipe        all forwards, then all backwards (Huang et al., arXiv:1811.06965): holds the activations of all
//                microbatches
//   one_f_one_b  a backward as soon as possible (Narayanan et al., arXiv:2006.09503): stage s holds the activations of
//                at most stages - s microbatches. With several chunks per stage it is interleaved (Narayanan et al.,
//                arXiv:2104.04473, section 2.2): divides the bubble by the chunks per stage, and multiplies transfers
//                by them
//
// A schedule is only a table of steps; the dependencies follow from it.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace systole {

struct PipelineStrategy {
  enum class Kind { gpipe, one_f_one_b };
  int stages = 1;            // size of the axis
  int chunks_per_stage = 1;  // > 1: interleaved
  Kind kind = Kind::one_f_one_b;
  std::vector<std::int64_t> layers = {};  // per chunk; empty: as even as possible
  int num_chunks() const { return stages * chunks_per_stage; }
};
const char* name_of(PipelineStrategy::Kind kind);  // "gpipe", "1f1b"

struct PipelineStep {
  bool forward = true;
  int chunk = 0;
  int microbatch = 0;
  bool operator==(const PipelineStep&) const = default;
};

// Per stage its steps, in order. Errors: Failure(invalid) when it is interleaved and `microbatches` is not a multiple
// of the stages.
std::vector<std::vector<PipelineStep>> pipeline_steps(const PipelineStrategy& strategy, int microbatches);

// A row of a stage's schedule: a step, or a transfer between two stages.
struct PipelineRow {
  enum class Kind {
    step,
    send,     // the result of `step`, to the stage of the next chunk (backward: the chunk before)
    receive,  // the operand of `step`
  } kind = Kind::step;
  PipelineStep step;
  bool operator==(const PipelineRow&) const = default;
};

// The steps with the transfers between them. A stage sends as soon as it can, and receives when the sender is about to
// send, by a clock on which a backward takes as long as two forwards. So stages that follow their rows never deadlock,
// even if a send completes only while its receiver receives. Transfers with no step between them are in flight
// together. Nothing is sent between two chunks of one stage. The clock only orders rows; predict/schedule predicts
// times.
class PipelineClock {
 public:
  // Errors: as pipeline_steps.
  PipelineClock(const PipelineStrategy& strategy, int microbatches);
  std::vector<PipelineRow> rows(int stage) const;

 private:
  std::size_t place(const PipelineStep& step) const;

  const PipelineStrategy strategy_;
  const int microbatches_;
  std::vector<std::vector<PipelineStep>> steps_;
  std::vector<std::vector<std::int64_t>> begins_;  // per stage and step; unit: one forward of a chunk
  std::vector<std::int64_t> ended_;                // by place
};
// The rows of all stages.
std::vector<std::vector<PipelineRow>> pipeline_rows(const PipelineStrategy& strategy, int microbatches);

// The number of layers of each chunk: strategy.layers, or as even as possible. A remainder goes to the chunks in the
// middle, because the first has the embedding and the last the head. Errors: Failure(invalid) when there are fewer
// layers than chunks, or strategy.layers does not fit `layers` and the chunks; Failure(unsupported) when there are no
// layers.
std::vector<std::int64_t> layers_of_chunks(const PipelineStrategy& strategy, std::int64_t layers);

// A key for stages with equal work: whether it is the first or the last stage, and how many layers of each stack
// (layers_of_repeats) each of its chunks has. `layers`: of all chunks. Stages with equal keys have equal Programs,
// except for the number of microbatches in flight, of which the first such stage has the most.
std::vector<std::int64_t> kind_of_stage(const PipelineStrategy& strategy, std::span<const std::int64_t> layers,
                                        std::span<const std::int64_t> stacks, int stage);

// The maximum number of microbatches in flight between a row like `made` and one like `done`: the number of slots of a
// value that `made` writes and `done` reads last. Compared are kind, forward and chunk.
int most_in_flight(std::span<const PipelineRow> rows, const PipelineRow& made, const PipelineRow& done);
// Of a chunk: from its forward to its backward.
int most_in_flight(std::span<const PipelineRow> rows, int chunk);

}  // namespace systole
