#pragma once
// A table of calls that every reader of an op is tried on: the generic test (generic_test.cc) and each backend against
// the reference. One function per family (list.h) gives the good calls, and one bad call for each constraint label.
//
//   OpCases softmax_cases(DType f) {
//     OpCases cases;
//     cases.good.push_back({.op = "softmax", .operands = {real(Type(f, {6, 12}))}, .reduction = 12});
//     cases.bad.push_back({.label = "softmax_c1", .op = "softmax", .operands = {Type(f, {})}});
//     return cases;
//   }
//
// `f` is the float type of the case's tensors: f64 for finite differences and for cutting over a mesh, f32 and bf16
// for backends. Sizes: each dim at least 3 and all distinct, so that no mix-up of dims can pass; at least one case of
// every op has sizes that divide by 2 and by 3 (6, 12, 18, …) in each dim that can be cut. Small: a case runs dozens of
// times.

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "describe/graph/op.h"
#include "ground/tensor/buffer.h"

namespace systole {

struct CaseOperand {
  enum class Fill {
    uniform,   // reals in [low, high)
    integers,  // whole numbers in [low, high), and bools
    special,   // among ordinary values: infinities, NaN, both zeros, the largest and smallest numbers
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
  std::string note;             // tells cases of one op apart in failures
  std::int64_t reduction = 1;   // terms in the longest sum: the tolerance grows with it
  bool gradient = true;         // compare with finite differences, if the op has a gradient and f is f64
  bool shard = true;            // cut every factor whose size allows it
  std::vector<int> cotangents;  // results that have one; empty: all float results

  std::vector<Type> operand_types() const;
  std::string describe() const;  // "softmax(f64[6, 12]) whole rows"
};

// A call that must be refused with a message that holds `label`.
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

// The operands of a case; the same for the same seed on every machine.
std::vector<HostTensor> fill_operands(const OpCase& call, std::uint64_t seed = 1);
std::vector<Type> infer_results(const OpDef& op, const Attrs& attrs, std::span<const Type> operands);
Type type_of(const HostTensor& tensor);

// Runs the `reference` facet of an op without regions on copies of the operands. Results begin as bytes of value
// `poison`, with as many bytes of it before and after, which must survive. Errors: Failure(internal) when the
// reference writes outside its results; Failure(invalid) when the operands do not suit the op.
std::vector<HostTensor> run_reference(const OpDef& op, const Attrs& attrs, std::span<const HostTensor> operands,
                                      unsigned char poison = 0xA5);

// How far a result of `dtype` that was accumulated in `accumulate` may be from the exact one, relative to the largest
// value of the result: a rounding of the result and of each term of the longest sum.
double tolerance_of(const OpCase& call, DType dtype, DType accumulate);

// Empty when `got` is within `tolerance` × (the largest finite |want|, at least the smallest normal number) of `want`
// everywhere, infinities and NaN in the same places, integers equal; else what differs first.
std::string difference(const HostTensor& got, const HostTensor& want, double tolerance);

}  // namespace systole
