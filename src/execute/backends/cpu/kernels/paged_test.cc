// Attention over pages: a query's bits depend on the query and its keys alone. Values are compared with the reference by
// the cases of describe/ops/testing/paged.cc.

#include "execute/backends/cpu/kernels/paged.h"

#include "execute/backends/cpu/kernels/testing/kernel_test.h"

namespace systole::cpu {
namespace {

constexpr std::int64_t kLength = 290, kHeads = 6, kKvHeads = 2, kSize = 16, kEntries = 19;

// Types of queries and results, and of keys and values.
struct Elems {
  Elem own, cache;
};

// One sequence: its queries [kLength, kHeads, head], keys and values [kLength, kKvHeads, head].
struct Sequence {
  Tensor q, k, v;
  Sequence(Elems elems, std::int64_t head, std::uint64_t stream)
      : q(random_tensor(elems.own, kLength * kHeads * head, stream)),
        k(random_tensor(elems.cache, kLength * kKvHeads * head, stream + 1)),
        v(random_tensor(elems.cache, kLength * kKvHeads * head, stream + 2)) {}
};

// Pools of pages that hold some sequences, whose tables are given, by page_write.
class Pools {
 public:
  Pools(const Kernels& kernels, Elems elems, std::int64_t head, std::int64_t pages)
      : kernels_(kernels),
        elems_(elems),
        head_(head),
        pages_(pages),
        k_(random_tensor(elems.cache, size(), 90)),
        v_(random_tensor(elems.cache, size(), 91)) {}

  void write(Sequence& sequence, Tensor& table, std::int64_t first, std::int64_t count) {
    Tensor position(Elem::i32, 1);
    position.set(0, static_cast<double>(first));
    for (auto [pool, rows] : {std::pair(&k_, &sequence.k), std::pair(&v_, &sequence.v)}) {
      const std::int64_t bytes = kKvHeads * head_ * size_of(elems_.cache);
      kernels_.page_write({pool->data(), pool->data(), rows->bytes() + first * bytes, table.as<std::int32_t>(),
                           position.as<std::int32_t>(), static_cast<int>(size_of(elems_.cache)), pages_, kSize, 1,
                           count, kEntries, kKvHeads * head_, 2});
    }
  }

  // o[t, kHeads, head] of queries [first, first + t) of each sequence, as entries of one call.
  std::vector<std::byte> attend(const std::vector<Sequence*>& sequences, const std::vector<Tensor*>& tables,
                                std::vector<std::int64_t> firsts, std::int64_t t, std::int64_t window, int threads) {
    const auto b = static_cast<std::int64_t>(sequences.size());
    const PagedShape shape{b, t, kHeads, kKvHeads, head_, pages_, kSize, kEntries, 0.3, window};
    Tensor q(elems_.own, b * t * kHeads * head_), o(elems_.own, b * t * kHeads * head_), table(Elem::i32, b * kEntries),
        offset(Elem::i32, b), workspace(Elem::f32, paged_attention_workspace(shape, threads) / 4);
    const std::int64_t row = kHeads * head_ * size_of(elems_.own);
    for (std::int64_t i = 0; i < b; ++i) {
      const auto at = static_cast<std::size_t>(i);
      std::memcpy(q.bytes() + i * t * row, sequences[at]->q.bytes() + firsts[at] * row,
                  static_cast<std::size_t>(t * row));
      for (std::int64_t e = 0; e < kEntries; ++e) table.set(i * kEntries + e, tables[at]->at(e));
      offset.set(i, static_cast<double>(firsts[at]));
    }
    kernels_.paged_attention({shape, elems_.own, elems_.cache, q.bytes(), k_.bytes(), v_.bytes(),
                              table.as<std::int32_t>(), offset.as<std::int32_t>(), o.data(), workspace.data(),
                              threads});
    EXPECT_TRUE(workspace.intact() && o.intact() && k_.intact() && v_.intact());
    return o.copy();
  }

