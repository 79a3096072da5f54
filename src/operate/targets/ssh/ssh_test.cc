// Copies results from plain machines, over an ssh stand-in that is a local shell.
#include "operate/targets/ssh/ssh.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "ground/base/text_file.h"
#include "operate/cluster/record.h"
#include "operate/targets/ssh/ssh_link.h"

namespace systole {
namespace {

struct FromSsh : testing::Test {
  FromSsh() : path_(::getenv("PATH")) {
    std::string name = (std::filesystem::temp_directory_path() / "systole-ssh-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    std::filesystem::create_directories(folder_ + "/bin");
    std::filesystem::create_directories(folder_ + "/line");
    ::setenv("PATH", (folder_ + "/bin:" + path_).c_str(), 1);
    ssh("exec sh -c \"$line\"");
    record_.run = "line";
    record_.where["hosts"] = "- here here\n";
    write_text_file(folder_ + "/line/model", std::string(4 << 20, 'm')).value();
  }
  ~FromSsh() override {
    ::setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }
  void ssh(const std::string& does) {
    write_text_file(folder_ + "/bin/ssh", "#!/bin/sh\nfor line; do :; done\n" + does + "\n").value();
    ::chmod((folder_ + "/bin/ssh").c_str(), 0755);
  }
  Status brought(const std::string& from, const std::string& into) {
    return open_ssh().value()->bring(record_, folder_ + from, folder_ + into);
  }
  std::string folder_, path_;
  Record record_;
};

TEST_F(FromSsh, a_folder_comes_as_it_is) {
  std::filesystem::create_directories(folder_ + "/home");
  const Status came = brought("/line", "/home");
  ASSERT_TRUE(came.ok()) << to_string(came.error());
  EXPECT_EQ(read_text_file(folder_ + "/home/model").value(), std::string(4 << 20, 'm'));
  EXPECT_EQ(brought("/another", "/home").error().kind, ErrorKind::not_found);
}

TEST_F(FromSsh, what_cannot_be_written_here_ends_it) {
  const Status came = brought("/line", "/no such folder");  // more data than a pipe holds
  ASSERT_FALSE(came.ok());
  EXPECT_TRUE(came.error().message.starts_with("cannot write into")) << came.error().message;
}

// A tar gives owners and modes: here the files become ours, without set-user-id bits.
TEST_F(FromSsh, what_comes_is_ours) {
  std::filesystem::create_directories(folder_ + "/home");
  ::chmod((folder_ + "/line/model").c_str(), 06755);
  ssh("sh -c \"$(printf %s \"$line\" | sed 's/tar -cf/tar --owner=12345 --group=12345 -cf/')\"");
  const Status came = brought("/line", "/home");
  ASSERT_TRUE(came.ok()) << to_string(came.error());
  struct stat info {};
  ASSERT_EQ(::stat((folder_ + "/home/model").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, ::geteuid());
  EXPECT_EQ(info.st_mode & 07000, 0U);
}

TEST_F(FromSsh, an_answer_without_an_end_is_refused) {
  ssh("head -c 3000000 /dev/zero | tr '\\0' x; cat >/dev/null");
  HostSession talk = HostSession::open({"-", "here", "here"}, "true").value();
  const Result<std::string> said = talk.hear();
  ASSERT_FALSE(said.ok());
  EXPECT_NE(said.error().message.find("a line of more than 64 KiB"), std::string::npos) << said.error().message;
}

TEST_F(FromSsh, a_connection_that_is_cut_is_said) {
  std::filesystem::create_directories(folder_ + "/home");
  ssh("sh -c \"$line\" | head -c 100000; exit 255");
  const Status came = brought("/line", "/home");
  ASSERT_FALSE(came.ok());
  EXPECT_NE(came.error().message.find("came in part"), std::string::npos) << came.error().message;
}

}  // namespace
}  // namespace systole
