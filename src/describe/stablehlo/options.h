#pragma once
// How a module is to be written where there is a choice.

#include "describe/stablehlo/attention_options.h"

namespace systole::stablehlo {

struct LowerOptions {
  bool unroll = false;  // a repeat as one body after the other, else as a loop
  bool wide_products = false;  // Builder::widen_products
  AttentionBlocks attention_blocks;
};

}  // namespace systole::stablehlo
