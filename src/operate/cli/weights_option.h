#pragma once
// --weights of the commands that generate text: how the model's matrices are kept in memory.

#include <string>

#include "describe/program/program.h"
#include "ground/tensor/int4.h"
#include "operate/cli/options.h"
#include "operate/run/served_model.h"

namespace systole::cli {

struct WeightsOption {
  std::string kind = "stored";

  // What is in memory: a packed folder's are as it has them.
  WeightsOption of(const ServedModel& served) const {
    return {kind == "stored" && is_packed_type(served.parameter) ? packed_name(served.parameter) : kind};
  }
  // Of EngineOptions. For "stored" the model's own type replaces it.
  DType parameter() const { return kind == "int8" ? DType::i8 : kind == "int4" ? kInt4 : DType::f32; }
  // "; weights in int8: 12 MB", planned; "" for stored ones.
  std::string note(const Program& program) const;
};

void add_weights_option(Subcommand command, WeightsOption& option);

}  // namespace systole::cli
