#pragma once
// --weights of the commands that generate text: how the model's matrices are kept in memory.

#include <string>

#include "describe/program/program.h"
#include "ground/tensor/int4.h"
#include "operate/run/served_model.h"

namespace systole {

struct WeightsOption {
  std::string kind = "stored";  // int8, int4

  // What is in memory: a packed folder's are as it has them.
  WeightsOption of(const ServedModel& served) const {
    return {kind == "stored" && is_packed_type(served.parameter) ? packed_name(served.parameter) : kind};
  }
  // Of EngineOptions. For "stored" the model's own type replaces it.
  DType parameter() const { return packed_type(kind); }
  // "; weights in int8: 12 MB", planned; "" for stored ones.
  std::string note(const Program& program) const;
};

}  // namespace systole
