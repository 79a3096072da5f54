#pragma once
// For kernel tests: tensors between guard zones, and running a kernel with each instruction set of this machine and
// with 1, 2 and 3 threads, which must give the same bits.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "execute/backends/cpu/kernels/kernels.h"
#include "ground/base/philox.h"
#include "ground/tensor/dtype.h"
#include "ground/tensor/shape.h"

namespace systole::cpu {

constexpr double kTestInf = std::numeric_limits<double>::infinity();
constexpr double kTestNan = std::numeric_limits<double>::quiet_NaN();

inline DType dtype_of(Elem elem) {
  switch (elem) {
    case Elem::f32: return DType::f32;
    case Elem::bf16: return DType::bf16;
    case Elem::i32: return DType::i32;
    case Elem::i64: return DType::i64;
    case Elem::boolean: return DType::boolean;
  }
  return DType::f32;
}

// Half a unit in the last place, relative; REQUIRES a float type.
inline double rounding(Elem elem) { return epsilon_of(dtype_of(elem)) / 2; }

class Tensor {
 public:
  Tensor(Elem elem, std::int64_t n)
      : elem_(elem), n_(n), bytes_(static_cast<std::size_t>(n * size_of(elem)) + 2 * kGuard, kMark) {
    std::memset(bytes_.data() + kGuard, 0, bytes_.size() - 2 * kGuard);
  }
  Tensor(Elem elem, std::vector<double> values) : Tensor(elem, static_cast<std::int64_t>(values.size())) {
    for (std::int64_t i = 0; i < n_; ++i) set(i, values[static_cast<std::size_t>(i)]);
  }

  Elem elem() const { return elem_; }
  std::int64_t size() const { return n_; }
  std::byte* bytes() { return bytes_.data() + kGuard; }
  const std::byte* bytes() const { return bytes_.data() + kGuard; }
  void* data() { return bytes(); }
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(bytes());
  }
  double at(std::int64_t i) const { return load(dtype_of(elem_), bytes(), i); }
  void set(std::int64_t i, double value) { store(dtype_of(elem_), bytes(), i, value); }
  std::vector<std::byte> copy() const { return {bytes(), bytes() + n_ * size_of(elem_)}; }
  void restore(const std::vector<std::byte>& saved) {
    if (!saved.empty()) std::memcpy(bytes(), saved.data(), saved.size());
  }
  // Whether nothing was written before or after the tensor.
  bool intact() const {
    for (std::size_t i = 0; i < kGuard; ++i) {
      if (bytes_[i] != kMark || bytes_[bytes_.size() - 1 - i] != kMark) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kGuard = 64;
  static constexpr std::byte kMark{0xa5};
  Elem elem_;
  std::int64_t n_;
  std::vector<std::byte> bytes_;
};

// Normally distributed with the given deviation; each stream is independent.
inline Tensor random_tensor(Elem elem, std::int64_t n, std::uint64_t stream, double deviation = 1) {
  Tensor t(elem, n);
  PhiloxStream random(20261121, stream);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t low = random.next_u32();
    t.set(i, deviation * normal_pair(low, random.next_u32()).first);
  }
  return t;
}

inline std::vector<Isa> isas_here() {
  std::vector<Isa> isas;
  for (int i = 0; i < kNumIsas; ++i) {
    if (supports(static_cast<Isa>(i))) isas.push_back(static_cast<Isa>(i));
  }
  EXPECT_FALSE(isas.empty()) << "nothing is tried here";
  return isas;
}

// Calls run(kernels, threads) for each instruction set and number of threads on the same inputs (`written` are restored
// before each call), checks that bits and report do not depend on threads and that the guards are intact, then calls
// check(report).
inline void everywhere(const std::vector<Tensor*>& written, const std::function<KernelReport(const Kernels&, int)>& run,
                       const std::function<void(const KernelReport&)>& check) {
  std::vector<std::vector<std::byte>> before;
  for (const Tensor* t : written) before.push_back(t->copy());
  for (const Isa isa : isas_here()) {
    SCOPED_TRACE(name_of(isa));
    std::vector<std::vector<std::byte>> first;
    for (const int threads : {1, 2, 3, 1}) {
      for (std::size_t i = 0; i < written.size(); ++i) written[i]->restore(before[i]);
      const KernelReport report = run(kernels_of(isa), threads);
      for (std::size_t i = 0; i < written.size(); ++i) {
        EXPECT_TRUE(written[i]->intact()) << "result " << i << ", " << threads << " threads";
        if (first.size() <= i) first.push_back(written[i]->copy());
        EXPECT_TRUE(first[i] == written[i]->copy()) << "result " << i << " differs with " << threads << " threads";
      }
      if (threads == 1) check(report);
    }
  }
  for (std::size_t i = 0; i < written.size(); ++i) written[i]->restore(before[i]);
}

inline void expect_near(double got, double want, double tolerance, const std::string& what) {
  if (std::isnan(want) ? std::isnan(got) : got == want) return;
  EXPECT_TRUE(std::abs(got - want) <= tolerance) << what << ": " << got << ", want " << want << " ± " << tolerance;
}

inline void expect_report(const KernelReport& got, std::int64_t flops, std::int64_t transcendentals, std::int64_t read,
                          std::int64_t written) {
  EXPECT_EQ(got.flops, flops);
  EXPECT_EQ(got.transcendentals, transcendentals);
  EXPECT_EQ(got.bytes_read, read);
  EXPECT_EQ(got.bytes_written, written);
}

}  // namespace systole::cpu
