#pragma once
// A table of calls on which every implementation of an op is tested: the tests of this folder and each backend against
// the reference. One function per family (list.h) gives the good calls and one bad call for each constraint label.
//
//   OpCases softmax_cases(DType f) {
//     OpCases cases;
//     cases.good.push_back({.op = "softmax", .operands = {real(Type(f, {6, 12}))}, .reduction = 12});
//     cases.bad.push_back({.label = "softmax_c1", .op = "softmax", .operands = {Type(f, {})}});
//     return cases;
//   }
//
// `f` is the float type of the case's tensors: f64 for finite differences and sharding, f32 and bf16 for backends.
// Sizes: each dim is at least 3 and all are distinct, so that swapped dims fail. At least one case of every op has
// sizes that divide by 2 and by 3 (6, 12, 18, …) in each dim that can be sharded. Cases are small: each runs dozens of
// times.

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "describe/ir/op.h"
#include "ground/tensor/buffer.h"

namespace systole {

struct CaseOperand {
  enum class Fill {
    uniform,   // reals in [low, high)
    integers,  // whole numbers in [low, high), and bools
    special,   // ordinary values mixed with infinities, NaN, both zeros, the largest and smallest numbers
    given,     // `values`, repeated as needed
  };
  Type type;
  Fill fill = Fill::uniform;
  double low = -1, high = 1;
  std::vector<double> values;
};

CaseOperand real(Type type, double low = -1, double high = 1);
CaseOperand whole(Type type, std::int64_t low, std::int64_t high);  // [low, high)
CaseOperand flags(Shape shape);                                     // bools
CaseOperand special(Type type);
CaseOperand given(Type type, std::vector<double> values);

struct OpCase {
  std::string op;
  std::vector<CaseOperand> operands;
  Attrs attrs;
  std::string note;             // distinguishes cases of one op in failure messages
  std::int64_t reduction = 1;   // terms in the longest sum; the tolerance grows with it
  bool gradient = true;         // compare with finite differences, if the op has a gradient and f is f64
  bool shard = true;            // test sharding of every factor whose size allows it
  std::vector<int> cotangents;  // results with a cotangent; empty: all float results

  std::vector<Type> operand_types() const;
  std::string describe() const;  // "softmax(f64[6, 12]) whole rows"
};

// A call that must be refused with a message that begins with `label`.
struct BadCase {
  std::string label;
  std::string op;
  std::vector<Type> operands;
  Attrs attrs;
};

struct OpCases {
  std::vector<OpCase> good;
  std::vector<BadCase> bad;
  OpCases& operator+=(OpCases other);
};

// Fills the operands of a case; the same for the same seed on every machine.
std::vector<HostTensor> fill_operands(const OpCase& call, std::uint64_t seed = 1);
std::vector<Type> infer_results(const OpDef& op, const Attrs& attrs, std::span<const Type> operands);
Type type_of(const HostTensor& tensor);

// Runs the `reference` facet of an op without regions on copies of the operands. Results are initialized with bytes
// `poison` and surrounded by guards of as many such bytes. Errors: Failure(internal) when the reference writes outside
// its results; Failure(invalid) when the operands do not suit the op.
std::vector<HostTensor> run_reference(const OpDef& op, const Attrs& attrs, std::span<const HostTensor> operands,
                                      unsigned char poison = 0xA5);

// Tolerance of a result of `dtype` accumulated in `accumulate`, relative to the largest value of the result: one
// rounding of the result, one of each term of the longest sum, and eight more.
double tolerance_of(const OpCase& call, DType dtype, DType accumulate);

// Empty when `got` equals `want`: infinities and NaN are in the same places, integers are equal, and every difference
// is at most `tolerance` × the larger of the element's |want| and the largest |want| up to 65536 (at least the smallest
// normal f32). Else describes the first difference.
std::string difference(const HostTensor& got, const HostTensor& want, double tolerance);

// The largest difference of two elements, relative to the largest |want|, but at least to 1e-3; infinite unless
// infinities are in the same places and nothing is NaN: what both get wrong is not equal. REQUIRES: the same shape.
double relative_difference(const HostTensor& got, const HostTensor& want);

}  // namespace systole
