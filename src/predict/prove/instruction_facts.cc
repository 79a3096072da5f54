#include "predict/prove/instruction_facts.h"

#include <algorithm>
#include <charconv>

namespace systole::prove {
namespace {

using pjrt::HloInstruction;

constexpr const char* kFreeCalls[] = {"AllocateBuffer", "ConcatBitcast"};
constexpr const char* kFree[] = {
    "parameter",      "constant",     "tuple",      "get-tuple-element",    "bitcast", "after-all", "opt-barrier",
    "add-dependency", "partition-id", "replica-id", "optimization-barrier", "domain"};

}  // namespace

double estimated_cycles(const HloInstruction& instruction) {
  constexpr std::string_view kKey = "\"estimated_cycles\":";
  const std::string& config = instruction.backend_config;
  const std::size_t at = config.find(kKey);
  if (at == std::string::npos) return 0;
  std::size_t from = at + kKey.size();
  while (from < config.size() && (config[from] == ' ' || config[from] == '"')) ++from;
  double cycles = 0;
  const auto [end, failed] = std::from_chars(config.data() + from, config.data() + config.size(), cycles);
  return failed == std::errc() && cycles > 0 ? cycles : 0;
}

bool is_free(const HloInstruction& instruction) {
  const std::string& opcode = instruction.opcode;
  if (opcode.ends_with("-done") || opcode.ends_with("-update")) return true;  // the time is that of its start
  return std::ranges::find(kFree, opcode) != std::end(kFree) ||
         std::ranges::find(kFreeCalls, instruction.custom_call_target) != std::end(kFreeCalls);
}

std::string collective_kind(const std::string& opcode) {
  constexpr std::string_view kKinds[] = {"all-reduce",         "all-gather",           "reduce-scatter",   "all-to-all",
                                         "collective-permute", "collective-broadcast", "ragged-all-to-all"};
  std::string_view base = opcode;
  if (base.ends_with("-start")) base.remove_suffix(6);
  for (const std::string_view kind : kKinds) {
    if (base != kind) continue;
    std::string name(kind);
    std::ranges::replace(name, '-', '_');
    return name;
  }
  return "";
}

std::string op_of_source(const std::string& source) {
  const std::size_t at = source.find_last_of("/ ");
  const std::string op = at == std::string::npos ? source : source.substr(at + 1);
  const bool name = op.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string::npos;
  return name ? op : "";
}

Bytes payload(const HloLookup& lookup, const HloInstruction& collective) {
  Bytes in;
  for (std::size_t i = 0; i < collective.operands.size(); ++i)
    if (const HloInstruction* operand = lookup.operand(collective, i)) in += operand->shape.bytes();
  const bool pair = collective.opcode == "all-gather-start" || collective.opcode == "collective-permute-start";
  const pjrt::HloShape& shape = collective.shape;
  return std::max(in, pair && shape.parts.size() > 1 ? shape.parts[1].bytes() : shape.bytes());
}

std::int64_t group_of(const HloInstruction& collective) {
  return collective.groups.empty() ? collective.group_size : static_cast<std::int64_t>(collective.groups[0].size());
}

CollectivePart part_in(const pjrt::HloComputation& fused) {
  const auto holds = [&](const char* target) {
    return std::ranges::any_of(fused.instructions, [&](const HloInstruction& instruction) {
      return instruction.custom_call_target == target;
    });
  };
  if (holds("AsyncCollectiveStart")) return CollectivePart::begins;
  if (holds("AsyncCollectiveDone")) return CollectivePart::ends;
  return fused.name.starts_with("async_collective_fusion") ? CollectivePart::goes_on : CollectivePart::whole;
}

std::string collective_kind(const pjrt::HloComputation& fused, const HloInstruction& inner) {
  const std::string kind = collective_kind(inner.opcode);
  return !kind.empty() && fused.name.starts_with("all-reduce-scatter") ? "reduce_scatter" : kind;
}

}  // namespace systole::prove
