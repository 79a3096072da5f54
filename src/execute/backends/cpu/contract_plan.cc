#include "execute/backends/cpu/contract_plan.h"

#include <algorithm>
#include <map>

#include "ground/base/error.h"

namespace systole::cpu {
namespace {

constexpr std::int64_t kMostProducts = 64;  // more loops than this are removed by packing

using Letters = std::string;

// A tensor's letters (without those of size 1) and their strides.
struct Layout {
  Letters letters;  // outermost first
  std::map<char, std::int64_t> stride;

  bool has(char c) const { return stride.count(c) != 0; }
  std::int64_t of(char c) const {
    const auto found = stride.find(c);
    return found == stride.end() ? 0 : found->second;
  }
};

using Sizes = std::map<char, std::int64_t>;

Layout dense(const Letters& letters, const Sizes& sizes) {
  Layout layout{letters, {}};
  std::int64_t stride = 1;
  for (auto c = letters.rbegin(); c != letters.rend(); ++c) {
    layout.stride[*c] = stride;
    stride *= sizes.at(*c);
  }
  return layout;
}

Letters only(const Letters& order, const Layout& in, const Layout& also, const Layout* without = nullptr) {
  Letters kept;
  for (const char c : order) {
    if (in.has(c) && also.has(c) && (without == nullptr || !without->has(c))) kept += c;
  }
  return kept;
}

// Letters merged into one dim: `last` is the innermost.
struct Merged {
  std::int64_t size = 1;
  char last = 0;
  bool single() const { return last == 0; }  // no letters: a dim of size 1, whose stride does not matter
};

// Merges neighbours of `order` where all layouts allow it.
std::vector<Merged> merge(const Letters& order, std::initializer_list<const Layout*> layouts, const Sizes& sizes) {
  std::vector<Merged> dims;
  for (const char c : order) {
    const bool joins = !dims.empty() && std::all_of(layouts.begin(), layouts.end(), [&](const Layout* layout) {
      return layout->of(dims.back().last) == layout->of(c) * sizes.at(c);
    });
    if (joins) {
      dims.back().size *= sizes.at(c);
      dims.back().last = c;
    } else {
      dims.push_back({sizes.at(c), c});
    }
  }
  return dims;
}

class Planner {
 public:
  Planner(const std::string& spec, const Shape& a, const Shape& b, const Shape& y) {
    const std::size_t comma = spec.find(','), arrow = spec.find("->");
    const Letters la = spec.substr(0, comma), lb = spec.substr(comma + 1, arrow - comma - 1),
                  ly = spec.substr(arrow + 2);
    for (const auto& [letters, shape] : {std::pair(la, a), std::pair(lb, b), std::pair(ly, y)}) {
      CHECK(letters.size() == shape.size(), "\"{}\" of {}", spec, to_string(shape));
      for (std::size_t i = 0; i < letters.size(); ++i) sizes_[letters[i]] = shape[i];
    }
    for (const auto& [c, size] : sizes_) plan_.points *= size;
    a_ = dense(without_ones(la), sizes_);
    b_ = dense(without_ones(lb), sizes_);
    y_ = dense(without_ones(ly), sizes_);
    given_a_ = a_;
    given_b_ = b_;
    given_y_ = y_;
  }

  ContractPlan run() {
    if (plan_.points == 0) return plan_;
    choose_k();
    if (!innermost_usable(a_, b_, y_)) pack_a(k_);
    if (!innermost_usable(b_, a_, y_)) pack_b(k_);
    if (!choose() || too_many_loops()) {
      pack_a(k_);
      pack_b(k_);
      pack_y();
      CHECK(choose(), "packed operands of a contraction do not suit it");
    }
    finish();
    return plan_;
  }

 private:
  Letters without_ones(const Letters& letters) const {
    Letters kept;
    for (const char c : letters) {
      if (sizes_.at(c) != 1) kept += c;
    }
    return kept;
  }

  Letters batch_letters() const { return only(given_y_.letters, a_, b_); }
  Letters m_letters() const { return only(given_y_.letters, a_, y_, &b_); }
  Letters n_letters() const { return only(given_y_.letters, b_, y_, &a_); }

  bool merges(const Letters& k, const Layout& layout) const { return merge(k, {&layout}, sizes_).size() <= 1; }

  std::int64_t elements(const Layout& layout) const {
    std::int64_t n = 1;
    for (const char c : layout.letters) n *= sizes_.at(c);
    return n;
  }

  // Chooses the order of the summed letters; packs an operand in which they are not adjacent.
  void choose_k() {
    const Letters in_a = only(a_.letters, a_, b_, &y_), in_b = only(b_.letters, a_, b_, &y_);
    const bool both = merge(in_a, {&a_, &b_}, sizes_).size() <= 1;
    k_ = in_a;
    if (both) return;
    const bool a_whole = merges(in_a, a_), b_whole = merges(in_b, b_);
    if (b_whole && (!a_whole || elements(a_) <= elements(b_))) {
      k_ = in_b;
      pack_a(k_);
    } else {
      pack_b(k_);
      if (!a_whole) pack_a(k_);
    }
  }

  // The innermost letter of an operand must be a matrix letter, not a batch letter.
  static bool innermost_usable(const Layout& own, const Layout& other, const Layout& y) {
    if (own.letters.empty()) return true;
    const char c = own.letters.back();
    return !(other.has(c) && y.has(c));
  }

