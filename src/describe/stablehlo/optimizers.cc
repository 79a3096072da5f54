#include "describe/stablehlo/lower_op.h"

namespace systole::stablehlo {

std::vector<OpLowering> optimizer_lowerings() { return {}; }

}  // namespace systole::stablehlo
