#include "execute/backends/cpu/contract.h"

#include <algorithm>
#include <array>

#include "execute/backends/cpu/contract_gemm.h"
#include "execute/backends/cpu/contract_plan.h"
#include "execute/backends/cpu/cpu.h"
#include "execute/backends/cpu/dnnl_library.h"
#include "execute/backends/cpu/kernels/testing/kernel_test.h"
#include "ground/tensor/shape.h"

namespace systole::cpu {
namespace {

struct Case {
  std::string spec;
  std::map<char, std::int64_t> size;
};
const std::vector<Case> kCases = {
    {"bse,ehd->bshd", {{'b', 3}, {'s', 5}, {'e', 24}, {'h', 2}, {'d', 16}}},
    {"bse,ethd->tbshd", {{'b', 3}, {'s', 5}, {'e', 24}, {'t', 3}, {'h', 2}, {'d', 16}}},
    {"tbshd,ethd->bse", {{'b', 3}, {'s', 5}, {'e', 24}, {'t', 3}, {'h', 2}, {'d', 16}}},
    {"bse,tbshd->ethd", {{'b', 3}, {'s', 5}, {'e', 24}, {'t', 3}, {'h', 2}, {'d', 16}}},
    {"bshd,hde->bse", {{'b', 3}, {'s', 7}, {'e', 33}, {'h', 2}, {'d', 17}}},
    {"bse,ve->bsv", {{'b', 2}, {'s', 9}, {'e', 33}, {'v', 101}}},
    {"bsv,bse->ve", {{'b', 2}, {'s', 9}, {'e', 33}, {'v', 101}}},
    {"bsv,ve->bse", {{'b', 2}, {'s', 9}, {'e', 33}, {'v', 101}}},
    {"ij,jk->ik", {{'i', 1}, {'j', 1}, {'k', 1}}},
    {"ij,jk->ki", {{'i', 5}, {'j', 9}, {'k', 31}}},
    {"ji,kj->ik", {{'i', 5}, {'j', 9}, {'k', 31}}},
    {"ij,jk->ik", {{'i', 1}, {'j', 70}, {'k', 33}}},
    {"ij,jk->ik", {{'i', 70}, {'j', 33}, {'k', 1}}},
    {"ij,jk->ik", {{'i', 7}, {'j', 1}, {'k', 9}}},
    {"ij,j->i", {{'i', 37}, {'j', 65}}},
    {"j,ij->i", {{'i', 37}, {'j', 65}}},
    {"i,j->ij", {{'i', 37}, {'j', 65}}},
    {"i,j->ji", {{'i', 37}, {'j', 65}}},
    {"i,i->", {{'i', 129}}},
    {"i,i->i", {{'i', 129}}},
    {",->", {}},
    {",i->i", {{'i', 5}}},
    {"bij,bjk->bik", {{'b', 4}, {'i', 5}, {'j', 9}, {'k', 31}}},
    {"ibj,bjk->ibk", {{'b', 4}, {'i', 5}, {'j', 9}, {'k', 31}}},
    {"ijb,jkb->ikb", {{'b', 4}, {'i', 5}, {'j', 9}, {'k', 31}}},
    {"bthd,bshd->bhts", {{'b', 2}, {'t', 5}, {'h', 3}, {'d', 8}, {'s', 6}}},
    {"bhts,bshd->bthd", {{'b', 2}, {'t', 5}, {'h', 3}, {'d', 8}, {'s', 6}}},
    {"abcd,dbef->aecf", {{'a', 2}, {'b', 3}, {'c', 4}, {'d', 5}, {'e', 6}, {'f', 7}}},
    {"acbd,befd->fcae", {{'a', 2}, {'b', 3}, {'c', 4}, {'d', 5}, {'e', 6}, {'f', 7}}},
    {"abi,jab->ij", {{'a', 3}, {'b', 5}, {'i', 4}, {'j', 6}}},
    {"aib,bja->ij", {{'a', 3}, {'b', 5}, {'i', 4}, {'j', 6}}},
    {"ij,jk->ik", {{'i', 0}, {'j', 4}, {'k', 3}}},
    {"ij,jk->ik", {{'i', 4}, {'j', 0}, {'k', 3}}},
    {"ij,jk->ik", {{'i', 130}, {'j', 300}, {'k', 70}}},
};

struct Terms {
  std::string a, b, y;
};
Terms terms_of(const std::string& spec) {
  const std::size_t comma = spec.find(','), arrow = spec.find("->");
  return {spec.substr(0, comma), spec.substr(comma + 1, arrow - comma - 1), spec.substr(arrow + 2)};
}

Shape shape_of(const std::string& letters, const Case& c) {
  Shape shape;
  for (const char letter : letters) shape.push_back(c.size.at(letter));
  return shape;
}

// y and Σ |a b|, in double, by a loop over the space of all letters.
struct Exact {
  std::vector<double> y, size;
};
// The stride of each of the case's letters in an operand, in elements.
std::vector<std::int64_t> strides_of(const std::string& letters, const Case& c) {
  std::vector<std::int64_t> strides;
  for (const auto& [letter, n] : c.size) {
    std::int64_t stride = letters.find(letter) == letters.npos ? 0 : 1;
    for (std::size_t i = letters.size(); stride > 0 && i > 0 && letters[i - 1] != letter; --i)
      stride *= c.size.at(letters[i - 1]);
    strides.push_back(stride);
  }
  return strides;
}

std::vector<double> values_of(const Tensor& t) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < t.size(); ++i) values.push_back(t.at(i));
  return values;
}