  void pack_a(const Letters& k) { a_ = dense(batch_letters() + m_letters() + k, sizes_); }
  void pack_b(const Letters& k) { b_ = dense(batch_letters() + n_letters() + k, sizes_); }
  void pack_y() { y_ = dense(batch_letters() + m_letters() + n_letters(), sizes_); }

  // Chooses the merged dims of the matrix. One of (M, K) has stride 1 in a, one of (N, K) in b, one of (M, N) in y; a
  // dim of size 1 has no such requirement.
  bool choose() {
    ms_ = merge(m_letters(), {&a_, &y_}, sizes_);
    ns_ = merge(n_letters(), {&b_, &y_}, sizes_);
    batches_ = merge(batch_letters(), {&a_, &b_, &y_}, sizes_);
    if (ms_.empty()) ms_.push_back({});
    if (ns_.empty()) ns_.push_back({});
    const bool k_in_a = k_.empty() || a_.of(k_.back()) == 1, k_in_b = k_.empty() || b_.of(k_.back()) == 1;
    std::int64_t best = 0;
    for (std::size_t i = 0; i < ms_.size(); ++i) {
      for (std::size_t j = 0; j < ns_.size(); ++j) {
        const Merged &m = ms_[i], &n = ns_[j];
        const bool a_fine = k_in_a || m.single() || a_.of(m.last) == 1,
                   b_fine = k_in_b || n.single() || b_.of(n.last) == 1;
        const bool y_fine = m.single() || n.single() || y_.of(m.last) == 1 || y_.of(n.last) == 1;
        const std::int64_t area = m.size * n.size;
        if (!a_fine || !b_fine || !y_fine || area <= best) continue;
        best = area;
        m_ = i;
        n_ = j;
      }
    }
    return best > 0;
  }

  bool too_many_loops() const {
    std::int64_t products = 1;
    for (std::size_t i = 0; i < ms_.size(); ++i) products *= i == m_ ? 1 : ms_[i].size;
    for (std::size_t j = 0; j < ns_.size(); ++j) products *= j == n_ ? 1 : ns_[j].size;
    for (std::size_t i = 0; i + 1 < batches_.size(); ++i) products *= batches_[i].size;
    return products > kMostProducts;
  }

  void finish() {
    for (std::size_t i = 0; i < ms_.size(); ++i) {
      if (i != m_) add_loop(ms_[i]);
    }
    for (std::size_t j = 0; j < ns_.size(); ++j) {
      if (j != n_) add_loop(ns_[j]);
    }
    // The innermost batch dim is the product's; the others are loops.
    for (std::size_t i = 0; i + 1 < batches_.size(); ++i) add_loop(batches_[i]);
    const Merged batch = batches_.empty() ? Merged{} : batches_.back();
    const Merged k = k_.empty() ? Merged{} : Merged{k_size(), k_.back()};
    plan_.swapped = !ns_[n_].single() && y_.of(ns_[n_].last) != 1;
    const Layout &left = plan_.swapped ? b_ : a_, &right = plan_.swapped ? a_ : b_;
    const Merged &m = plan_.swapped ? ns_[n_] : ms_[m_], &n = plan_.swapped ? ms_[m_] : ns_[n_];
    plan_.batch = batch.size;
    plan_.m = m.size;
    plan_.n = n.size;
    plan_.k = k.size;
    plan_.left = {left.of(batch.last), left.of(m.last), left.of(k.last)};
    plan_.right = {right.of(batch.last), right.of(k.last), right.of(n.last)};
    plan_.out = {y_.of(batch.last), y_.of(m.last), y_.of(n.last)};
    // Strides of dims of size 1 do not matter; set those of a dense matrix.
    if (plan_.k == 1) plan_.left.k = plan_.left.m == 1 && plan_.m > 1 ? plan_.m : 1;
    if (plan_.m == 1) plan_.left.m = plan_.left.k == 1 ? plan_.k : 1;
    if (plan_.n == 1) plan_.right.n = plan_.right.k == 1 && plan_.k > 1 ? plan_.k : 1;
    if (plan_.k == 1) plan_.right.k = plan_.right.n == 1 ? plan_.n : 1;
    if (plan_.n == 1) plan_.out.n = 1;
    if (plan_.m == 1) plan_.out.m = plan_.n;
    plan_.pack_a = packing(a_, given_a_);
    plan_.pack_b = packing(b_, given_b_);
    plan_.pack_y = packing(y_, given_y_);
  }

  std::int64_t k_size() const {
    std::int64_t size = 1;
    for (const char c : k_) size *= sizes_.at(c);
    return size;
  }

  void add_loop(const Merged& dim) {
    plan_.loops.push_back({dim.size, a_.of(dim.last), b_.of(dim.last), y_.of(dim.last)});
  }

  std::optional<Packing> packing(const Layout& packed, const Layout& given) const {
    if (packed.letters == given.letters) return std::nullopt;
    Packing packing;
    for (const char c : packed.letters) {
      packing.size.push_back(sizes_.at(c));
      packing.stride.push_back(given.of(c));
      packing.elements *= sizes_.at(c);
    }
    return packing;
  }

  Sizes sizes_;
  Layout a_, b_, y_, given_a_, given_b_, given_y_;
  Letters k_;
  std::vector<Merged> ms_, ns_, batches_;
  std::size_t m_ = 0, n_ = 0;
  ContractPlan plan_;
};

}  // namespace

ContractPlan plan_contraction(const std::string& spec, const Shape& a, const Shape& b, const Shape& y) {
  return Planner(spec, a, b, y).run();
}

}  // namespace systole::cpu
