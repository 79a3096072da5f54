#pragma once
// The speed of one device of an accelerator: the maker's peaks, and the fraction of them that the best libraries were
// measured to reach. All numbers come from the catalog. What a software stack reaches is in StackProfile (stack.h).

#include <map>
#include <optional>
#include <string_view>

#include "ground/catalog/catalog.h"

namespace systole {

// The number format of matrix products. The stack chooses formats below 16 bits; a Program in bf16 does not state them.
// f32 is exact, as PyTorch and our Programs require: a GPU uses its vector units, or its matrix units if the catalog
// has matmul.f32; a TPU uses six bf16 passes. tf32 is f32 that a GPU's matrix units may round.
enum class ProductType { bf16, fp8, int8, fp4, f32, tf32 };
bool in_32_bits(ProductType type);      // f32 or tf32: of a Program in f32
const char* name_of(ProductType type);  // "fp8"

struct Accelerator {
  std::string name;
  bool tpu = false;

  struct Products {
    FlopRate peak;       // dense
    double reached = 1;  // fraction of the peak in the best products of the best libraries
  };
  std::map<ProductType, Products> products;
  bool has_bf16 = true;  // false: `bf16` stands for f16, its only 16-bit type
  BytesPerSecond memory;
  double memory_reached = 1;  // fraction of bandwidth that a large copy reaches
  Bytes capacity;
  std::int64_t cores = 0;   // GPU: multiprocessors; blocks of work run over them in waves
  std::int64_t unit = 128;  // TPU: rows and columns of its matrix unit

  // Fused attention on long causal rows with heads of 128: fraction of the bf16 peak.
  struct Attention {
    double forward = 0.5, backward = 0.4;
    double narrow = 1;  // factor on both for heads of 64
  };
  Attention attention;                   // the best kernel for the chip
  std::optional<Attention> attention_2;  // FlashAttention-2, if that is a different kernel
};

// Errors: not_found or invalid, naming the fact.
Result<Accelerator> accelerator_of(const CatalogEntry& entry);

// The rate of products in a type; bf16's if the chip has no rate for the type.
const Accelerator::Products& products_of(const Accelerator& chip, ProductType type);

}  // namespace systole
