#include "predict/perf/stack.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

// A profile has so few numbers that it can describe a stack but not memorise the rows.
TEST(StackProfile, at_most_eight_of_at_most_a_dozen_numbers_within_bounds) {
  EXPECT_LE(stack_numbers().size(), 12u);
  EXPECT_LE(builtin_stacks().size(), static_cast<std::size_t>(kMostStacks) + 1);
  for (const StackProfile& stack : builtin_stacks()) {
    for (const StackNumber& number : stack_numbers()) {
      SCOPED_TRACE(stack.name + " " + number.name);
      EXPECT_LT(number.least, number.most);
      EXPECT_GE(stack.*number.member, number.least);
      EXPECT_LE(stack.*number.member, number.most);
    }
  }
}

TEST(StackProfile, reads_back) {
  const std::string text = to_yaml(builtin_stacks());
  const std::vector<StackProfile> again = read_stacks(text, "again.yaml").value();
  EXPECT_EQ(to_yaml(again), text);
}

TEST(StackProfile, found_by_framework) {
  const auto name = [](const char* framework) { return stack_of(builtin_stacks(), framework).name; };
  EXPECT_EQ(name("MaxText (JAX/XLA)"), "maxtext");
  EXPECT_EQ(name("MaxText (JAX/XLA GPU)"), "xla-gpu");
  EXPECT_EQ(name("NeMo Megatron 23.07"), "megatron");
  EXPECT_EQ(name("Megatron-DeepSpeed"), "megatron-deepspeed");
  EXPECT_EQ(name("NeMo 24.09 (Megatron-Core)"), "megatron-core");
  EXPECT_EQ(name("PyTorch FSDP1 / Composer"), "fsdp");
  EXPECT_EQ(name("megatron"), "megatron");
  EXPECT_EQ(name("a stack that nobody knows"), "default");
}

std::string refusal(const std::string& from, const std::string& to) {
  std::string text = to_yaml(builtin_stacks());
  const std::size_t at = text.find(from);
  CHECK(at != text.npos, "no '{}'", from);
  const auto read = read_stacks(text.replace(at, from.size(), to), "mine.yaml");
  return read.ok() ? "read" : to_string(read.error());
}

TEST(StackProfile, refusals_say_what_and_where) {
  EXPECT_NE(refusal("    movement: ", "    movment: ").find("did you mean 'movement'?"), std::string::npos);
  const std::string bound = refusal("    tensor_hidden: ", "    tensor_hidden: 3  # ");
  EXPECT_NE(bound.find("mine.yaml:"), std::string::npos) << bound;
  EXPECT_NE(bound.find("it lies between 0 and 0.95"), std::string::npos) << bound;
  EXPECT_NE(refusal("  default:", "  usual:").find("no profile 'default'"), std::string::npos);
}

}  // namespace
}  // namespace systole
