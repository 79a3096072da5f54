#include "operate/cluster/shared_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "operate/cluster/record.h"

namespace systole {
namespace {

struct SharedFolder : testing::Test {
  SharedFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "systole-shared-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~SharedFolder() override { std::filesystem::remove_all(folder_); }
  void append(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name, std::ios::app) << text;
  }
  static std::string all(Output& output) {
    std::string text;
    for (const OutputPiece& piece : output.more().value()) text += piece.source + ":" + piece.text + ";";
    return text;
  }
  std::string folder_;
};

TEST_F(SharedFolder, what_jobs_write_is_given_once_and_new_files_are_found) {
  append("7.log", "one\ntw");
  append("70.log", "another job\n");
  append("record.json", "{}");
  const std::unique_ptr<Output> output = open_output_files(folder_, "7").value();
  EXPECT_EQ(all(*output), "7:one\ntw;");
  EXPECT_EQ(all(*output), "");
  append("7.log", "o\n");
  append("7_10.log", "ten\n");
  append("7_2.log", "two\n");
  EXPECT_EQ(all(*output), "7:o\n;7_2:two\n;7_10:ten\n;");
  std::filesystem::remove(folder_ + "/7.log");
  append("7.log", "anew");
  EXPECT_EQ(all(*output), "7:anew;") << "a file that is shorter is another one";
}

TEST_F(SharedFolder, a_folder_is_copied_as_the_run_names_it_and_said_when_it_is_not_there) {
  std::filesystem::create_directories(folder_ + "/runs/line/checkpoints");
  append("runs/line/checkpoints/a", "bytes");
  std::filesystem::create_directory(folder_ + "/home");
  Record record;
  record.from = folder_;
  ASSERT_TRUE(copy_shared_folder(record, "runs/line", folder_ + "/home").ok());
  EXPECT_EQ(std::filesystem::file_size(folder_ + "/home/checkpoints/a"), 5u);
  const Status none = copy_shared_folder(record, "runs/other", folder_ + "/home");
  EXPECT_EQ(none.error().kind, ErrorKind::not_found);
  EXPECT_FALSE(none.error().hint.empty());
}

}  // namespace
}  // namespace systole
