#pragma once
// How a module is to be written where there is a choice.

namespace systole::stablehlo {

struct LowerOptions {
  bool unroll = false;  // a repeat as one body after the other, else as a loop
};

}  // namespace systole::stablehlo