Exact exact_contraction(const Case& c, const Tensor& a, const Tensor& b) {
  const Terms terms = terms_of(c.spec);
  std::int64_t points = 1;
  for (const auto& [letter, n] : c.size) points *= n;
  const auto y_elements = static_cast<std::size_t>(num_elements(shape_of(terms.y, c)));
  Exact exact{std::vector<double>(y_elements), std::vector<double>(y_elements)};
  const std::vector<double> va = values_of(a), vb = values_of(b);
  const auto sa = strides_of(terms.a, c), sb = strides_of(terms.b, c), sy = strides_of(terms.y, c);
  for (std::int64_t p = 0; p < points; ++p) {
    std::int64_t rest = p, at_a = 0, at_b = 0, at_y = 0;
    std::size_t l = 0;
    for (const auto& [letter, n] : c.size) {
      const std::int64_t at = rest % n;
      rest /= n;
      at_a += at * sa[l];
      at_b += at * sb[l];
      at_y += at * sy[l++];
    }
    const double v = va[static_cast<std::size_t>(at_a)] * vb[static_cast<std::size_t>(at_b)];
    exact.y[static_cast<std::size_t>(at_y)] += v;
    exact.size[static_cast<std::size_t>(at_y)] += std::abs(v);
  }
  return exact;
}

void check_case(const Case& c, Elem elem, Elem y_elem) {
  SCOPED_TRACE(c.spec);
  const Terms terms = terms_of(c.spec);
  const Type ta(dtype_of(elem), shape_of(terms.a, c)), tb(dtype_of(elem), shape_of(terms.b, c)),
      ty(dtype_of(y_elem), shape_of(terms.y, c));
  const Tensor a = random_tensor(elem, ta.num_elements(), 1), b = random_tensor(elem, tb.num_elements(), 2);
  const Exact exact = exact_contraction(c, a, b);
  std::int64_t points = 1, summed = 1;
  for (const auto& [letter, n] : c.size) {
    points *= n;
    if (terms.y.find(letter) == std::string::npos) summed *= n;
  }
  for (const int threads : {1, 2}) {
    Contractions contractions(kernels_of(best_isa()), threads);
    const auto contraction = contractions.get(c.spec, ta, tb, ty);
    ASSERT_TRUE(contraction.ok()) << to_string(contraction.error());
    Tensor y(y_elem, ty.num_elements()), workspace(Elem::boolean, contraction.value()->workspace());
    const BoundKernel kernel = contraction.value()->bind(a.bytes(), b.bytes(), y.data(), workspace.data());
    std::vector<std::byte> first;
    for (int call = 0; call < 2; ++call) {
      const KernelReport report = kernel();
      expect_report(report, 2 * points, 0, (ta.bytes() + tb.bytes()).count(), ty.bytes().count());
      if (call == 0) first = y.copy();
      EXPECT_TRUE(first == y.copy());
    }
    EXPECT_TRUE(y.intact() && workspace.intact());
    for (std::int64_t i = 0; i < y.size(); ++i) {
      const double want = exact.y[static_cast<std::size_t>(i)];
      const double tolerance = 1.01 * rounding(y_elem) * std::abs(want) + static_cast<double>(summed + 1) *
                                                                              rounding(Elem::f32) *
                                                                              exact.size[static_cast<std::size_t>(i)];
      expect_near(y.at(i), want, tolerance, "element " + std::to_string(i));
    }
  }
}

TEST(Contract, f32) {
  for (const Case& c : kCases) check_case(c, Elem::f32, Elem::f32);
}

TEST(Contract, bf16) {
  for (const Case& c : kCases) {
    check_case(c, Elem::bf16, Elem::bf16);
    check_case(c, Elem::bf16, Elem::f32);
  }
}

