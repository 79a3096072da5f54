// The list of all lowerings. A new op is a line in its family's file.

#include <algorithm>

#include "describe/stablehlo/lower_op.h"

namespace systole::stablehlo {

const OpLowering* find_lowering(std::string_view op) {
  static const std::vector<OpLowering> list = [] {  // constant after the first call
    std::vector<OpLowering> all;
    for (auto family :
         {elementwise_lowerings, movement_lowerings, reduce_lowerings, region_lowerings, collective_lowerings,
          softmax_lowerings, norm_lowerings, embedding_lowerings, routing_lowerings, random_lowerings,
          optimizer_lowerings, attention_lowerings, paged_lowerings, int8_lowerings, int4_lowerings, lora_lowerings}) {
      const std::vector<OpLowering> some = family();
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }();
  const auto found = std::find_if(list.begin(), list.end(), [&](const OpLowering& l) { return l.op == op; });
  return found == list.end() ? nullptr : &*found;
}

}  // namespace systole::stablehlo
