#include "describe/spec/run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace systole {
namespace {

TimeByCategory seconds(double compute, double update) {
  TimeByCategory t;
  t[Category::compute] = Seconds(compute);
  t[Category::update] = Seconds(update);
  return t;
}

StepEnded step(std::int64_t number, double loss, std::optional<double> dropped = {}) {
  return {number, loss, 1.5, 1e-3, 512, 4096, false, dropped, seconds(0.1, 0.01)};
}

Event opened(std::int64_t from_step = 0) {
  Opened o;
  o.run = "quick \"1\"\n";
  o.at = "2026-11-21T14:03:00.000Z";
  o.from_step = from_step;
  return {Seconds(0), o};
}

using ByLength = std::vector<std::pair<std::string, std::int64_t>>;

std::vector<Event> one_of_each() {
  return {
      opened(),
      {Seconds(0.1), step(1, 0.1 + 0.2)},
      {Seconds(0.2), step(2, 0.5, 1.0 / 3)},
      {Seconds(1.25), Evaluated{1, 5.5, 2.25, 1000, 3000}},
      {Seconds(1.5), Evaluated{1, 5.5, std::nullopt, 1000, 0, {{{"wiki", 5.25}, {"code", 6.5}}}}},
      {Seconds(2), CheckpointSaved{1, "abc", Bytes(1) * (std::int64_t{1} << 60), Seconds(0.5), Seconds(0.25)}},
      {Seconds(3), CheckpointRemoved{1, "abc"}},
      {Seconds(4), MemoryMeasured{{{"arena", Bytes(123)}, {"data", Bytes(7)}}, Bytes(200), Bytes(123)}},
      {Seconds(5), WorkCounted{3, Flops(9'007'199'254'740'993), Bytes(4), Bytes(0), {{"contraction", Seconds(0.5)}}}},
      {Seconds(5), WorkCounted{3, Flops(8), Bytes(4), Bytes(0), {}, ByLength{{"64", 2}, {"256", 1}}}},
      {Seconds(6), Note{"warning", "slow disk", "data", Seconds(0.05)}},
      {Seconds(7), Stopped{"finished", "", 1, true, seconds(5, 1)}}};
}

TEST(Run, events_read_back_equal_to_the_last_digit) {
  std::string text;
  for (const Event& event : one_of_each()) text += to_json_line(event);
  EXPECT_EQ(parse_events(text, "e.jsonl").value(), one_of_each());
}

TEST(Run, a_loss_that_is_not_finite_reads_back) {
  for (const double loss : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(std::get<StepEnded>(parse_event(to_json_line({Seconds(1), step(1, loss)}), {}).value().body).loss, loss);
  }
  const auto nan = parse_event(to_json_line({Seconds(1), step(1, std::nan(""))}), {});
  EXPECT_TRUE(std::isnan(std::get<StepEnded>(nan.value().body).loss));
}

TEST(Run, a_line_cut_by_a_kill_is_no_event_at_every_byte) {
  std::string text;
  for (const Event& event : one_of_each()) text += to_json_line(event);
  std::size_t last = 0;
  for (std::size_t length = 0; length <= text.size(); ++length) {
    const auto events = parse_events(std::string_view(text).substr(0, length), "e");
    ASSERT_TRUE(events.ok()) << length;
    EXPECT_GE(events->size(), last);
    last = events->size();
  }
  EXPECT_EQ(last, one_of_each().size());
}

TEST(Run, what_is_no_event_is_refused_with_its_line) {
  const std::string first = to_json_line(opened());
  const struct {
    std::string line;
    ErrorKind kind;
    const char* says;
  } cases[] = {
      {"{\"event\":\"step_ended\",\"t\":1}", ErrorKind::corrupt, "'step' is missing"},
      {"{\"event\":\"note\",\"t\":1,\"level\":\"info\",\"text\":\"a\",\"what\":\"b\",\"took_s\":0,\"more\":1}",
       ErrorKind::corrupt, "'more'"},
      {"{\"event\":\"danced\",\"t\":1}", ErrorKind::unsupported, "'danced'"},
      {"{\"event\":\"checkpoint_removed\",\"t\":1,\"step\":\"x\",\"id\":\"\"}", ErrorKind::corrupt, "expected"},
      {"{\"t\":1}", ErrorKind::corrupt, "event"},
      {"{\"event\":", ErrorKind::corrupt, ""},
      {"[]", ErrorKind::corrupt, ""},
      {"", ErrorKind::corrupt, ""},
  };
  for (const auto& c : cases) {
    const auto events = parse_events(first + c.line + "\n", "e.jsonl");
    ASSERT_FALSE(events.ok()) << c.line;
    EXPECT_EQ(events.error().kind, c.kind) << c.line;
    EXPECT_EQ(events.error().where.line, 2) << c.line;
    EXPECT_NE(events.error().message.find(c.says), std::string::npos) << events.error().message;
  }
  EXPECT_FALSE(parse_events(to_json_line({Seconds(1), step(1, 1)}), "e").ok()) << "a file begins with opened";
}

TEST(Run, a_newer_run_is_refused_by_its_version) {
  std::string line = to_json_line(opened());
  line.replace(line.find("\"version\":1"), 11, "\"version\":9");
  const auto event = parse_event(line, {"e", 1, 1});
  ASSERT_FALSE(event.ok());
  EXPECT_EQ(event.error().kind, ErrorKind::unsupported);
  EXPECT_NE(event.error().message.find("version 9"), std::string::npos);
}

TEST(Run, the_canonical_log_has_each_step_once) {
  const std::vector<Event> events{
      opened(),  {Seconds(1), step(1, 5)}, {Seconds(2), step(2, 4)}, {Seconds(3), step(3, 3)},
      opened(1), {Seconds(1), step(2, 40)}};
  const std::vector<StepEnded> steps = canonical_steps(events);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].loss, 5);
  EXPECT_EQ(steps[1].loss, 40);
}

TEST(Category, each_has_a_name_and_a_sentence) {
  for (int i = 0; i < kNumCategories; ++i) {
    const auto category = static_cast<Category>(i);
    EXPECT_EQ(category_named(name_of(category)), category);
    EXPECT_NE(std::string(describe(category)), "");
  }
  EXPECT_FALSE(category_named("lunch").has_value());
  TimeByCategory sum = seconds(1, 2);
  sum += seconds(3, 4);
  EXPECT_EQ(sum, seconds(4, 6));
  EXPECT_EQ(sum.total(), Seconds(10));
}

}  // namespace
}  // namespace systole
