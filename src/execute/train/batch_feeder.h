#pragma once
// Writes a batch to the input slots of a Program, microbatch by microbatch. The last microbatch is padded with empty
// rows (labels -1, zeros elsewhere), which count in no loss: where the task has no labels, the Program takes kFilled. On
// a mesh every rank gets the whole batch and writes its own rows; in exact training, the rows of its logical shards. On
// a context axis it writes its own tokens of each row, in zigzag order.

#include <string>
#include <vector>

#include "execute/runtime/executor.h"
#include "execute/train/source.h"

namespace systole {

class BatchFeeder {
 public:
  // Inputs are the values named `prefix` + a name of the batch ("evaluate/" for evaluation).
  // `device`: the rank's number in the Program's mesh.
  BatchFeeder(Executor& executor, std::string prefix, std::int64_t device = 0)
      : executor_(executor), prefix_(std::move(prefix)), place_(executor.program().mesh.coordinates(device)) {}

  // Errors: invalid if an id is outside the vocabulary (`vocabulary` 0: not checked), or the batch lacks an input of
  // the Program; io of the device. Inputs of other pipeline stages are ignored.
  Status put(const StepBatch& batch, std::int64_t vocabulary);

  Status put_scalar(std::string_view name, double number, int slot = 0);
  // Writes this rank's coordinate on each axis that the Program asks for.
  Status put_coordinates();
  // Writes for each microbatch, in exact training for each logical shard, the index of its first row in the batch ("row").
  // `rows`: of one of them, over all ranks.
  Status put_rows(std::int64_t rows);

 private:
  struct Destination {
    std::string_view name;
    int value = -1;
    int slots = 1;
    std::int64_t slot_bytes = 0;
    std::int64_t slot_rows = 0;  // of a microbatch, over all ranks
    std::int64_t first_row = 0;  // this rank's first of them
    int of_a_shard = 0;          // exact training: microbatches per logical shard, whose rows are contiguous
    bool is_labels = false;
    bool is_wide = false;  // f64, where a batch has f32
    // This rank's bytes of each row; empty: all.
    struct Run {
      std::int64_t from = 0, bytes = 0;
    };
    std::vector<Run> runs;
  };
  const Destination& destination_of(const InputRows& input);
  Status check_names(const StepBatch& batch) const;
  std::vector<Destination::Run> runs_of(const ProgramValue& value) const;
  // The numbers of an f32 input as f64, valid until the next call.
  InputRows widened(const InputRows& input);
  Status put_filled(std::int64_t rows);
  // Writes each slot of an input by `fill_slot(first row, bytes of the slot)`.
  template <typename Fill>
  Status write_slots(const Destination& destination, const Fill& fill_slot);
  // Fills a slot with the batch's rows from `row` on.
  static void fill(const Destination& destination, const InputRows& input, std::int64_t row, std::int64_t rows,
                   std::span<std::byte> slot);

  Executor& executor_;
  std::string prefix_;
  Coordinates place_;
  std::vector<Destination> destinations_;
  std::vector<double> wide_;
  bool names_checked_ = false;  // once is enough: a source always gives the same names
};

}  // namespace systole
