#include "describe/spec/pooling.h"

namespace systole {

const char* name_of(Pooling pooling) {
  switch (pooling) {
    case Pooling::mean: return "mean";
    case Pooling::last: return "last";
    case Pooling::cls: return "cls";
  }
  return "";
}

std::optional<Pooling> pooling_named(std::string_view name) {
  for (const Pooling pooling : {Pooling::mean, Pooling::last, Pooling::cls}) {
    if (name == name_of(pooling)) return pooling;
  }
  return std::nullopt;
}

}  // namespace systole
