#include "ground/store/git_lfs.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TEST(GitLfs, APointerIsToldFromTheFileItself) {
  const auto store = make_memory_store();
  write_whole(*store, "pointer",
              "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, '0') + "\nsize 2471645608\n")
      .value();
  const Error refused = refuse_lfs_pointer(*store, "pointer").error();
  EXPECT_EQ(refused.kind, ErrorKind::invalid);
  EXPECT_EQ(refused.message, "this is a pointer of git-lfs, and the file itself of 2.30 GiB was not fetched");
  EXPECT_EQ(refused.where.file, "pointer");
  EXPECT_EQ(refused.hint, "in its repository: git lfs pull");
  for (const std::string& text :
       std::vector<std::string>{std::string(), std::string("version 2\n"), std::string("{}"),
                                "version https://git-lfs.github.com/spec/v1\n" + std::string(2000, 'x')}) {
    write_whole(*store, "file", text).value();
    EXPECT_TRUE(refuse_lfs_pointer(*store, "file").ok()) << text;
  }
  write_whole(*store, "short", "version https://git-lfs.github.com/spec/v1\nsize much\n").value();
  EXPECT_EQ(refuse_lfs_pointer(*store, "short").error().message,
            "this is a pointer of git-lfs, and the file itself was not fetched");
  EXPECT_EQ(refuse_lfs_pointer(*store, "gone").error().kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace systole
