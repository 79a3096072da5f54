#pragma once
// Contractions through oneDNN's matmul, whose headers stay in contract.cc, or through a kernel of our own where that is
// faster (contract_gemm.h). A Contraction is made once for its spec and types, before the first step: scratchpad and
// packed operands are all known then and live in planned workspace. oneDNN is loaded, and its primitive made, when a
// Contraction of its is first bound.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "describe/graph/type.h"
#include "execute/backends/cpu/kernels/kernels.h"
#include "ground/base/result.h"

namespace systole::cpu {

// A kernel with its arguments. Allocates nothing of ours.
using BoundKernel = std::function<KernelReport()>;

class Contraction {
 public:
  virtual ~Contraction() = default;
  virtual std::int64_t workspace() const = 0;      // bytes
  virtual std::string implementation() const = 0;  // "oneDNN brg:avx512_core", "gemm f32"; empty until bound
  // `workspace` is aligned to 64. The Contraction must outlive the kernel. Throws Failure (unsupported) where oneDNN
  // cannot be loaded or has no such product.
  virtual BoundKernel bind(const void* a, const void* b, void* y, void* workspace) const = 0;
};

// oneDNN's engine and stream, and all contractions made so far. Thread safety: one thread at a time.
class Contractions {
 public:
  // `exact`: the same bits for any number of threads, by the kernel of our own, or by one thread where oneDNN has
  // instructions that the kernel lacks.
  Contractions(const Kernels& kernels, int threads, bool exact = false);
  ~Contractions();

  // f32 × f32 → f32, bf16 × bf16 → bf16 or f32 (summed in f32).
  // Errors: unsupported, for other types or a machine whose oneDNN has no such product.
  Result<const Contraction*> get(const std::string& spec, const Type& a, const Type& b, const Type& y);

  // Whose products oneDNN makes, most of them at least: others never load it.
  static std::vector<DType> library_products(bool exact = false);
  // The implementations that serve the contractions bound so far.
  std::map<std::string, int> implementations() const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace systole::cpu
