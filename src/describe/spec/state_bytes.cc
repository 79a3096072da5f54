#include "describe/spec/state_bytes.h"

namespace systole {

std::int64_t moments_of(const OptimizerSpec& optimizer) {
  if (optimizer.kind == OptimizerSpec::Kind::adamw) return 2;
  return optimizer.momentum > 0 ? 1 : 0;
}

Bytes state_bytes(std::int64_t parameters, std::int64_t trainable, const TrainSpec& train) {
  return Bytes(size_of(train.precision.parameter) * (parameters + moments_of(train.optimizer) * trainable));
}

}  // namespace systole
