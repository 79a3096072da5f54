#include "ground/base/text_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace systole {
namespace {

class TextFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "systole-text-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(TextFile, comes_back_as_it_was_written) {
  const std::string path = folder_ + "/a";
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{65536}, std::size_t{200000}}) {
    std::string text(size, 'x');
    if (size > 1) text[size / 2] = '\0';
    ASSERT_TRUE(write_text_file(path, text).ok());
    EXPECT_EQ(read_text_file(path).value(), text);
  }
}

TEST_F(TextFile, that_cannot_be_had_is_named_with_the_reason) {
  const Result<std::string> absent = read_text_file(folder_ + "/none");
  EXPECT_EQ(absent.error().kind, ErrorKind::not_found);
  EXPECT_EQ(absent.error().message, "there is no file '" + folder_ + "/none'");
  EXPECT_EQ(read_text_file(folder_).error().message, "'" + folder_ + "' is a folder, not a file");
  EXPECT_EQ(read_text_file("/dev/zero", 2 * kMiB).error().message, "'/dev/zero' is larger than 2.00 MiB");
  EXPECT_EQ(write_text_file(folder_ + "/no/file", "a").error().kind, ErrorKind::not_found);
  EXPECT_TRUE(check_writable(folder_ + "/new").ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/new"));
  EXPECT_EQ(check_writable(folder_ + "/no/file").error().kind, ErrorKind::not_found);
  EXPECT_FALSE(check_writable(folder_).ok());
  EXPECT_NE(check_writable(folder_).error().message.find("directory"), std::string::npos);
  EXPECT_EQ(write_text_file("/dev/full", "a").error().kind, ErrorKind::no_space);
}

}  // namespace
}  // namespace systole
