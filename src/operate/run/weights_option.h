#pragma once
// --weights of the commands that generate text: how the model's matrices are kept in memory.

#include <string>

#include "describe/program/program.h"
#include "operate/run/served_model.h"

namespace systole {

struct WeightsOption {
  std::string kind = "stored";  // or int8

  // What is in memory: a packed folder's are in int8 as stored.
  WeightsOption of(const ServedModel& served) const { return {served.parameter == DType::i8 ? "int8" : kind}; }
  // Of EngineOptions. For "stored" the model's own type replaces it.
  DType parameter() const { return kind == "int8" ? DType::i8 : DType::f32; }
  // "; weights in int8: 12 MB", planned; "" for stored ones.
  std::string note(const Program& program) const;
};

}  // namespace systole
