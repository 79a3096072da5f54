#include "ground/base/files.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>

namespace systole {
namespace {

const std::string kTooLong(300, 'n');

TEST(Files, a_name_that_is_too_long_is_not_there_and_is_an_error_to_make) {
  EXPECT_FALSE(path_exists(kTooLong));
  EXPECT_FALSE(is_folder(kTooLong));
  EXPECT_FALSE(is_file(kTooLong));
  EXPECT_TRUE(paths_in(kTooLong).empty());
  EXPECT_FALSE(files_below(kTooLong).ok());
  const Status made = make_folders("/tmp/" + kTooLong);
  ASSERT_FALSE(made.ok());
  EXPECT_TRUE(made.error().message.ends_with("File name too long")) << made.error().message;
}

TEST(Files, a_working_folder_that_is_gone_is_an_error_with_a_way_out) {
  const std::string before = working_folder().value();
  std::string gone = "/tmp/systole-files-XXXXXX";
  ASSERT_NE(mkdtemp(gone.data()), nullptr);
  ASSERT_EQ(chdir(gone.c_str()), 0);
  ASSERT_EQ(rmdir(gone.c_str()), 0);
  const Result<std::string> here = working_folder(), below = absolute_path("a"), elsewhere = absolute_path("/a/./b/..");
  ASSERT_EQ(chdir(before.c_str()), 0);
  ASSERT_FALSE(here.ok());
  EXPECT_EQ(here.error().kind, ErrorKind::not_found);
  EXPECT_FALSE(below.ok());
  EXPECT_EQ(elsewhere.value(), "/a/");
}

TEST(Files, what_lies_in_a_folder_is_sorted) {
  std::string folder = "/tmp/systole-files-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::filesystem::path root(folder);
  ASSERT_TRUE(make_folders(root / "b" / "c").ok());
  std::ofstream(root / "b" / "c" / "x") << "x";
  std::ofstream(root / "a") << "a";
  EXPECT_EQ(paths_in(root), (std::vector<std::filesystem::path>{root / "a", root / "b"}));
  EXPECT_EQ(files_below(root).value(), (std::vector<std::filesystem::path>{root / "a", root / "b" / "c" / "x"}));
  EXPECT_FALSE(make_folders(root / "a").ok());
  std::filesystem::remove_all(root);
}

// /proc reports ENOENT for what cannot be created in it.
TEST(Files, a_folder_that_the_file_system_refuses_is_of_kind_io) {
  EXPECT_EQ(make_folders("/proc/systole").error().kind, ErrorKind::io);
}

}  // namespace
}  // namespace systole
