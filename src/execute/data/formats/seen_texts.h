#pragma once
// Which texts of a pass over documents were there before.

#include <memory>
#include <string_view>

namespace systole {

// Tells which texts were seen before, by a hash of 128 bits: 16 bytes a text and the set's own (about 40 in all).
class SeenTexts {
 public:
  SeenTexts();
  ~SeenTexts();
  bool add(std::string_view text);  // false: seen before

 private:
  struct Set;
  std::unique_ptr<Set> set_;
};

}  // namespace systole
