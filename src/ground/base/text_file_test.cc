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
  EXPECT_EQ(read_text_file("/dev/zero", 2 * kMiB).error().message, "'/dev/zero' is a device, not a file");
  EXPECT_EQ(read_text_file("/dev/null").value(), "") << "as empty as it says";
  EXPECT_EQ(write_text_file(folder_ + "/no/file", "a").error().kind, ErrorKind::not_found);
  EXPECT_TRUE(check_writable(folder_ + "/new").ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/new"));
  EXPECT_EQ(check_writable(folder_ + "/no/file").error().kind, ErrorKind::not_found);
  EXPECT_FALSE(check_writable(folder_).ok());
  EXPECT_NE(check_writable(folder_).error().message.find("directory"), std::string::npos);
  EXPECT_EQ(write_text_file("/dev/full", "a").error().kind, ErrorKind::no_space);
}

TEST_F(TextFile, is_read_no_further_than_its_limit) {
  const std::string path = folder_ + "/sparse";
  ASSERT_TRUE(write_text_file(path, "12345").ok());
  EXPECT_EQ(read_text_file(path, Bytes(5)).value(), "12345");
  EXPECT_EQ(read_text_file(path, Bytes(4)).error().kind, ErrorKind::invalid);
  std::filesystem::resize_file(path, std::uintmax_t{1} << 40);
  EXPECT_EQ(read_text_file(path).error().message, "'" + path + "' is larger than 256 MiB");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "12345", 5), 5);
  EXPECT_EQ(read_text_from(ends[0], "standard input", Bytes(3)).error().message, "'standard input' is larger than 3 B");
  char left = 0;
  ASSERT_EQ(::read(ends[0], &left, 1), 1);
  EXPECT_EQ(left, '5') << "one byte more than the limit was taken";
  const std::string open = "/dev/fd/" + std::to_string(ends[0]);
  ASSERT_EQ(::write(ends[1], "piped", 5), 5);
  ::close(ends[1]);
  EXPECT_EQ(read_text_file(open).value(), "piped");
  ::close(ends[0]);
}

TEST_F(TextFile, with_a_secret_is_its_owners_alone) {
  using std::filesystem::perms;
  const std::string path = folder_ + "/secret";
  ASSERT_TRUE(write_text_file(path, "x").ok());
  std::filesystem::permissions(path, perms::owner_read | perms::owner_write);
  EXPECT_EQ(read_secret_file(path, kKiB).value(), "x");
  EXPECT_FALSE(readable_by_others(path));
  for (const perms more : {perms::group_read, perms::others_read, perms::others_write}) {
    std::filesystem::permissions(path, perms::owner_read | more);
    const Result<std::string> read = read_secret_file(path, kKiB);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().hint, "chmod 600 " + path);
    EXPECT_EQ(read_secret_file(path, kKiB, true).value(), "x");
    EXPECT_TRUE(readable_by_others(path));
  }
  EXPECT_EQ(read_secret_file("/dev/zero", kKiB).error().kind, ErrorKind::invalid);
}

}  // namespace
}  // namespace systole
