#include "operate/explain/request_report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace systole {
namespace {

std::string line(double queue, double decode, int status = 200) {
  return fmt::format(R"({{"status":{},"total_s":{},"parts_s":{{"queue":{},"decode":{}}},"first_token_s":{}}})", status,
                     queue + decode, queue, decode, queue);
}

TEST(RequestReport, the_usual_and_the_slow_are_told_apart) {
  RequestReport report;
  for (int i = 0; i < 38; ++i) EXPECT_TRUE(report.add(line(0.1, 0.4)));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(report.add(line(6, 0.5)));
  EXPECT_TRUE(report.add(line(0, 0, 429)));
  EXPECT_FALSE(report.add(R"({"status":200,"tot)")) << "torn";
  EXPECT_EQ(report.requests(), 40);
  const Node node = report.node();
  EXPECT_EQ(node.text_at("refused"), "1");
  EXPECT_EQ(node.text_at("total_p50_s"), "0.5");
  const std::string why = node.text_at("why");
  EXPECT_TRUE(why.starts_with("A request takes 500 ms at the median, ")) << why;
  EXPECT_NE(why.find("92% of it in queue: all slots are taken"), why.npos) << why;
  const std::string text = report.text(1000);
  EXPECT_NE(text.find("40 requests; 1 refused or failed; 1 line unreadable"), text.npos) << text;
  EXPECT_NE(text.find("queue "), text.npos) << text;
}

TEST(RequestReport, few_requests_have_no_slowest_twentieth) {
  RequestReport report;
  report.add(line(0.1, 0.4));
  EXPECT_TRUE(report.node().text_at("why").starts_with("A request takes 500 ms at the median, 80% of it in decode: "));
}

TEST(RequestReport, the_advice_is_about_the_part_with_most_of_the_time) {
  RequestReport report;
  report.add(line(9, 0.1));
  report.add(line(0, 0.4));
  report.add(line(0, 0.4));
  const std::string why = report.node().text_at("why");
  EXPECT_NE(why.find("in decode; 91% of the time of all is in queue: all slots are taken"), why.npos) << why;
}

}  // namespace
}  // namespace systole
