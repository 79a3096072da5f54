#pragma once
// What each stage of a pipeline does, and when: forward and backward of chunks for microbatches. Chunk c is on stage
// c mod stages, so that with more chunks than stages each stage has several, from different depths of the model.
//
//   gpipe        all forwards, then all backwards (Huang et al., arXiv:1811.06965): holds what every microbatch kept
//   one_f_one_b  a backward as soon as there is one (Narayanan et al., arXiv:2006.09503): holds as many as stages lie
//                behind; with several chunks a stage interleaved (Narayanan et al., arXiv:2104.04473, section 2.2),
//                whose bubble is smaller by the number of chunks and which hands on as often more
//
// The order is a table and nothing more: what must wait for what follows from it.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace systole {

constexpr const char* kPipelineAxis = "pipe";  // of a mesh

struct PipelineStrategy {
  enum class Kind { gpipe, one_f_one_b };
  int stages = 1;            // size of the axis
  int chunks_per_stage = 1;  // > 1: interleaved
  Kind kind = Kind::one_f_one_b;
  std::vector<std::int64_t> layers = {};  // per chunk; empty: as even as can be
  int num_chunks() const { return stages * chunks_per_stage; }
};
const char* name_of(PipelineStrategy::Kind kind);  // "gpipe", "1f1b"

struct PipelineStep {
  bool forward = true;
  int chunk = 0;
  int microbatch = 0;
  bool operator==(const PipelineStep&) const = default;
};

// Per stage its steps, in order. Errors: Failure(invalid): interleaved with microbatches that the stages do not divide.
std::vector<std::vector<PipelineStep>> pipeline_steps(const PipelineStrategy& strategy, int microbatches);

// A row of what a stage does: a step, or what is handed on between two stages.
struct PipelineRow {
  enum class Kind {
    step,
    send,     // what `step` gave, to the stage of the next chunk (backward: the chunk before)
    receive,  // what `step` asks for
  } kind = Kind::step;
  PipelineStep step;
  bool operator==(const PipelineRow&) const = default;
};

// The steps with what is handed on between them. A stage sends as soon as it can and receives when the sender is about
// to send, told by a clock on which a backward takes as long as two forwards; so stages that follow their rows never
// wait for each other in a ring, even where a message is taken only while its receiver receives. Rows without a step
// between them are under way at once. Between two chunks of one stage nothing is sent.
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
  std::vector<std::vector<double>> begins_;
  std::vector<double> ended_;  // by place
};
// Of all stages.
std::vector<std::vector<PipelineRow>> pipeline_rows(const PipelineStrategy& strategy, int microbatches);

// Layers of each chunk: as asked, else as even as can be, chunks in the middle having one more where it does not divide
// (the first has the embedding, the last the head). Errors: Failure(invalid) when they are fewer than the chunks, or
// those asked for are not `layers` in all; Failure(unsupported) when there are none.
std::vector<std::int64_t> layers_of_chunks(const PipelineStrategy& strategy, std::int64_t layers);

// What a stage does: how many layers of each of the model's stacks (layers_of_repeats) its chunks have, and whether it
// has the first chunk or the last. `layers`: of all chunks. Stages of one kind have equal Programs but for the
// microbatches that they hold, of which the first of them has most.
std::vector<std::int64_t> kind_of_stage(const PipelineStrategy& strategy, std::span<const std::int64_t> layers,
                                        std::span<const std::int64_t> stacks, int stage);

// Microbatches at once, at the most, for which a row like `made` has come and none like `done`: as many slots a value
// needs that the one makes and the other reads last. Of both only `forward` and `chunk` of the step count.
int most_in_flight(std::span<const PipelineRow> rows, const PipelineRow& made, const PipelineRow& done);

// The steps on a clock: every stage takes its next step as soon as what it waits for is done. `cost` of a step, and
// `delay` from a chunk's end to the beginning of the next chunk's on another stage, both in any unit.
struct PipelineTimes {
  std::vector<std::vector<double>> begin;  // per stage, per step
  double end = 0;
};
struct PipelineCosts {
  std::vector<double> forward, backward;  // per chunk
  double delay = 0;
};
// Errors: Failure(internal) when the steps wait for each other.
PipelineTimes play(std::span<const std::vector<PipelineStep>> stages, const PipelineCosts& costs);

}  // namespace systole
