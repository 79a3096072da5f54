#pragma once
// Puts a batch into the input slots of a Program: microbatch by microbatch, the last filled up with empty rows (labels
// -1, zeros elsewhere), which count in no loss.

#include <string>
#include <vector>

#include "execute/runtime/executor.h"
#include "execute/train/source.h"

namespace systole {

class Feed {
 public:
  // Inputs are the values named `prefix` + the batch's names ("evaluate/" for evaluation).
  Feed(Executor& executor, std::string prefix) : executor_(executor), prefix_(std::move(prefix)) {}

  // Errors: invalid when an id is outside the vocabulary (`vocabulary` 0: not checked), io of the device.
  Status put(const StepBatch& batch, std::int64_t vocabulary);

  Status put_scalar(std::string_view name, double number, int slot = 0);

 private:
  struct Target {
    std::string_view name;
    int value = -1;
    int slots = 1;
    std::int64_t slot_bytes = 0;
    bool is_labels = false;
  };
  const Target& target_of(const InputRows& input);

  Executor& executor_;
  std::string prefix_;
  std::vector<Target> targets_;
};

}  // namespace systole
