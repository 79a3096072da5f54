#include "operate/registry/registry.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <thread>

#include "ground/base/text_file.h"
#include "operate/cluster/audit.h"

namespace systole {
namespace {

struct Registry : testing::Test {
  Registry() : runs_(made()) {}
  ~Registry() override { std::filesystem::remove_all(runs_); }

  static std::string made() {
    std::string name = (std::filesystem::temp_directory_path() / "systole-registry-XXXXXX").string();
    return ::mkdtemp(name.data());
  }
  static RegisteredModel model(const std::string& name = "tiny") {
    RegisteredModel model;
    model.name = name;
    model.path = "runs/tiny-1";
    model.step = 4;
    model.sha256 = {{"000000000004.json", "ab"}, {"tokenizer.model", "cd"}};
    model.workload_sha256 = "ef";
    model.data = "38fed08f57c30289";
    model.parents = {{"runs/wide-1@8", ""}, {"path/to/model", "01"}};
    model.metrics = {{"loss", 2.5}, {"accuracy", 0.1 + 0.2}};
    return model;
  }
  RegisteredModel add(const std::string& name = "tiny") { return register_model(runs_, model(name), clock_).value(); }
  Result<Promoted> promote(std::int64_t version, ModelStage to, std::vector<Requirement> required = {}) {
    return promote_model(runs_, {"tiny", version, {}}, to, required, clock_);
  }
  std::string file() const { return runs_ + "/.models/audit.jsonl"; }
  std::string text() const { return read_text_file(file()).value(); }