// Sums that oneDNN would split by the number of threads: see kLongSum in contract.cc.
TEST(Contract, a_long_sum_has_the_same_bits_for_any_number_of_threads) {
  for (const auto& [m, n, k] :
       {std::tuple(64, 64, 8192), std::tuple(128, 16, 2048), std::tuple(16, 128, 4100), std::tuple(96, 64, 2047)}) {
    const Type ta(DType::f32, {k, m}), tb(DType::f32, {k, n}), ty(DType::f32, {m, n});
    const Tensor a = random_tensor(Elem::f32, ta.num_elements(), 1), b = random_tensor(Elem::f32, tb.num_elements(), 2);
    std::vector<std::byte> first;
    for (const int threads : {1, 2, 4, 8}) {
      Contractions contractions(kernels_of(best_isa()), threads);
      const Contraction* contraction = contractions.get("km,kn->mn", ta, tb, ty).value();
      Tensor y(Elem::f32, ty.num_elements()), workspace(Elem::boolean, contraction->workspace());
      EXPECT_EQ(contraction->bind(a.bytes(), b.bytes(), y.data(), workspace.data())().flops, 2 * ta.num_elements() * n);
      if (threads == 1) first = y.copy();
      EXPECT_TRUE(first == y.copy()) << m << " " << n << " " << k << " with " << threads << " threads";
      double want = 0;
      for (std::int64_t i = 0; i < k; ++i) want += a.at(i * m + 3) * b.at(i * n + 5);
      expect_near(y.at(3 * n + 5), want,
                  static_cast<double>(k) * rounding(Elem::f32) * std::sqrt(static_cast<double>(k)), "an element");
    }
  }
}

// The bound of contract_scratch.cc against the library: a primitive that needs more is refused when it is made. The
// matrices are those of a decoder's step: forward, input gradient, weight gradient; no product is computed.
TEST(Contract, no_product_wants_more_scratch_than_the_rule_gives) {
  const std::vector<std::string> specs = {"mk,kn->mn",     "km,kn->mn",     "mk,nk->mn",     "km,nk->mn",
                                          "mk,kn->nm",     "bmk,bkn->bmn",  "bkm,bkn->bmn",  "bmk,bnk->bmn",
                                          "bmk,ktn->tbmn", "tbmk,ntk->bmn", "bmn,tbmk->ntk", "bmk,bnk->mn"};
  const std::vector<std::array<std::int64_t, 3>> sizes = {
      // m, n, k
      {1024, 2304, 768},  {4096, 768, 3072}, {768, 3072, 1024}, {1024, 50304, 768}, {1024, 768, 50257},
      {768, 16384, 4096}, {4096, 128, 8192}, {64, 64, 8192},    {16, 128, 4100},    {1, 50304, 768},
      {8, 768, 3072},     {300, 1, 5000},    {31, 257, 1},      {1, 1, 4096},       {129, 512, 2048}};
  for (const int threads : {1, 2, 3, 16}) {
    Contractions contractions(kernels_of(best_isa()), threads);
    for (const auto& [operand, result] :
         {std::pair(DType::f32, DType::f32), std::pair(DType::bf16, DType::bf16), std::pair(DType::bf16, DType::f32)}) {
      if (operand == DType::bf16 && dnnl_isa() < DnnlIsa::avx512) continue;
      for (const std::string& spec : specs) {
        for (const auto& [m, n, k] : sizes) {
          const Case c{spec, {{'m', m}, {'n', n}, {'k', k}, {'b', 2}, {'t', 3}}};
          const Terms terms = terms_of(spec);
          SCOPED_TRACE(fmt::format("{} m {} n {} k {} threads {}", spec, m, n, k, threads));
          const Contraction* contraction =
              contractions
                  .get(spec, Type(operand, shape_of(terms.a, c)), Type(operand, shape_of(terms.b, c)),
                       Type(result, shape_of(terms.y, c)))
                  .value();
          alignas(64) static std::byte somewhere[64];
          EXPECT_NO_THROW(contraction->bind(somewhere, somewhere, somewhere, somewhere));
        }
      }
    }
  }
}

// Scratch holds copies of blocks and sums, not copies of matrices.
TEST(Contract, a_dense_product_plans_a_few_megabytes_of_scratch_per_thread) {
  Contractions contractions(kernels_of(best_isa()), 2);
  const Type x(DType::f32, {1024, 768}), w(DType::f32, {50304, 768}), y(DType::f32, {1024, 50304});
  EXPECT_LE(contractions.get("mk,nk->mn", x, w, y).value()->workspace(), 2 << 20);
  if (dnnl_isa() < DnnlIsa::avx512_bf16) return;
  const Type x16(DType::bf16, x.shape), w16(DType::bf16, w.shape), y16(DType::bf16, y.shape);
  EXPECT_LE(contractions.get("mk,nk->mn", x16, w16, y16).value()->workspace(), 16 << 20);
}

