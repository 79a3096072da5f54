#pragma once
// The interface of the table op → kernel: a node with its types, its addresses once known, and the state that kernels
// of one device share.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "describe/ir/op.h"
#include "execute/backends/cpu/contract.h"
#include "execute/backends/cpu/kernels/kernels.h"

namespace systole::cpu {

struct NodeInfo {
  const Graph& graph;
  const GraphNode& node;
  const Type& operand(int i) const { return graph.type(node.operands[static_cast<std::size_t>(i)]); }
  const Type& result(int i) const { return graph.type(node.results[static_cast<std::size_t>(i)]); }
  int num_operands() const { return static_cast<int>(node.operands.size()); }
  int num_results() const { return static_cast<int>(node.results.size()); }
  const Attrs& attrs() const { return node.attrs; }
};

struct Places {
  std::vector<std::byte*> operands, results;
  std::byte* workspace = nullptr;
  template <typename T>
  T* operand(int i) const {
    return reinterpret_cast<T*>(operands[static_cast<std::size_t>(i)]);
  }
  template <typename T>
  T* result(int i) const {
    return reinterpret_cast<T*>(results[static_cast<std::size_t>(i)]);
  }
  void* operand(int i) const { return operands[static_cast<std::size_t>(i)]; }
  void* result(int i) const { return results[static_cast<std::size_t>(i)]; }
};

struct Shared {
  const Kernels& kernels;
  Contractions& contractions;
  int threads;
  Int8Unit int8_unit = Int8Unit::pairs;
};

// How one op runs. `refuses`: the reason if this node cannot run here; else empty. `workspace`: its scratch in bytes
// (null: none). `bind`: the kernel with its arguments.
struct KernelEntry {
  const char* op;
  std::string (*refuses)(const NodeInfo&, Shared&);
  std::int64_t (*workspace)(const NodeInfo&, Shared&);
  BoundKernel (*bind)(const NodeInfo&, const Places&, Shared&);
  const char* kernel;     // display name of the kernel
  bool takes_i8 = false;  // operands of type i8, and of int4 u8 and f16, beside the types of Elem
};

constexpr bool is_packed(DType dtype) { return dtype == DType::i8 || dtype == DType::u8 || dtype == DType::f16; }

// The families of ops; entry_of in table.cc searches all.
std::span<const KernelEntry> elementwise_entries();
std::span<const KernelEntry> movement_entries();
std::span<const KernelEntry> row_entries();          // softmax, losses, norms, reductions
std::span<const KernelEntry> contraction_entries();  // contract, contract_int8, attention
std::span<const KernelEntry> lookup_entries();       // embedding, rotary, random bits, optimizers

const KernelEntry* entry_of(std::string_view op);
std::vector<const KernelEntry*> all_entries();

// The kernels' element type; nothing for a type that cpu does not support.
std::optional<Elem> elem_of(DType dtype);
// REQUIRES: a type that cpu supports.
Elem elem(const Type& type);

template <typename Args>
BoundKernel call(KernelReport (*kernel)(const Args&), const Args& args) {
  return [kernel, args] { return kernel(args); };
}

// Accepts every node.
inline std::string accepts(const NodeInfo&, Shared&) { return {}; }

}  // namespace systole::cpu
