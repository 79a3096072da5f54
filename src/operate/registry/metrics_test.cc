#include "operate/registry/metrics.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

Result<Metrics> read(const std::string& text) { return metrics_in(parse_json(text, "results.json").value()); }

TEST(MetricsOfModels, are_a_name_and_a_number) {
  EXPECT_EQ(parse_metric("accuracy=0.71").value(), (std::pair<std::string, double>("accuracy", 0.71)));
  EXPECT_EQ(parse_metric("tasks.arc.acc,none=-1e-3").value().second, -1e-3);
  for (const char* wrong : {"", "=", "accuracy", "accuracy=", "=1", "a b=1", "a=b", "a=1x", "a=nan", "a=inf", "a=1=2",
                            "a>b=1", "a\n=1", "\xff=1"})
    EXPECT_EQ(parse_metric(wrong).error().kind, ErrorKind::invalid) << wrong;
}

TEST(MetricsOfModels, are_the_numbers_of_a_document) {
  EXPECT_EQ(read(R"({"loss": 2, "tasks": {"arc": {"accuracy": 0.5, "ok": true, "name": "x", "all": [1, 2]}}})").value(),
            (Metrics{{"loss", 2}, {"tasks.arc.accuracy", 0.5}}));
  EXPECT_EQ(read(R"({"models": 2, "metrics": {"arc.acc": 0.5}})").value(), (Metrics{{"arc.acc", 0.5}}));
  for (const char* wrong : {"[1]", "1", "{}", R"({"name": "x"})", R"({"a b": 1})"})
    EXPECT_FALSE(read(wrong).ok()) << wrong;
  EXPECT_EQ(read("{\n  \"a=b\": 1}").error().where.line, 2);
  const Error twice = read("{\"a\": {\"b\": 1},\n  \"a.b\": 2}").error();
  EXPECT_EQ(twice.message, "there are two numbers 'a.b'");
  EXPECT_EQ(twice.where.line, 2);
  std::string many = "{\"a\": 0";
  for (int i = 0; i < 1000; ++i) many += fmt::format(", \"m{}\": 1", i);
  EXPECT_NE(read(many + "}").error().message.find("1000 numbers"), std::string::npos);
}

TEST(RequirementsOfModels, hold_or_say_what_is_missing) {
  const Metrics metrics{{"accuracy", 0.71}};
  const auto holds = [&](const char* text) {
    const std::optional<Error> why = unmet(parse_requirement(text).value(), metrics, "tiny:1");
    EXPECT_TRUE(!why || why->code == ErrorCode::requirement_not_met);
    return !why;
  };
  EXPECT_TRUE(holds("accuracy>=0.71"));
  EXPECT_FALSE(holds("accuracy>0.71"));
  const Error why = *unmet(parse_requirement("accuracy>=0.8").value(), metrics, "tiny:1");
  EXPECT_EQ(why.message, "tiny:1 has accuracy 0.71, and accuracy>=0.8 is required");
  const Error lacks = *unmet(parse_requirement("acuracy>=0.1").value(), metrics, "tiny:1");
  EXPECT_EQ(lacks.message, "tiny:1 has no metric 'acuracy', and acuracy>=0.1 is required");
  EXPECT_EQ(lacks.hint, "did you mean 'accuracy'?");
}

}  // namespace
}  // namespace systole
