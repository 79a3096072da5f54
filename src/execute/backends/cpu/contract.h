#pragma once
// Contractions by oneDNN's matmul, whose headers stay in contract.cc, or by our own kernel where that is faster
// (contract_gemm.h). A Contraction is made once per spec and types, before the first step: its scratchpad and packed
// operands are known then and are in planned workspace. oneDNN is loaded, and its primitive is made, when a Contraction
// that needs it is first bound.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "describe/ir/type.h"
#include "execute/backends/cpu/kernels/kernels.h"
#include "ground/base/result.h"

namespace systole::cpu {

// A kernel with bound arguments. Our code allocates nothing.
using BoundKernel = std::function<KernelReport()>;

class Contraction {
 public:
  virtual ~Contraction() = default;
  virtual std::int64_t workspace() const = 0;      // bytes
  virtual std::string implementation() const = 0;  // "oneDNN brg:avx512_core", "gemm f32"; empty until bound
  // `workspace` is aligned to 64. The Contraction must outlive the kernel. Throws Failure(unsupported) if oneDNN cannot
  // be loaded or has no such product.
  virtual BoundKernel bind(const void* a, const void* b, void* y, void* workspace) const = 0;
};

// All contractions made so far, with oneDNN's engine and stream. One thread at a time.
class Contractions {
 public:
  // `exact`: the same bits for any number of threads. Then our own kernel is used, or one thread of oneDNN where that
  // has instructions that our kernel lacks.
  Contractions(const Kernels& kernels, int threads, bool exact = false);
  ~Contractions();

  // f32 × f32 → f32, bf16 × bf16 → bf16 or f32 (summed in f32).
  // Errors: unsupported, for other types, or if oneDNN has no such product on this machine.
  Result<const Contraction*> get(const std::string& spec, const Type& a, const Type& b, const Type& y);

  // The operand types whose products, at least most of them, are made by oneDNN; other types never load it.
  static std::vector<DType> library_products(bool exact = false);
  // The implementations that serve the contractions bound so far.
  std::map<std::string, int> implementations() const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace systole::cpu
