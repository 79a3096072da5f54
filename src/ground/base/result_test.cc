#include "ground/base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace systole {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return error(ErrorKind::invalid, "{} is odd", n).hinted("give an even number");
  return n / 2;
}

Result<int> quarter(int n) { return TRY(half(TRY(half(n)))); }

Status both(int n) {
  TRY(half(n));
  TRY([&]() -> Status { return Done{}; }());
  return Done{};
}

TEST(Result, carries_the_value_or_the_error) {
  EXPECT_EQ(*quarter(8), 2);
  ASSERT_FALSE(quarter(6).ok());
  EXPECT_EQ(quarter(6).error().message, "3 is odd");
  EXPECT_TRUE(both(2).ok());
  EXPECT_FALSE(both(3).ok());
}

TEST(Result, moves_what_cannot_be_copied) {
  auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(7); };
  auto use = [&]() -> Result<int> {
    std::unique_ptr<int> p = TRY(make());
    return *p;
  };
  EXPECT_EQ(*use(), 7);
}

TEST(Result, value_of_an_error_throws_that_error) { EXPECT_THROW(half(1).value(), Failure); }

TEST(Error, says_place_and_hint) {
  Error e =
      error(ErrorKind::invalid, "unknown key '{}'", "modle").at({"job.yaml", 3, 3}).hinted("did you mean 'model'?");
  EXPECT_EQ(to_string(e), "job.yaml:3:3: error: unknown key 'modle'\n  hint: did you mean 'model'?");
}

TEST(Check, says_that_it_is_our_bug) {
  try {
    CHECK(1 + 1 == 3, "arithmetic of {}", "children");
    FAIL();
  } catch (const Failure& f) {
    EXPECT_EQ(f.error().kind, ErrorKind::internal);
    EXPECT_NE(std::string(f.what()).find("arithmetic of children"), std::string::npos);
  }
}

}  // namespace
}  // namespace systole
