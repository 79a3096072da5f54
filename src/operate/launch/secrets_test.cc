#include "operate/launch/secrets.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace systole {
namespace {

namespace fs = std::filesystem;

const std::string kPlanted = "hunter2-Zx9-planted";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class Secrets : public testing::Test {
 protected:
  Secrets() {
    std::string name = (fs::temp_directory_path() / "systole-secrets-XXXXXX").string();
    CHECK(mkdtemp(name.data()) != nullptr, "no temporary folder");
    folder_ = name;
    write("secret", kPlanted + "\n", fs::perms::owner_read | fs::perms::owner_write);
  }
  ~Secrets() override {
    ::setenv("PATH", path_.c_str(), 1);
    for (const char* name : {"SYSTOLE_SECRETS", "TEST_SECRET", "TOKEN"}) ::unsetenv(name);
    fs::remove_all(folder_);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text, fs::perms perms) const {
    fs::remove(folder_ / name);
    std::ofstream(folder_ / name) << text;
    fs::permissions(folder_ / name, perms);
  }
  static Result<std::string> token(const std::string& reference) {
    Workload w;
    w.secrets = {{"TOKEN", reference}};
    const auto secrets = read_secrets(w);
    if (!secrets.ok()) return secrets.error();
    CHECK(secrets->size() == 1 && secrets->front().first == "TOKEN", "one secret gives one variable");
    return secrets->front().second;
  }
  void refuses(const std::string& reference, const std::string& part) const {
    const Result<std::string> value = token(reference);
    ASSERT_FALSE(value.ok()) << reference;
    const std::string said = to_string(value.error());
    EXPECT_TRUE(has(said, part)) << said;
    EXPECT_TRUE(has(said, "TOKEN (" + reference + ")")) << said;
    EXPECT_FALSE(has(said, kPlanted)) << "what stands there is in no message: " << said;
  }

  fs::path folder_;
  std::string path_ = std::getenv("PATH");
};

TEST_F(Secrets, of_a_file_are_its_text_without_the_lines_end) {
  EXPECT_EQ(token("file:" + path("secret")).value(), kPlanted);
  write("secret", "two\nlines\r\n", fs::perms::owner_read);
  EXPECT_EQ(token("file:" + path("secret")).value(), "two\nlines");
}

TEST_F(Secrets, of_a_file_that_others_may_read_are_refused) {
  using fs::perms;
  for (const perms more : {perms::group_read, perms::others_read, perms::group_write, perms::others_exec}) {
    write("secret", kPlanted, perms::owner_read | more);
    refuses("file:" + path("secret"), "may be read by others than its owner");
  }
}

TEST_F(Secrets, that_are_not_there_or_hold_nothing_are_refused) {
  refuses("file:" + path("none"), "there is no file");
  refuses("file:" + folder_.string(), "is a folder, not a file");
  refuses("file:/dev/zero", "is a device, not a file");
  write("secret", "\n", fs::perms::owner_read);
  refuses("file:" + path("secret"), "there is nothing in it");
  write("secret", kPlanted + std::string(1, '\0'), fs::perms::owner_read);
  refuses("file:" + path("secret"), "it has a NUL");
  write("secret", kPlanted + std::string(70000, 'x'), fs::perms::owner_read);
  refuses("file:" + path("secret"), "more than 64 KiB");
  refuses("env:TEST_SECRET", "no variable TEST_SECRET");
  refuses("kubernetes:hub/token", "is there in a pod alone");
}

TEST_F(Secrets, of_the_environment_and_of_a_pod_are_variables) {
  ::setenv("TEST_SECRET", kPlanted.c_str(), 1);
  EXPECT_EQ(token("env:TEST_SECRET").value(), kPlanted);
  ::setenv("TOKEN", kPlanted.c_str(), 1);
  EXPECT_EQ(token("kubernetes:hub/token").value(), kPlanted);
}

TEST_F(Secrets, of_secret_manager_are_asked_of_gcloud_by_name) {
  fs::create_directory(folder_ / "bin");
  write("bin/gcloud", "#!/bin/sh\necho \"$*\" >" + path("asked") + "\ncat " + path("secret") + "\n",
        fs::perms::owner_all);
  ::setenv("PATH", (path("bin") + ":" + path_).c_str(), 1);
  EXPECT_EQ(token("secret-manager:my-project/hub/7").value(), kPlanted);
  std::stringstream asked;
  asked << std::ifstream(path("asked")).rdbuf();
  EXPECT_EQ(asked.str(), "secrets versions access 7 --secret=hub --project=my-project --quiet\n");
  write("bin/gcloud", "#!/bin/sh\necho " + kPlanted + " >&2\nexit 1\n", fs::perms::owner_all);
  refuses("secret-manager:p/hub", "gcloud may not read projects/p/secrets/hub/versions/latest");
  ::setenv("PATH", path("bin/none").c_str(), 1);
  refuses("secret-manager:p/hub", "there is no gcloud");
}

TEST_F(Secrets, of_secret_manager_are_files_in_a_pod) {
  fs::create_directory(folder_ / "pod");
  write("pod/TOKEN", kPlanted, fs::perms::owner_read | fs::perms::group_read);  // the mode that the driver writes
  ::setenv("SYSTOLE_SECRETS", path("pod").c_str(), 1);
  EXPECT_EQ(token("secret-manager:p/hub").value(), kPlanted);
  fs::remove(folder_ / "pod/TOKEN");
  refuses("secret-manager:p/hub", "there is no file");
}

}  // namespace
}  // namespace systole
