#pragma once
// LoRA adapters of which each sequence of a server has one or none (describe/ops/lora_rows.cc), and the names of their
// tensors in graphs and Programs: "lora.attn.q.a" f32[layer, adapter, rank, in] and "lora.attn.q.b" f32[layer, adapter,
// rank, out] of the projection "attn.q", whose dims of inputs count as one, and those of outputs.

#include <cstdint>
#include <string>
#include <vector>

namespace systole {

constexpr std::int64_t kMostLoraRank = 64;

struct ServedAdapters {
  std::int64_t count = 0, rank = 0;           // rank: the largest
  std::vector<std::string> projections = {};  // that some of them adapt, each once
  bool any() const { return count > 0 && !projections.empty(); }
};

inline std::string adapter_a(const std::string& projection) { return "lora." + projection + ".a"; }
inline std::string adapter_b(const std::string& projection) { return "lora." + projection + ".b"; }
// Whether a value is such a tensor: no checkpoint has it.
inline bool is_served_adapter(const std::string& value) { return value.starts_with("lora."); }

}  // namespace systole
