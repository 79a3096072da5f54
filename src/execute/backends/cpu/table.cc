#include "execute/backends/cpu/node_call.h"

namespace systole::cpu {

std::vector<const KernelEntry*> all_entries() {
  std::vector<const KernelEntry*> all;
  for (const auto family :
       {elementwise_entries(), movement_entries(), row_entries(), contraction_entries(), lookup_entries()}) {
    for (const KernelEntry& entry : family) all.push_back(&entry);
  }
  return all;
}

const KernelEntry* entry_of(std::string_view op) {
  for (const KernelEntry* entry : all_entries()) {
    if (entry->op == op) return entry;
  }
  return nullptr;
}

std::optional<Elem> elem_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return Elem::f32;
    case DType::bf16: return Elem::bf16;
    case DType::i32: return Elem::i32;
    case DType::i64: return Elem::i64;
    case DType::boolean: return Elem::boolean;
    default: return std::nullopt;
  }
}

Elem elem(const Type& type) {
  const std::optional<Elem> found = elem_of(type.dtype);
  CHECK(found.has_value(), "the cpu backend has no kernels for {}", systole::name_of(type.dtype));
  return *found;
}

}  // namespace systole::cpu
