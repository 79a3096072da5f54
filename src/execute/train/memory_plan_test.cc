#include "execute/train/memory_plan.h"

#include <gtest/gtest.h>

#include "describe/ops/ops.h"
#include "describe/partition/builder.h"

namespace systole {
namespace {

// One function with one matmul, never called, on a cpu with two threads.
Program product_of(DType dtype, std::vector<DType> library_products) {
  Target target;
  target.kind = "cpu";
  target.threads = 2;
  target.library_products = std::move(library_products);
  ProgramBuilder builder("p", Mesh(), target, nullptr);
  const Type a(dtype, {2, 3}), b(dtype, {3, 4}), y(dtype, {2, 4});
  for (const auto& [name, type] : {std::pair("a", a), std::pair("b", b)})
    builder.add_value({name, type, Residence::parameter});
  builder.add_value({"y", y, Residence::output});
  Graph graph("multiply");
  const Value left = graph.input("a", a), right = graph.input("b", b);
  graph.output("y", contract(left, right, "ij,jk->ik"));
  builder.add_function("multiply", std::move(graph), {}, {});
  return builder.finish();
}

// The abilities that the cpu backend reports decide, not a machine's name.
TEST(PlannedLibraries, onednn_counts_where_it_makes_a_product) {
  const std::vector<DType> f32{DType::f32}, both{DType::f32, DType::bf16};
  const Bytes with = planned_libraries(product_of(DType::f32, f32), Bytes());
  EXPECT_EQ(planned_libraries(product_of(DType::f32, both), Bytes()), with);
  EXPECT_EQ(planned_libraries(product_of(DType::bf16, both), Bytes()), with);
  const Bytes without = planned_libraries(product_of(DType::bf16, f32), Bytes());
  EXPECT_EQ(with - without, 2 * kMiB + Bytes(3328 - 1664));  // oneDNN's code, and the size of the one kernel
  EXPECT_EQ(planned_libraries(product_of(DType::f32, {}), Bytes()), without);
}

}  // namespace
}  // namespace systole
