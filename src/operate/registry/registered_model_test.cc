#include "operate/registry/registered_model.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

std::vector<RegisteredModel> models() {
  std::vector<RegisteredModel> all(4);
  for (std::size_t i = 0; i < 3; ++i) all[i].name = "tiny", all[i].version = static_cast<std::int64_t>(i + 1);
  all[3].name = "wide", all[3].version = 1;
  all[0].stage = ModelStage::production;
  all[2].stage = all[3].stage = ModelStage::archived;
  return all;
}

Result<std::string> found(const char* text) {
  const std::vector<RegisteredModel> all = models();
  return TRY(find_model_in(all, TRY(parse_model_reference(text))))->id();
}

TEST(ModelReferences, name_a_version_a_stage_or_the_newest_that_is_not_archived) {
  EXPECT_EQ(found("tiny").value(), "tiny:2");
  EXPECT_EQ(found("models:tiny").value(), "tiny:2");
  EXPECT_EQ(found("tiny:3").value(), "tiny:3");
  EXPECT_EQ(found("tiny@production").value(), "tiny:1");
  EXPECT_EQ(found("models:tiny@archived").value(), "tiny:3");
}

TEST(ModelReferences, that_find_nothing_say_what_there_is) {
  const auto told = [](const char* text) {
    const Error error = found(text).error();
    EXPECT_EQ(error.kind, ErrorKind::not_found);
    return error.message + "; " + error.hint;
  };
  EXPECT_EQ(told("tiny:4"), "'tiny' has no version 4: the newest is 3; systole models list tiny");
  EXPECT_EQ(told("tiny@staging"),
            "no version of 'tiny' has the stage staging; systole models promote tiny:3 --to staging");
  EXPECT_EQ(told("wide"), "the only version of 'wide' is archived; name the version: models:wide:1");
  EXPECT_EQ(told("tinny"), "there is no registered model 'tinny'; did you mean 'tiny'?");
}

TEST(ModelReferences, of_no_form_are_refused) {
  for (const char* wrong : {"",
                            "models:",
                            ":1",
                            "@production",
                            "tiny:",
                            "tiny:0",
                            "tiny:-1",
                            "tiny:1x",
                            "tiny:99999999999999999999",
                            "tiny@",
                            "tiny@prod",
                            "tiny:1@production",
                            "../tiny",
                            "models:models:tiny",
                            "-tiny",
                            ".tiny",
                            "ti ny",
                            "ti\nny",
                            "ti\x1bny",
                            "t\xc3\xbcny"})
    EXPECT_EQ(parse_model_reference(wrong).error().kind, ErrorKind::invalid) << wrong;
  EXPECT_TRUE(check_model_name(std::string(100, 'a')).ok());
  EXPECT_FALSE(check_model_name(std::string(101, 'a')).ok());
}

}  // namespace
}  // namespace systole
