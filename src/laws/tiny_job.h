#pragma once
// Tiny jobs for the laws: a small gpt or mlp as a training Program on a device, with made-up rows that hold several
// documents and padding, and access to all values by name.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "describe/models/decoder/decoder.h"
#include "describe/models/mlp/mlp.h"
#include "describe/partition/training.h"
#include "execute/runtime/executor.h"
#include "ground/tensor/buffer.h"

namespace systole::laws {

// 2 layers of width 8, 2 heads, vocabulary 11, rows of 6 tokens.
DecoderSpec tiny_gpt();
// tiny_gpt with parallel blocks, one key head and squared relu; tiny_llama with an attention window of three keys.
DecoderSpec tiny_parallel();
DecoderSpec tiny_windowed();
DecoderSpec tiny_mixture();
DecoderSpec tiny_llama();  // the same sizes, gated, grouped queries, scaled rotary positions, untied
MlpSpec tiny_mlp();
constexpr std::int64_t kSequenceLength = 6;

Strategy exact_strategy();  // all in f64
Strategy f32_strategy();
Strategy bf16_strategy();

// The step's batch: values by input name, rows outermost.
using Batch = std::map<std::string, HostTensor>;

// One rank of a job.
struct TinyRank {
  Mesh mesh;
  std::int64_t device = 0;                           // in the mesh
  bool joined = false;                               // fused step
  std::shared_ptr<const Program> program = nullptr;  // shared with another rank if all have the same; nullptr: its own
  std::vector<std::int64_t> lengths = {};            // of rows of further steps, which have `rows` x floor(T / length)
};

class TinyJob {
 public:
  // `rows` of the whole batch, over all ranks, are split into strategy.microbatches equal parts.
  TinyJob(const Model& model, std::int64_t rows, const Strategy& strategy, std::unique_ptr<Device> device,
          bool dropout = false, TinyRank rank = {});

  // Parameters depend only on their names, state is zero: all jobs of one model begin equal.
  void begin();
  void set_batch(const Batch& batch, const std::string& prefix = "");
  void set_evaluation(const Batch& batch);  // only its inputs
  void step(double rate = 1e-2, const std::string& schedule = "train");

  // This rank's shard of a value.
  std::vector<double> get(const std::string& value, int slot = 0);
  HostTensor tensor(const std::string& value, int slot = 0);
  void put(const std::string& value, const std::vector<double>& numbers, int slot = 0);
  double sum(const std::string& output);  // for the last step, over all microbatches
  double loss() { return sum("loss"); }
  std::vector<std::vector<double>> gradients();
  std::vector<std::vector<double>> parameters();

  const Program& program() const { return *program_; }
  std::shared_ptr<const Program> shared_program() const { return program_; }
  Executor& executor() { return *executor_; }
  Device& device() { return *device_; }

 private:
  Program program_of(const Model& model, std::int64_t rows, const Strategy& strategy, bool dropout);

  std::unique_ptr<Device> device_;
  std::shared_ptr<const Program> program_;
  std::unique_ptr<Executor> executor_;
  HostTensor ordered(const HostTensor& rows) const;
  void put_rows(const std::string& value, const std::string& name, const HostTensor& tensor, int of_shard);
  // Puts this rank's shard of the whole; padding is zero.
  void put_whole(const ProgramValue& value, const HostTensor& whole, int slot);

  TinyRank rank_;
  std::int64_t labels_ = 0;
};

// Rows of documents of different lengths with padding; labels end with their document.
Batch language_batch(std::int64_t rows, std::int64_t vocabulary, std::uint64_t seed,
                     std::int64_t sequence_length = kSequenceLength);
Batch regression_batch(std::int64_t rows, std::int64_t inputs, std::int64_t outputs, std::uint64_t seed);
Batch rows_of(const Batch& batch, std::int64_t first, std::int64_t count);

}  // namespace systole::laws
