#pragma once
// The operands or results of a node: a vector of ids that stores up to four inline.

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <vector>

#include "ground/base/units.h"

namespace systole {

using ValueId = Id<struct ValueTag>;

class ValueIds {
 public:
  ValueIds() = default;
  ValueIds(std::initializer_list<ValueId> ids) : ValueIds(std::span(ids.begin(), ids.size())) {}
  ValueIds(std::span<const ValueId> ids) {
    for (const ValueId id : ids) push_back(id);
  }
  ValueIds(const std::vector<ValueId>& ids) : ValueIds(std::span(ids)) {}

  void push_back(ValueId id) {
    if (size_ < few_.size()) {
      few_[size_] = id;
    } else {
      if (size_ == few_.size()) many_.assign(few_.begin(), few_.end());
      many_.push_back(id);
    }
    ++size_;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const ValueId* data() const { return size_ <= few_.size() ? few_.data() : many_.data(); }
  ValueId* data() { return size_ <= few_.size() ? few_.data() : many_.data(); }
  const ValueId* begin() const { return data(); }
  const ValueId* end() const { return data() + size_; }
  ValueId* begin() { return data(); }
  ValueId* end() { return data() + size_; }
  ValueId operator[](std::size_t i) const { return data()[i]; }
  ValueId& operator[](std::size_t i) { return data()[i]; }
  ValueId front() const { return *begin(); }
  ValueId back() const { return *(end() - 1); }
  bool operator==(const ValueIds& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  std::size_t size_ = 0;
  std::array<ValueId, 4> few_;
  std::vector<ValueId> many_;  // all ids, once few_ is too small
};

}  // namespace systole
