#pragma once
// One device of an accelerator as perf prices work on it: what its maker states, and what others have measured the best
// libraries to get out of it. All of it is the catalog's; what a software stack makes of it is a StackProfile's
// (stack.h).

#include <map>
#include <optional>
#include <string_view>

#include "ground/catalog/catalog.h"

namespace systole {

// In which format products are done. Below 16 bits it is the stack's choice, of which a Program in bf16 says nothing.
// f32 is done exactly, as torch and this house's programs ask for it: by a GPU's vector units, or its matrix units
// where the catalog has matmul.f32; by a TPU in six passes of bf16. tf32 is what a GPU's matrix units make of f32 where
// they may round it.
enum class ProductType { bf16, fp8, int8, fp4, f32, tf32 };
bool in_32_bits(ProductType type);      // f32, tf32: of a Program in f32
const char* name_of(ProductType type);  // "fp8"

struct Accelerator {
  std::string name;
  bool tpu = false;

  struct Products {
    FlopRate peak;       // dense
    double reached = 1;  // share of it in the best products of the best libraries
  };
  std::map<ProductType, Products> products;
  bool has_bf16 = true;  // else the products called bf16 are those of f16, the only type of 16 bits that it has
  BytesPerSecond memory;
  double memory_reached = 1;  // share of it in a copy of something large
  Bytes capacity;
  std::int64_t cores = 0;   // of a GPU: multiprocessors, over which blocks of work go in waves
  std::int64_t unit = 128;  // of a TPU: rows and columns of its matrix unit

  // Fused attention of long causal rows, heads of 128: share of the peak in bf16.
  struct Attention {
    double forward = 0.5, backward = 0.4;
    double narrow = 1;  // of that, for heads of 64
  };
  Attention attention;                   // by the best kernel for the chip
  std::optional<Attention> attention_2;  // by FlashAttention-2, where that is another
};

// Errors: not_found or invalid, naming the fact.
Result<Accelerator> accelerator_of(const CatalogEntry& entry);

// The products of a type; of one that the chip has no rate for, those of bf16.
const Accelerator::Products& products_of(const Accelerator& chip, ProductType type);

}  // namespace systole