// oneDNN 2.6 has no bf16 product below AVX-512, and a slow one with Intel's AVX-512 BF16; in f32 it is slow if rows of
// the right operand are a multiple of 4 KiB apart.
TEST(Contract, gemm_serves_what_onednn_is_slow_at) {
  Contractions contractions(kernels_of(best_isa()), 1);
  const auto served = [&](DType dtype, std::int64_t n) {
    const Type a(dtype, {20, 30}), b(dtype, {30, n}), y(dtype, {20, n});
    const Contraction* contraction = contractions.get("ij,jk->ik", a, b, y).value();
    const Tensor values(Elem::f32, 30 * n);
    Tensor out(Elem::f32, 20 * n), workspace(Elem::boolean, contraction->workspace());
    const BoundKernel kernel = contraction->bind(values.bytes(), values.bytes(), out.data(), workspace.data());
    return contraction->implementation();
  };
  EXPECT_EQ(served(DType::bf16, 40) == "gemm bf16 in f32", widens_bf16());
  EXPECT_EQ(served(DType::f32, 1024), "gemm f32");
  EXPECT_TRUE(served(DType::f32, 1040).starts_with("oneDNN "));
  EXPECT_TRUE(dnnl_isa() >= DnnlIsa::avx512 || widens_bf16());
  // The Target for memory planning agrees.
  const std::vector<DType> told = make_cpu_device().value()->target().library_products;
  EXPECT_EQ(std::count(told.begin(), told.end(), DType::bf16) == 0, widens_bf16());
  EXPECT_EQ(std::count(told.begin(), told.end(), DType::f32), 1);
}

TEST(Contract, other_types_are_refused_by_name) {
  Contractions contractions(kernels_of(best_isa()), 1);
  const auto refused =
      contractions.get("ij,jk->ik", Type(DType::f16, {2, 3}), Type(DType::f16, {3, 4}), Type(DType::f16, {2, 4}));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::unsupported);
  EXPECT_NE(refused.error().message.find("f16"), std::string::npos);
}

TEST(ContractPlan, merges_what_lies_together) {
  const ContractPlan plan = plan_contraction("bse,ehd->bshd", {4, 5, 6}, {6, 7, 8}, {4, 5, 7, 8});
  EXPECT_FALSE(plan.pack_a || plan.pack_b || plan.pack_y || plan.swapped);
  EXPECT_TRUE(plan.loops.empty());
  EXPECT_EQ(plan.m, 20);
  EXPECT_EQ(plan.n, 56);
  EXPECT_EQ(plan.k, 6);
  EXPECT_EQ(plan.batch, 1);
}

TEST(ContractPlan, loops_over_what_does_not_merge_and_packs_a_scattered_sum) {
  const ContractPlan loops = plan_contraction("bse,ethd->tbshd", {4, 5, 6}, {6, 3, 7, 8}, {3, 4, 5, 7, 8});
  EXPECT_FALSE(loops.pack_a || loops.pack_b || loops.pack_y);
  ASSERT_EQ(loops.loops.size(), 1u);
  EXPECT_EQ(loops.loops[0].size, 3);
  EXPECT_EQ(loops.loops[0].b, 56);
  EXPECT_EQ(loops.right.k, 168);
  const ContractPlan packed = plan_contraction("tbshd,ethd->bse", {3, 4, 5, 7, 8}, {6, 3, 7, 8}, {4, 5, 6});
  EXPECT_TRUE(packed.pack_a.has_value());
  EXPECT_FALSE(packed.pack_b || packed.pack_y);
  EXPECT_EQ(packed.k, 168);
}

TEST(ContractPlan, swaps_for_a_result_with_rows_of_the_left_letters) {
  const ContractPlan plan = plan_contraction("ij,jk->ki", {5, 9}, {9, 31}, {31, 5});
  EXPECT_TRUE(plan.swapped);
  EXPECT_EQ(plan.m, 31);
  EXPECT_EQ(plan.n, 5);
  EXPECT_EQ(plan.out.n, 1);
}

// An AVX-512 machine without AVX2's VNNI, asked for that, uses AVX2, as oneDNN does.
TEST(Dnnl, IsLoweredToWhatTheMachineHas) {
  EXPECT_EQ(lowered(DnnlIsa::avx512_bf16, false, DnnlIsa::avx2_vnni), DnnlIsa::avx2);
  EXPECT_EQ(lowered(DnnlIsa::avx512_bf16, true, DnnlIsa::avx2_vnni), DnnlIsa::avx2_vnni);
  EXPECT_EQ(lowered(DnnlIsa::avx512, false, DnnlIsa::amx), DnnlIsa::avx512);
  EXPECT_EQ(lowered(DnnlIsa::amx, false, DnnlIsa::avx512_vnni), DnnlIsa::avx512_vnni);
}

}  // namespace
}  // namespace systole::cpu
