#pragma once
// Pipeline training: the Program of one stage. Internal to the partitioner.
//
//   training_pipeline.cc             the stage's chunks, transfers between chunks, the schedule
//   training_pipeline_sums.cc        parameters that several stages share; the norm and the loss of the whole model
//   training_pipeline_evaluation.cc  "evaluate"
//
// Functions of chunk c are "forward.<c>" and "backward.<c>". Values from chunk c to c + 1 are "between.<c>.<k>"; their
// cotangents, from c + 1 to c, are "cotangent.between.<c>.<k>". The functions "send…" and "receive…" transfer them.
// Those of rows of 64 tokens, in a step of several lengths, are "forward.<c>.64" and "64/between.<c>.<k>".

#include <map>
#include <set>
#include <string>
#include <vector>

#include "describe/partition/chunks.h"
#include "describe/partition/training_policy.h"

namespace systole {

class PipelineTraining final : public TrainingPolicy {
 public:
  // As pipeline_training.
  PipelineTraining(TrainingBuilder& builder, PipelineStrategy pipeline, std::int64_t device);

  void add_inputs(const Graph& loss) override;
  void add_outputs() override;
  void add_forward_backward(const Graph& loss) override;
  void add_update() override;
  void add_schedule() override;
  void add_shape(std::int64_t length, const Graph& loss) override;
  void add_evaluation(Graph evaluation) override;

 private:
  static constexpr const char* kStageLoss = "stage_loss";
  static std::string numbered(const char* name, int chunk);  // "forward.2"
  // The model in chunks, for rows of one length.
  struct ChunkSet {
    std::string prefix = {};         // of the names of its values
    std::string suffix = {};         // of those of its functions
    std::vector<Chunk> chunks = {};  // of all stages
    std::string function(const char* name, int chunk) const { return numbered(name, chunk) + suffix; }
  };

  using InputsOfChunks = std::vector<std::vector<std::string>>;  // per chunk: names of values from the chunk before

  ChunkSet chunks_of(const Graph& loss, std::string prefix, std::string suffix) const;
  bool has_chunk(int chunk) const { return chunk % pipeline_.stages == stage_; }
  Layout between_layout(const Type& whole) const;
  void add_between(const Graph& graph, const std::string& prefix, int slots);
  InputsOfChunks add_chunks(const ChunkSet& set);  // returns those that have a cotangent
  // `from`: inputs whose cotangents the chunk before needs. `given`: outputs whose cotangents the next chunk sends.
  void add_chunk(const ChunkSet& set, int chunk, std::span<const std::string> from, std::span<const std::string> given);
  // `theirs`: the names that transfers use for the values; empty: `values`.
  int add_transfer(const std::string& name, bool sends, std::span<const std::string> values, std::int64_t by,
                   bool by_microbatch, std::span<const std::string> theirs = {});
  void add_transfers(const ChunkSet& set, const InputsOfChunks& trained);
  void add_ties();
  void add_step(const std::string& name, const ChunkSet& set);
  void add_norm();

  PipelineStrategy pipeline_;
  int stage_ = 0;
  ChunkSet model_;                                    // for the rows of "train"
  std::vector<PipelineRow> rows_;                     // of this stage
  std::map<std::string, std::set<int>> users_;        // per parameter: the stages that have it
  std::vector<std::pair<std::string, Stream>> ties_;  // the functions that sum tied gradients, in order
};

}  // namespace systole
