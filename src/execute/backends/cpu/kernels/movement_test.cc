#include "execute/backends/cpu/kernels/movement.h"

#include <numeric>

#include "execute/backends/cpu/kernels/testing/kernel_test.h"

namespace systole::cpu {
namespace {

// Elements of any size as bit patterns: each element has its own value.
struct Cells {
  int elem_size;
  Tensor tensor;
  Cells(int size, std::int64_t n) : elem_size(size), tensor(Elem::boolean, n * size) {}
  void number() {
    for (std::int64_t i = 0; i < tensor.size(); ++i)
      tensor.as<std::uint8_t>()[i] = static_cast<std::uint8_t>((i * 131 + i / 251) & 255);
  }
  std::vector<std::byte> cell(std::int64_t i) const {
    return {tensor.bytes() + i * elem_size, tensor.bytes() + (i + 1) * elem_size};
  }
};

CopyArgs copy_args(int elem_size, const std::vector<std::int64_t>& size, const std::vector<std::int64_t>& src,
                   const std::vector<std::int64_t>& dst) {
  CopyArgs args{};
  args.elem_size = elem_size;
  args.ndim = static_cast<int>(size.size());
  for (std::size_t k = 0; k < size.size(); ++k) {
    args.size[k] = size[k];
    args.src_stride[k] = src[k];
    args.dst_stride[k] = dst[k];
  }
  return args;
}

std::vector<std::int64_t> strides(const std::vector<std::int64_t>& size) {
  std::vector<std::int64_t> s(size.size(), 1);
  for (std::size_t k = size.size(); k-- > 1;) s[k - 1] = s[k] * size[k];
  return s;
}

std::int64_t count(const std::vector<std::int64_t>& size) {
  return std::accumulate(size.begin(), size.end(), std::int64_t{1}, std::multiplies<>());
}

void check_copy(int elem_size, const std::vector<std::int64_t>& size, const std::vector<std::int64_t>& src,
                const std::vector<std::int64_t>& dst, std::int64_t src_elements, std::int64_t dst_elements) {
  Cells x(elem_size, src_elements), y(elem_size, dst_elements);
  x.number();
  std::vector<std::int64_t> from(static_cast<std::size_t>(dst_elements), -1);
  for (std::int64_t i = 0; i < count(size); ++i) {
    std::int64_t rest = i, a = 0, b = 0;
    for (std::size_t k = size.size(); k-- > 0;) {
      a += rest % size[k] * src[k];
      b += rest % size[k] * dst[k];
      rest /= size[k];
    }
    from[static_cast<std::size_t>(b)] = a;
  }
  everywhere(
      {&y.tensor},
      [&](const Kernels& k, int threads) {
        CopyArgs args = copy_args(elem_size, size, src, dst);
        args.src = x.tensor.bytes();
        args.dst = y.tensor.data();
        args.operand_elements = src_elements;
        args.threads = threads;
        return k.copy(args);
      },
      [&](const KernelReport& report) {
        expect_report(report, 0, 0, src_elements * elem_size, count(size) * elem_size);
        for (std::int64_t i = 0; i < dst_elements; ++i) {
          const std::int64_t a = from[static_cast<std::size_t>(i)];
          ASSERT_EQ(y.cell(i), a < 0 ? std::vector<std::byte>(static_cast<std::size_t>(elem_size)) : x.cell(a)) << i;
        }
      });
}

TEST(Copy, every_permutation) {
  const std::vector<std::vector<std::int64_t>> shapes = {{1},        {70000},      {33, 65},       {3, 1, 70},
                                                         {5, 34, 7}, {2, 3, 4, 5}, {4, 33, 2, 16}, {3, 0, 2}};
  for (const auto& shape : shapes) {
    std::vector<std::size_t> perm(shape.size());
    std::iota(perm.begin(), perm.end(), 0);
    do {
      std::vector<std::int64_t> size, src;
      for (const std::size_t k : perm) {
        size.push_back(shape[k]);
        src.push_back(strides(shape)[k]);
      }
      for (const int elem_size : {1, 2, 4, 8})
        check_copy(elem_size, size, src, strides(size), count(shape), count(shape));
    } while (std::next_permutation(perm.begin(), perm.end()));
  }
}

TEST(Copy, slices_and_broadcasts) {
  check_copy(4, {3, 5}, {9, 1}, {5, 1}, 36, 15);          // columns of a matrix
  check_copy(2, {3, 5}, {5, 1}, {11, 1}, 15, 44);         // into columns of a wider one
  check_copy(4, {300, 70}, {0, 1}, {70, 1}, 70, 21000);   // a repeated row
  check_copy(4, {300, 70}, {1, 0}, {70, 1}, 300, 21000);  // a repeated column
  check_copy(8, {4, 5, 6}, {0, 1, 0}, {30, 6, 1}, 5, 120);
  check_copy(4, {40000}, {0}, {1}, 1, 40000);  // a scalar
  check_copy(1, {4, 5}, {0, 0}, {5, 1}, 1, 20);
}

TEST(Fill, every_size) {
  for (const int elem_size : {1, 2, 4, 8}) {
    for (const std::int64_t n : {0, 1, 33, 100003}) {
      Cells y(elem_size, n);
      everywhere(
          {&y.tensor},
          [&](const Kernels& k, int threads) {
            return k.fill({y.tensor.data(), elem_size, 0x1122334455667788, n, threads});
          },
          [&](const KernelReport& report) {
            expect_report(report, 0, 0, 0, n * elem_size);
            for (std::int64_t i = 0; i < n; ++i) {
              for (int b = 0; b < elem_size; ++b)
                ASSERT_EQ(static_cast<int>(y.cell(i)[static_cast<std::size_t>(b)]), 0x88 - 0x11 * b);
            }
          });
    }
  }
}

TEST(TakeRow, rows_and_zeros_outside) {
  const std::int64_t batch = 4, rows = 5, inner = 3;
  Cells x(2, batch * rows * inner), y(2, batch * inner);
  x.number();
  Tensor index(Elem::i32, {4, -1, 5, 0});
  everywhere(
      {&y.tensor},
      [&](const Kernels& k, int threads) {
        return k.take_row(
            {x.tensor.bytes(), index.as<std::int32_t>(), y.tensor.data(), 2, batch, rows, inner, threads});
      },
      [&](const KernelReport& report) {
        expect_report(report, 0, 0, batch * rows * inner * 2 + batch * 4, batch * inner * 2);
        for (std::int64_t i = 0; i < inner; ++i) {
          EXPECT_EQ(y.cell(i), x.cell(4 * inner + i));
          EXPECT_EQ(y.cell(inner + i), std::vector<std::byte>(2));
          EXPECT_EQ(y.cell(2 * inner + i), std::vector<std::byte>(2));
          EXPECT_EQ(y.cell(3 * inner + i), x.cell(3 * rows * inner + i));
        }
      });
}

TEST(CacheWrite, rows_at_their_position_in_place_and_not) {
  const std::int64_t batch = 3, length = 6, count_rows = 3, inner = 5;
  Cells old(4, batch * length * inner), rows(4, batch * count_rows * inner);
  old.number();
  rows.number();
  Tensor position(Elem::i32, {1, 5, -2});
  for (const bool in_place : {true, false}) {
    Cells cache = old;
    everywhere(
        {&cache.tensor},
        [&](const Kernels& k, int threads) {
          return k.cache_write({in_place ? cache.tensor.bytes() : old.tensor.bytes(), cache.tensor.data(),
                                rows.tensor.bytes(), position.as<std::int32_t>(), 4, batch, length, count_rows, inner,
                                threads});
        },
        [&](const KernelReport& report) {
          const std::int64_t bytes = batch * count_rows * inner * 4;
          expect_report(report, 0, 0, bytes + batch * 4, bytes);
          for (std::int64_t b = 0; b < batch; ++b) {
            for (std::int64_t row = 0; row < length; ++row) {
              const std::int64_t from = row - static_cast<std::int64_t>(position.at(b));
              for (std::int64_t i = 0; i < inner; ++i) {
                const bool written = from >= 0 && from < count_rows;
                EXPECT_EQ(cache.cell((b * length + row) * inner + i),
                          written ? rows.cell((b * count_rows + from) * inner + i)
                                  : old.cell((b * length + row) * inner + i));
              }
            }
          }
        });
  }
}

}  // namespace
}  // namespace systole::cpu
