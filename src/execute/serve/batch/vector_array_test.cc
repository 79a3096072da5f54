#include "execute/serve/batch/vector_array.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace systole {
namespace {

std::string line(const std::string& vector) {
  return R"({"index":0,"custom_id":null,"response":{"status_code":200,"body":{"data":[{"embedding":)" + vector +
         R"(}]}},"error":null})" + "\n";
}
constexpr const char* kError = "{\"index\":1,\"custom_id\":null,\"response\":null,\"error\":{}}\n";

class VectorArray : public testing::Test {
 protected:
  Status write(const std::string& lines) {
    write_whole(*store_, "v.jsonl", lines).value();
    return write_vector_array(*store_, "v.jsonl", "v.npy");
  }
  std::string array() { return read_text(*store_, "v.npy").value(); }
  const std::unique_ptr<Store> store_ = make_memory_store();
};

TEST_F(VectorArray, has_a_row_for_each_line_and_nan_where_one_has_an_error) {
  write(kError + line("[1,0.5]") + line("[-2,1e-3]")).value();
  const std::string bytes = array();
  ASSERT_EQ(bytes.size(), 128U + 6 * sizeof(float));
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ(bytes.substr(8, 2), std::string("\x76\x00", 2)) << "what follows, to byte 128";
  EXPECT_TRUE(bytes.substr(10).starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), } "));
  EXPECT_EQ(bytes[127], '\n');
  float numbers[6];
  std::memcpy(numbers, bytes.data() + 128, sizeof numbers);
  EXPECT_TRUE(std::isnan(numbers[0]) && std::isnan(numbers[1]));
  EXPECT_EQ(numbers[2], 1.0f);
  EXPECT_EQ(numbers[3], 0.5f);
  EXPECT_EQ(numbers[4], -2.0f);
  EXPECT_EQ(numbers[5], 1e-3f);
}

TEST_F(VectorArray, is_not_made_of_other_lines) {
  EXPECT_EQ(write(line("[1,2]") + line("[1]")).error().message, "row 1 of 'v.jsonl' has 1 numbers, the first one 2");
  EXPECT_EQ(write(line("\"AAAA\"")).error().message, "row 0 of 'v.jsonl' has no vector as numbers");
  EXPECT_FALSE(store_->exists("v.npy").value());
  write("").value();
  EXPECT_NE(array().find("'shape': (0, 0)"), std::string::npos);
}

}  // namespace
}  // namespace systole
