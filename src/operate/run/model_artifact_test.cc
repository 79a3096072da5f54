#include "operate/run/model_artifact.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "ground/base/testing/files.h"
#include "ground/base/text_file.h"

namespace systole {
namespace {

using Kind = ArtifactState::Kind;

struct PublishedModel : testing::Test {
  PublishedModel() {
    std::filesystem::create_directories(folder_.path() + "/1_Pooling");
    std::filesystem::create_directories(folder_.path() + "/.cache");
    write("config.json", "{}");
    write("1_Pooling/config.json", "{}");
    write(".cache/lock", "");
    model_.name = "published";
    model_.path = folder_.path();
    model_.sha256 = hashes_of_folder(folder_.path()).value();
  }
  void write(const std::string& name, const std::string& text) const {
    write_text_file(folder_.path() + "/" + name, text).value();
  }
  ArtifactState state() const { return artifact_state(model_, checkpoint::Verify::contents).value(); }

  TemporaryFolder folder_;
  RegisteredModel model_;
};

TEST_F(PublishedModel, is_all_its_files_but_hidden_ones) {
  EXPECT_EQ(model_.sha256.size(), 2U);
  EXPECT_EQ(model_.sha256["1_Pooling/config.json"], "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
  write(".cache/lock", "other");
  EXPECT_EQ(state().kind, Kind::intact);
  EXPECT_TRUE(check_artifact(model_, checkpoint::Verify::lengths).ok());
}

TEST_F(PublishedModel, that_changed_or_went_says_what) {
  write("1_Pooling/config.json", "{ }");
  EXPECT_EQ(state().kind, Kind::changed);
  EXPECT_TRUE(state().why.starts_with("'1_Pooling/config.json' has SHA-256 ")) << state().why;
  EXPECT_EQ(check_artifact(model_, checkpoint::Verify::lengths).error().kind, ErrorKind::corrupt);
  write("1_Pooling/config.json", "{}");
  write("chat_template.jinja", "");
  EXPECT_EQ(state().why, "'chat_template.jinja' is new");
  std::filesystem::remove(folder_.path() + "/chat_template.jinja");
  std::filesystem::remove(folder_.path() + "/config.json");
  EXPECT_EQ(state().kind, Kind::gone);
  EXPECT_EQ(state().why, "'config.json' is gone");
  std::filesystem::remove_all(folder_.path());
  EXPECT_EQ(state().kind, Kind::gone);
  EXPECT_EQ(check_artifact(model_, checkpoint::Verify::lengths).error().kind, ErrorKind::not_found);
}

TEST_F(PublishedModel, may_be_one_file) {
  model_.path = folder_.path() + "/config.json";
  model_.sha256 = hashes_of_folder(model_.path).value();
  EXPECT_EQ(model_.sha256.begin()->first, "config.json");
  EXPECT_EQ(state().kind, Kind::intact);
}

}  // namespace
}  // namespace systole