  FakeClock clock_;
  std::string runs_;
};

TEST_F(Registry, is_made_by_the_first_model) {
  EXPECT_TRUE(registered_models(runs_).value().empty());
  EXPECT_TRUE(registered_models(runs_ + "/none").value().empty());
  EXPECT_FALSE(std::filesystem::exists(runs_ + "/.models"));
}

TEST_F(Registry, reads_back_what_was_registered) {
  RegisteredModel expected = model();
  const RegisteredModel made = add();
  EXPECT_EQ(made.at, "2000-01-01T00:00:00.000Z");
  EXPECT_FALSE(made.by.empty());
  expected.version = 1, expected.at = made.at, expected.by = made.by;
  EXPECT_EQ(made, expected);
  EXPECT_EQ(add().version, 2);
  EXPECT_EQ(add("wide").version, 1);
  EXPECT_EQ(registered_models(runs_).value().size(), 3U);
  EXPECT_TRUE(verify_audit(runs_ + "/.models").ok());
}

TEST_F(Registry, a_promotion_is_recorded_and_takes_the_place_of_another) {
  add(), add();
  const Promoted first = promote(1, ModelStage::production, {parse_requirement("loss<3").value()}).value();
  EXPECT_EQ(first.from, ModelStage::none);
  EXPECT_EQ(first.archived, std::nullopt);
  const Promoted second = promote(2, ModelStage::production).value();
  EXPECT_EQ(second.archived, 1);
  const std::vector<RegisteredModel> models = registered_models(runs_).value();
  EXPECT_EQ(models[0].stage, ModelStage::archived);
  EXPECT_EQ(models[1].stage, ModelStage::production);
  ASSERT_EQ(models[0].promotions.size(), 2U);
  EXPECT_EQ(models[0].promotions[0].required, std::vector<std::string>{"loss<3"});
  EXPECT_EQ(models[0].promotions[1].from, ModelStage::production);
  EXPECT_EQ(models[0].promotions[1].to, ModelStage::archived);
  EXPECT_EQ(promote(1, ModelStage::production).value().archived, 2) << "back to the one before";
  EXPECT_EQ(promote(2, ModelStage::archived).value().archived, std::nullopt) << "many may be archived";
}

TEST_F(Registry, a_requirement_that_is_not_met_changes_nothing) {
  add();
  const std::string before = text();
  const Error why = promote(1, ModelStage::production,
                            {parse_requirement("loss<3").value(), parse_requirement("accuracy>=0.71").value(),
                             parse_requirement("recall>0").value()})
                        .error();
  EXPECT_EQ(why.code, ErrorCode::requirement_not_met);
  EXPECT_EQ(why.others.size(), 1U) << "both that are not met are said";
  EXPECT_EQ(text(), before);
}

TEST_F(Registry, of_writers_at_once_each_gets_a_version) {
  std::vector<std::thread> writers;
  for (int i = 0; i < 8; ++i)
    writers.emplace_back([this] {
      const std::unique_ptr<Clock> clock = real_clock();
      for (int j = 0; j < 4; ++j) register_model(runs_, model(), *clock).value();
    });
  for (std::thread& writer : writers) writer.join();
  const std::vector<RegisteredModel> models = registered_models(runs_).value();
  ASSERT_EQ(models.size(), 32U);
  for (std::size_t i = 0; i < models.size(); ++i) EXPECT_EQ(models[i].version, static_cast<std::int64_t>(i + 1));
}

TEST_F(Registry, each_changed_byte_shows_and_stays) {
  add();
  promote(1, ModelStage::staging).value();
  const std::string whole = text();
  for (std::size_t i = 0; i + 1 < whole.size(); i += 7) {
    std::string changed = whole;
    changed[i] = changed[i] == 'x' ? 'y' : 'x';
    write_text_file(file(), changed).value();
    const Result<std::vector<RegisteredModel>> models = registered_models(runs_);
    ASSERT_FALSE(models.ok()) << i;
    EXPECT_EQ(models.error().kind, ErrorKind::corrupt) << i;
    EXPECT_EQ(models.error().where.file, file());
    EXPECT_NE(models.error().hint.find("mv "), std::string::npos);
    EXPECT_FALSE(register_model(runs_, model(), clock_).ok()) << i;
    EXPECT_EQ(text(), changed);
  }
}

TEST_F(Registry, what_a_killed_writer_left_is_no_model) {
  add();
  write_text_file(file(), text() + "{\"n\":2,\"at\":\"2000").value();
  EXPECT_EQ(registered_models(runs_).value().size(), 1U);
  EXPECT_EQ(add().version, 2);
  EXPECT_TRUE(verify_audit(runs_ + "/.models").ok());
}

TEST_F(Registry, lines_that_do_not_follow_are_refused) {
  add();
  const std::string before = text();
  Audit audit(runs_ + "/.models", clock_);
  const auto error_after = [&](const char* act, const Node& more) {
    write_text_file(file(), before).value();
    audit.append(act, "", more).value();
    Error error = registered_models(runs_).error();
    EXPECT_EQ(error.where.line, 2) << act;
    return error;
  };
  const Node promotion = Node::map({{"format", 1},
                                    {"model", "tiny"},
                                    {"version", 1},
                                    {"from", "none"},
                                    {"to", "staging"},
                                    {"required", Node::sequence()},
                                    {"archived", Node()}});
  const auto with = [&](const char* key, Node value) {
    Node line = promotion;
    return line.set(key, std::move(value));
  };
  EXPECT_EQ(error_after("promote", with("from", "staging")).kind, ErrorKind::corrupt);
  EXPECT_EQ(error_after("promote", with("version", 2)).kind, ErrorKind::corrupt);
  EXPECT_EQ(error_after("promote", with("to", "nowhere")).kind, ErrorKind::corrupt);
  EXPECT_EQ(error_after("promote", with("archived", 1)).kind, ErrorKind::corrupt);
  EXPECT_EQ(error_after("register", Node::map({{"format", 1}})).kind, ErrorKind::corrupt);
  EXPECT_EQ(error_after("promote", with("format", 2)).code, ErrorCode::newer_version);
  EXPECT_EQ(error_after("retire", promotion).code, ErrorCode::newer_version);
}

}  // namespace
}  // namespace systole
