// mlp: no defaults of its own, no presets, and no rules over several keys.
#include "describe/spec/families/families.h"

namespace systole {

std::vector<ModelFamily> MlpSpec::families() {
  return {{.made = MlpSpec{}, .defaults = {}, .add_keys = &MlpSpec::add_keys}};
}

}  // namespace systole
