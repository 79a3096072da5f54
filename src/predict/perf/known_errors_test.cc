#include "predict/perf/known_errors.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

constexpr const char* kTable =
    "stack,work,accelerator,of,rows,mean,p90,fitted_mean\n"
    "megatron-core,dense,h100,step_time,85,0.1000,0.2000,0.0450\n"
    "megatron-core,dense,b200,step_time,4,0.3000,0.3500,0.1000\n"
    "megatron-core,dense,any,step_time,89,0.1100,0.2100,0.0480\n"
    "unseen,dense,v5e,step_time,18,0.0900,0.1500,\n"
    "unseen,dense,any,step_time,400,0.1150,0.2400,\n";

const KnownError* found(std::span<const KnownError> errors, const char* stack, const char* work, const char* on) {
  return find_known_error(errors, stack, work, on, "step_time");
}

TEST(KnownErrors, the_nearest_kind_of_which_enough_is_known_is_found) {
  const std::vector<KnownError> errors = read_known_errors(kTable, "t.csv").value();
  ASSERT_EQ(errors.size(), 5u);
  EXPECT_EQ(found(errors, "megatron-core", "dense", "h100"), &errors[0]);
  EXPECT_EQ(found(errors, "megatron-core", "dense", "b200"), &errors[2]) << "four rows are too few";
  EXPECT_EQ(found(errors, "default", "dense", "v5e"), &errors[3]);
  EXPECT_EQ(found(errors, "default", "dense", "v4"), &errors[4]);
  EXPECT_EQ(found(errors, "megatron-core", "moe", "h100"), nullptr);
  EXPECT_EQ(find_known_error(errors, "megatron-core", "dense", "h100", "memory"), nullptr);
}

TEST(KnownErrors, a_table_reads_back) {
  const std::vector<KnownError> errors = read_known_errors(kTable, "t.csv").value();
  EXPECT_EQ(to_csv(errors), kTable);
  EXPECT_EQ(read_known_errors(to_csv(builtin_known_errors()), "b.csv").value(), builtin_known_errors());
  EXPECT_GT(builtin_known_errors().size(), 50u);
}

TEST(KnownErrors, what_is_no_table_of_them_is_refused_at_its_place) {
  const std::string head = "stack,work,accelerator,of,rows,mean,p90,fitted_mean\n",
                    row = "a,dense,h100,memory,9,0.1,0.2,\n";
  EXPECT_EQ(to_string(read_known_errors(head + row + row, "t.csv").error()).find("t.csv:3:1"), 0u);
  EXPECT_FALSE(read_known_errors(head + "a,dense,h100,memory,9,-0.1,0.2,\n", "t.csv").ok());
  EXPECT_FALSE(read_known_errors("stack,work\na,dense\n", "t.csv").ok());
}

}  // namespace
}  // namespace systole
