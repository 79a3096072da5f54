#pragma once
// The addresses of a ContractPlan's operands: in the tensors, or packed in the workspace.

#include <cstdint>
#include <optional>

#include "describe/ir/type.h"
#include "execute/backends/cpu/contract_plan.h"
#include "execute/backends/cpu/kernels/kernels.h"

namespace systole::cpu {

struct ContractTypes {
  Type a, b, y;
};

class ContractPlaces {
 public:
  // Bytes of workspace for packed operands.
  static std::int64_t packed_bytes(const ContractPlan& plan, const ContractTypes& types);

  // `packed` is aligned to 64. The plan must outlive this.
  ContractPlaces(const ContractPlan& plan, const ContractTypes& types, const Kernels& kernels, int threads,
                 const void* a, const void* b, void* y, void* packed);

  // Called before the products and after them.
  void pack() const;
  void unpack() const;

  // Calls visit(left, right, out) for each product of the plan's loops, with the addresses of the first elements.
  template <typename Visit>
  void for_each_product(const Visit& visit) const {
    std::int64_t products = 1;
    for (const ContractLoop& loop : plan_.loops) products *= loop.size;
    for (std::int64_t p = 0; p < products; ++p) {
      std::int64_t left = 0, right = 0, out = 0, rest = p;
      for (auto loop = plan_.loops.rbegin(); loop != plan_.loops.rend(); ++loop) {
        const std::int64_t i = rest % loop->size;
        rest /= loop->size;
        left += i * (plan_.swapped ? loop->b : loop->a);
        right += i * (plan_.swapped ? loop->a : loop->b);
        out += i * loop->y;
      }
      visit(left_ + left * elem_, right_ + right * elem_, out_ + out * out_elem_);
    }
  }

  const char* left() const { return left_; }
  const char* right() const { return right_; }
  char* out() const { return out_; }

 private:
  const ContractPlan& plan_;
  const Kernels& kernels_;
  std::int64_t elem_, out_elem_;  // bytes
  const char *left_, *right_;
  char* out_;
  std::optional<CopyArgs> copy_a_, copy_b_, copy_y_;
};

}  // namespace systole::cpu