 private:
  std::int64_t size() const { return pages_ * kSize * kKvHeads * head_; }
  const Kernels& kernels_;
  Elems elems_;
  std::int64_t head_, pages_;
  Tensor k_, v_;
};

Tensor table_of(std::int64_t first, std::int64_t step) {
  std::vector<double> entries;
  for (std::int64_t e = 0; e < kEntries; ++e) entries.push_back(static_cast<double>((first + e * step) % 23));
  return Tensor(Elem::i32, entries);
}

// The rows of one sequence are computed at once; token by token, beside another sequence, from pages in another order; and
// in pieces, few and many rows at a time.
void expect_the_same_bits(const Kernels& kernels, Elems elems, std::int64_t head, std::int64_t window) {
  Sequence one(elems, head, 1), other(elems, head, 11);
  Tensor straight = table_of(0, 1), mixed = table_of(22, 22), others = table_of(11, 1);
  Pools whole(kernels, elems, head, 23), pieces(kernels, elems, head, 23);
  whole.write(one, straight, 0, kLength);
  const std::vector<std::byte> expected = whole.attend({&one}, {&straight}, {0}, kLength, window, 1);
  const std::int64_t row = kHeads * head * size_of(elems.own);
  for (std::int64_t i = 0; i < kLength; ++i) {
    pieces.write(one, mixed, i, 1);
    const std::vector<std::byte> both =
        pieces.attend({&other, &one}, {&others, &mixed}, {(i * 7) % 200, i}, 1, window, 1 + static_cast<int>(i % 5));
    ASSERT_TRUE(std::equal(both.begin() + row, both.end(), expected.begin() + i * row)) << "query " << i;
  }
  for (const std::int64_t most : {3, 41}) {
    for (std::int64_t first = 0; first < kLength; first += most) {
      const std::int64_t count = std::min(most, kLength - first);
      const std::vector<std::byte> piece = pieces.attend({&one}, {&mixed}, {first}, count, window, 2);
      ASSERT_TRUE(std::equal(piece.begin(), piece.end(), expected.begin() + first * row)) << first << " + " << count;
    }
  }
}

TEST(PagedAttention, a_query_has_the_same_bits_alone_and_in_any_company) {
  for (int isa = 0; isa < kNumIsas; ++isa) {
    if (!supports(static_cast<Isa>(isa))) continue;
    for (const Elems elems : {Elems{Elem::f32, Elem::f32}, {Elem::bf16, Elem::bf16}, {Elem::f32, Elem::bf16}}) {
      for (const std::int64_t head : {20, 32}) {
        for (const std::int64_t window : {0, 37, 150}) {
          SCOPED_TRACE(std::string(name_of(static_cast<Isa>(isa))) + " " + name_of(dtype_of(elems.own)) + " over " +
                       name_of(dtype_of(elems.cache)) + " head " + std::to_string(head) + " window " +
                       std::to_string(window));
          expect_the_same_bits(kernels_of(static_cast<Isa>(isa)), elems, head, window);
        }
      }
    }
  }
}

// A prompt is padded past the pages that its sequence has: what others keep, NaN too, stays theirs.
void expect_zeros_outside(const Kernels& kernels, std::int64_t head, std::int32_t outside, std::int64_t t) {
  const Elems f32{Elem::f32, Elem::f32};
  Sequence one(f32, head, 1), bad(f32, head, 11);
  for (Tensor* rows : {&bad.k, &bad.v}) {
    for (std::int64_t i = 0; i < rows->size(); ++i) rows->set(i, kTestNan);
  }
  Tensor own(Elem::i32, kEntries), first = table_of(0, 22), last = table_of(22, 22);
  for (std::int64_t e = 0; e < kEntries; ++e) own.set(e, e == 0 ? 5 : outside);
  Pools pools(kernels, f32, head, 23);
  pools.write(one, own, 0, kSize);
  const std::vector<std::byte> before = pools.attend({&one}, {&own}, {40 - t}, t, 0, 1);
  pools.write(bad, first, 0, kSize);
  pools.write(bad, last, 0, kSize);
  EXPECT_TRUE(pools.attend({&one}, {&own}, {40 - t}, t, 0, 1) == before) << head << " " << outside << " " << t;
}

TEST(PagedAttention, a_page_outside_the_pool_has_zeros) {
  for (int isa = 0; isa < kNumIsas; ++isa) {
    if (!supports(static_cast<Isa>(isa))) continue;
    SCOPED_TRACE(name_of(static_cast<Isa>(isa)));
    for (const std::int64_t head : {20, 32}) {
      for (const std::int32_t outside : {-1, 23}) {
        for (const std::int64_t t : {1, 40}) expect_zeros_outside(kernels_of(static_cast<Isa>(isa)), head, outside, t);
      }
    }
  }
}

}  // namespace
}  // namespace systole::cpu
