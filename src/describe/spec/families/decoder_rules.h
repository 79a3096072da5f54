#pragma once
// Rules over several keys for a decoder's experts and latent attention. They apply to documents and to models that are
// made from specs.

#include <vector>

#include "describe/spec/broken_rule.h"
#include "describe/spec/families/decoder.h"

namespace systole {

void check_experts(const DecoderSpec& spec, std::vector<BrokenRule>& broken);
void check_latent(const DecoderSpec& spec, std::vector<BrokenRule>& broken);

}  // namespace systole
