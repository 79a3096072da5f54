#include "ground/base/base64.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TEST(Base64, the_vectors_of_rfc_4648_both_ways) {
  for (const auto& [bytes, text] : std::initializer_list<std::pair<std::string, std::string>>{{"", ""},
                                                                                              {"f", "Zg=="},
                                                                                              {"fo", "Zm8="},
                                                                                              {"foo", "Zm9v"},
                                                                                              {"foob", "Zm9vYg=="},
                                                                                              {"fooba", "Zm9vYmE="},
                                                                                              {"foobar", "Zm9vYmFy"}}) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text).value(), bytes);
  }
}

TEST(Base64, every_byte_comes_back) {
  std::string all;
  for (int i = 0; i < 1000; ++i) all += static_cast<char>(i * 7);
  EXPECT_EQ(from_base64(to_base64(all)).value(), all);
}

TEST(Base64, line_ends_are_passed_over_and_what_is_none_is_refused) {
  EXPECT_EQ(from_base64("Zm9v\nYmFy\r\n").value(), "foobar");
  for (const char* wrong : {"Z", "Zg", "Zg=", "Zg==Zg==", "Zm9v=", "Zm.v", "====", "Zg==="})
    EXPECT_FALSE(from_base64(wrong).ok()) << wrong;
}

}  // namespace
}  // namespace systole
