#pragma once
// Tiny jobs for the laws: a small gpt or mlp as a training Program on a device, with made-up rows that hold several
// documents and padding, and everything readable by name.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "describe/graph/partition/training.h"
#include "describe/models/decoder/decoder.h"
#include "describe/models/mlp/mlp.h"
#include "execute/runtime/executor.h"
#include "ground/tensor/buffer.h"

namespace systole::laws {

// 2 layers of 8, 2 heads, 11 tokens, rows of 6.
DecoderConfig tiny_gpt();
// tiny_gpt with parallel blocks, one key head and squared relu; tiny_llama that sees three keys.
DecoderConfig tiny_parallel();
DecoderConfig tiny_windowed();
DecoderConfig tiny_mixture();
DecoderConfig tiny_llama();  // the same sizes, gated, grouped queries, stretched rotary positions, untied
MlpConfig tiny_mlp();
constexpr std::int64_t kSeq = 6;

Strategy exact_strategy();  // everything f64
Strategy f32_strategy();
Strategy bf16_strategy();

// The step's batch: values by input name, rows outermost.
using Batch = std::map<std::string, HostTensor>;

// One of the ranks that do a job together.
struct TinyRank {
  Mesh mesh;
  std::int64_t device = 0;                           // of the mesh
  bool joined = false;                               // the step is one function
  std::shared_ptr<const Program> program = nullptr;  // of another rank, where all have the same; nullptr: its own
};

class TinyJob {
 public:
  // `rows` of the whole batch, of all ranks, are cut into strategy.microbatches equal parts.
  TinyJob(const Model& model, std::int64_t rows, const Strategy& strategy, std::unique_ptr<Device> device,
          bool dropout = false, TinyRank rank = {});

  // Parameters from their names alone, state zero: any two jobs of one model begin alike.
  void begin();
  void set_batch(const Batch& batch);
  void set_evaluation(const Batch& batch);  // its inputs alone
  void step(double rate = 1e-2);            // runs the schedule "train"

  // This rank's part of a value.
  std::vector<double> get(const std::string& value, int slot = 0);
  HostTensor tensor(const std::string& value, int slot = 0);
  void put(const std::string& value, const std::vector<double>& numbers, int slot = 0);
  double sum(const std::string& output);  // of the last step, over all microbatches
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
  // Of a value's whole: zeros where a device's part is filled up.
  void put_whole(const ProgramValue& value, const HostTensor& whole, int slot);

  TinyRank rank_;
  std::int64_t labels_ = 0;
};

// Rows of documents of uneven length with padding; labels end with their document.
Batch language_batch(std::int64_t rows, std::int64_t vocabulary, std::uint64_t seed, std::int64_t seq = kSeq);
Batch regression_batch(std::int64_t rows, std::int64_t inputs, std::int64_t outputs, std::uint64_t seed);
Batch rows_of(const Batch& batch, std::int64_t first, std::int64_t count);

}  // namespace systole::laws
